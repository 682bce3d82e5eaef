"""MLIR as plain Python records, made once per module, so that evaluation pays no binding calls per op.

Only what evaluation and matching need is kept: names, operands and results as slots, types, attributes,
regions and the location. Values are numbered per :class:`Program`; a slot is the index of a value.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from itertools import chain
from types import ModuleType
from typing import Any

import torch
from iree.compiler import ir
from iree.compiler.dialects import linalg

from numtrace.evaluate.types import NATIVE, exact_dtype, tensor_type

#: Dialects whose ops and types the bindings have no Python class for. They look for a module of them on the disk at
#: every single op, unless there is one of that name: with nothing in it, a torch program is read six times as fast.
_BARE = ("torch", "torch_c", "iree_linalg_ext", "iree_encoding", "stablehlo", "chlo", "ml_program")
for _name in _BARE:
    _module = f"{ir.__package__}.dialects.{_name}"
    if _module not in sys.modules and find_spec(_module) is None:
        sys.modules[_module] = ModuleType(_module)

#: numtrace's own locations, see ``instrument/stamp.py``, and what is below those of ops in the body of a source op.
STAMP = re.compile(r'"numtrace\.(\d+)"')
_IN_BODY = '"("body")'

#: Scalars that no tensor data flows into: what is computed from them alone is index arithmetic.
_DATA_FREE_SOURCES = {"arith.constant", "linalg.index", "tensor.dim", "util.assume.int"}
_SCALAR_DIALECTS = ("arith.", "math.", "affine.", "index.")


@dataclass(slots=True)
class Op:
    """One operation.

    ``fn`` is its evaluation (bound by the registry), ``dead`` the slots that no later op of the block reads.
    ``typed`` marks index arithmetic: it is evaluated in the types of the IR, everything else in float64.
    ``whole`` marks arithmetic on floats that stands for arithmetic on integers, see :func:`_mark_whole`.
    ``in_body`` marks what stands in the body of a source op.
    ``chooses`` marks a comparison that only chooses between what it compares: at the threshold the two are equal.
    """

    name: str
    operands: list[int]
    results: list[int]
    operand_types: list[ir.Type]
    result_types: list[ir.Type]
    attributes: dict[str, ir.Attribute]
    regions: list[Block]
    stamps: tuple[int, ...]
    symbol: str = ""
    maps: list[ir.AffineMap] = field(default_factory=list)
    typed: bool = False
    computes: bool = False
    chooses: bool = False
    whole: bool = False
    in_body: bool = False
    fn: Callable | None = None
    dead: list[int] = field(default_factory=list)
    cache: dict = field(default_factory=dict)

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the first result: of the IR for index arithmetic, else float64 for floats."""
        element = tensor_type(self.result_types[0])[1]
        return NATIVE[element] if self.typed else exact_dtype(element)

    def integers(self, name: str) -> list[int]:
        """An array-of-integers attribute (``array<i64: …>`` or ``dense<…>``); empty when absent."""
        key = ("integers", name)
        found = self.cache.get(key)
        if found is None:
            attribute = self.attributes.get(name)
            values = () if attribute is None else attribute
            found = self.cache[key] = [int(getattr(value, "value", value)) for value in values]
        return [*found]

    def static_shape(self, result: int) -> tuple[int | None, ...]:
        """The shape in the type of a result; ``None`` is a dynamic size."""
        key = ("shape", result)
        found = self.cache.get(key)
        if found is None:
            found = self.cache[key] = tensor_type(self.result_types[result])[0]
        return found

    def integer(self, name: str) -> int:
        return int(self.attributes[name].value)


@dataclass(slots=True)
class Block:
    arguments: list[int]
    argument_types: list[ir.Type]
    ops: list[Op]


