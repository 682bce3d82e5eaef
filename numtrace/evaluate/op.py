"""One operation of a program, and what it reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import torch
from iree.compiler import ir

from numtrace.evaluate.types import NATIVE, exact_dtype, tensor_type


@dataclass(slots=True)
class Op:
    """One operation.

    ``fn`` is its evaluation (bound by the registry), ``dead`` the slots that no later op of the block reads.
    ``typed`` marks index arithmetic: it is evaluated in the types of the IR, everything else in float64.
    ``whole`` marks arithmetic on floats that stands for arithmetic on integers, see ``marks.py``.
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


def captures(op: Op) -> set[int]:
    """The slots that ``op`` or anything inside it reads, and that were made outside of it."""
    made = {slot for inner in walk(op.regions) for slot in inner.results}
    arguments = {slot for block in _blocks(op) for slot in block.arguments}
    return {*reads(op)} - made - arguments


def _blocks(op: Op) -> Iterator[Block]:
    for each in (op, *walk(op.regions)):
        yield from each.regions
