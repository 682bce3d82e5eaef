"""MLIR as plain Python records, made once per module, so that evaluation pays no binding calls per op.

Only what evaluation and matching need is kept: names, operands and results as slots, types, attributes,
regions and the location. Values are numbered per :class:`Program`; a slot is the index of a value.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import linalg

from numtrace.evaluate.marks import mark
from numtrace.evaluate.op import Block, Op, walk

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


class Program:
    """A module: its functions by symbol, its globals and initializers in order, its executables' bodies."""

    def __init__(self, module: ir.Module):
        self._module = module  # keeps the context of types and attributes alive
        self._slots: dict[ir.Value, int] = {}
        self.count = 0
        self.body = self._block(module.body)
        mark(self.body)

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


def _indexing_maps(op: ir.Operation) -> list[ir.AffineMap]:
    """The indexing maps of a structured op, the implicit ones of named ops included; empty for other ops."""
    if not op.name.startswith("linalg.") or not len(op.regions):
        return []
    maps = linalg.get_indexing_maps(op)
    return [] if maps is None else [attribute.value for attribute in maps]