class Program:
    """A module: its functions by symbol, its globals and initializers in order, its executables' bodies."""

    def __init__(self, module: ir.Module):
        self._module = module  # keeps the context of types and attributes alive
        self._slots: dict[ir.Value, int] = {}
        self.count = 0
        self.body = self._block(module.body)
        _mark_index_arithmetic(self.body, {})
        _mark_whole(self.body, set())

    @classmethod
    def parse(cls, text: str, *, unregistered: bool = False) -> Program:
        context = ir.Context()
        context.allow_unregistered_dialects = unregistered
        return cls(ir.Module.parse(text, context))

    @property
    def text(self) -> str:
        """The module's text without locations."""
        return self._module.operation.get_asm(enable_debug_info=False)

    @cached_property
    def functions(self) -> dict[str, Op]:
        """``util.func`` and ``func.func`` ops by symbol."""
        return {op.symbol: op for op in self.body.ops if op.name in ("util.func", "func.func") and op.symbol}

    @cached_property
    def executables(self) -> dict[str, Op]:
        """The function inside each ``flow.executable``, by ``@executable::@entry``."""
        found = {}
        for executable in self.body.ops:
            if executable.name != "flow.executable":
                continue
            for op in walk(executable.regions):
                if op.name in ("func.func", "util.func") and op.symbol:
                    found[f"{executable.symbol}::{op.symbol}"] = op
        return found

    @cached_property
    def globals(self) -> dict[str, Op]:
        return {op.symbol: op for op in self.body.ops if op.name == "util.global"}

    @property
    def initializers(self) -> list[Op]:
        return [op for op in self.body.ops if op.name == "util.initializer"]

    def _slot(self, value: ir.Value) -> int:
        slot = self._slots.get(value)
        if slot is None:
            slot = self._slots[value] = self.count
            self.count += 1
        return slot

    def _block(self, block: ir.Block) -> Block:
        arguments = [self._slot(argument) for argument in block.arguments]
        ops = [self._op(view.operation) for view in block.operations]
        _mark_last_uses(ops)
        _mark_choices(ops)
        return Block(arguments, [argument.type for argument in block.arguments], ops)

    def _op(self, op: ir.Operation) -> Op:
        attributes = {name: _attribute(op, name) for name in op.attributes}
        symbol, location = attributes.get("sym_name"), str(op.location)
        return Op(
            name=op.name,
            operands=[self._slot(operand) for operand in op.operands],
            results=[self._slot(result) for result in op.results],
            operand_types=[operand.type for operand in op.operands],
            result_types=[result.type for result in op.results],
            attributes=attributes,
            regions=[self._block(block) for region in op.regions for block in region.blocks],
            stamps=stamps_in(location),
            in_body=_IN_BODY in location,
            symbol=symbol.value if symbol is not None else "",
            maps=_indexing_maps(op),
        )


@dataclass(frozen=True, slots=True)
class Printed:
    """Elements that the bindings have no class for, which are those of complex numbers, as MLIR prints them."""

    text: str

    def __str__(self) -> str:
        return self.text

    def maybe_downcast(self) -> Printed:
        return self


#: Elements in brackets, or their bytes in quotes; neither has a ``>``.
_COMPLEX_ELEMENTS = r"dense<[^>]*> : tensor<(?:[0-9]+x)*complex<[a-z0-9]+>>"


def _attribute(op: ir.Operation, name: str) -> Any:
    try:
        return op.attributes[name]
    except TypeError:
        generic = op.get_asm(enable_debug_info=False, print_generic_op_form=True)
        found = re.search(rf"\b{name} = ({_COMPLEX_ELEMENTS})", generic)
        if found is None:
            raise
        return Printed(found[1])


def stamps_of(location: ir.Location) -> tuple[int, ...]:
    """The numbers of numtrace's stamps in a location, in order, each once."""
    return stamps_in(str(location))


def stamps_in(text: str) -> tuple[int, ...]:
    """The same of a location's text."""
    return tuple(dict.fromkeys(int(number) for number in STAMP.findall(text)))


def walk(blocks: list[Block]) -> Iterator[Op]:
    """Every op of ``blocks`` and of the regions in them, outermost first."""
    for block in blocks:
        for op in block.ops:
            yield op
            yield from walk(op.regions)


def reads(op: Op) -> Iterator[int]:
    """The slots that ``op`` or anything inside it reads."""
    yield from op.operands
    for inner in walk(op.regions):
        yield from inner.operands


def _mark_last_uses(ops: list[Op]) -> None:
    seen: set[int] = set()
    for op in reversed(ops):
        for slot in {*reads(op), *op.results}:
            if slot not in seen:
                seen.add(slot)
                op.dead.append(slot)
    # What the block did not make itself may be read again (a body runs once per element tile or call).
    made = {slot for op in ops for slot in op.results}
    for op in ops:
        op.dead = [slot for slot in op.dead if slot in made]


def _mark_choices(ops: list[Op]) -> None:
    """Sets ``chooses``."""
    for compare in ops:
        if compare.name == "arith.cmpf":
            readers = [op for op in ops if compare.results[0] in reads(op)]
            compare.chooses = bool(readers) and all(
                op.name == "arith.select" and {*op.operands[1:]} == {*compare.operands} for op in readers
            )


def _mark_index_arithmetic(block: Block, free: dict[int, bool]) -> None:
    """Sets ``typed``.

    ``free`` are the scalars so far that no tensor data flows into, of outer blocks too, and whether each is made
    of float constants alone. Those are no index arithmetic: a cast of such a one is a constant that was rounded.
    """
    for op in block.ops:
        if op.name in _DATA_FREE_SOURCES:
            op.typed = op.name != "arith.constant" or not _is_shaped(op.result_types[0])
            constant = op.name == "arith.constant" and isinstance(op.result_types[0], ir.FloatType)
            if op.typed:
                free.update(dict.fromkeys(op.results, constant))
        elif op.name.startswith(_SCALAR_DIALECTS) and op.operands and free.keys() >= set(op.operands):
            constant = all(free[slot] for slot in op.operands)
            op.typed = not constant
            free.update(dict.fromkeys(op.results, constant))
        for region in op.regions:
            _mark_index_arithmetic(region, free)


def _mark_whole(block: Block, constants: set[int]) -> None:
    """Sets ``whole``, and ``typed`` with it.

    A source op that takes integers and makes integers asks for no rounding. Where it was lowered to floats, as a
    division is, what these round is no rounding that the types of the source ask for: it has another meaning. What the
    body of a source op does is asked for.

    ``constants`` are the scalars so far, of outer blocks too, that are constant whole floats.
    """
    parts: dict[int, list[Op]] = defaultdict(list)
    for op in block.ops:
        if op.name == "arith.constant" and isinstance(value := op.attributes["value"], ir.FloatAttr):
            constants.update(op.results if value.value.is_integer() else ())
        elif op.name.startswith(("arith.", "math.")) and len(op.stamps) == 1 and not (op.typed or op.in_body):
            parts[op.stamps[0]].append(op)
        for region in op.regions:
            _mark_whole(region, constants)
    candidates = [ops for ops in parts.values() if _from_and_to_integers(ops)]
    # Where two of them share a cast, it is the one's and the other takes a float: they are closed together or not.
    while len(closed := [ops for ops in candidates if _closed(ops, candidates, block, constants)]) < len(
        candidates
    ):
        candidates = closed
    for op in chain.from_iterable(candidates):
        op.typed = op.whole = True


def _from_and_to_integers(ops: list[Op]) -> bool:
    names = {op.name for op in ops}
    return not names.isdisjoint(_FROM_INTEGERS) and not names.isdisjoint(_TO_INTEGERS)


def _closed(ops: list[Op], candidates: list[list[Op]], block: Block, constants: set[int]) -> bool:
    """Whether the floats that ``ops`` take and make are constants, or those of candidates."""
    inside = [*chain.from_iterable(candidates)]
    given = {slot for op in inside for slot in _floats(op.results, op.result_types)} | constants
    made = {slot for op in ops for slot in _floats(op.results, op.result_types)}
    taken = {slot for op in ops for slot in _floats(op.operands, op.operand_types)}
    known = {id(op) for op in inside}
    return taken <= given and not any(made.intersection(reads(op)) for op in block.ops if id(op) not in known)


_FROM_INTEGERS = {"arith.sitofp", "arith.uitofp"}
_TO_INTEGERS = {"arith.fptosi", "arith.fptoui"}


def _floats(slots: list[int], types: list[ir.Type]) -> Iterator[int]:
    for slot, type_ in zip(slots, types, strict=True):
        if isinstance(ir.ShapedType(type_).element_type if _is_shaped(type_) else type_, ir.FloatType):
            yield slot


def _indexing_maps(op: ir.Operation) -> list[ir.AffineMap]:
    """The indexing maps of a structured op, the implicit ones of named ops included; empty for other ops."""
    if not op.name.startswith("linalg.") or not len(op.regions):
        return []
    maps = linalg.get_indexing_maps(op)
    return [] if maps is None else [attribute.value for attribute in maps]


def _is_shaped(type_: ir.Type) -> bool:
    return isinstance(type_, ir.ShapedType)
