"""Decisions that hang on the rounding of float64: nobody's fault, and known by taking the rounding away.

Where ``x > 0`` is asked of an x that is zero but for the order of a sum, two exact evaluations may decide differently.
They mean the same if they decide alike on the same bits. So a dispatch whose value differs is evaluated once more, with
every value on the way that is the source's (up to :data:`~numtrace.attribute.floor.SEMANTIC_FLOOR`, over all of its
elements) replaced by the source's, bit for bit, where no more than float64's rounding is between the two. An element
that agrees then is a near tie. One that does not was decided differently on what was equal, or computed from something
else: another mathematics.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from numtrace.attribute.agreement import agrees
from numtrace.attribute.decisions import deciding
from numtrace.attribute.floor import SEMANTIC_FLOOR
from numtrace.attribute.layout import layouts
from numtrace.attribute.magnitude import largest
from numtrace.attribute.matching import source_finals
from numtrace.attribute.reference import Reference
from numtrace.evaluate.machine import Machine
from numtrace.evaluate.program import Op, Program, reads

#: What two evaluations in float64 are apart, of the largest element: 2^10 roundings of it. Winograd transforms and
#: forty layers leave up to 2^-45; a changed eps or threshold of a network is larger than this, or lost in rounding.
NOISE = 2.0**-43


class Snapping(Machine):
    """A machine that replaces what it makes by the source's value where the two agree.

    Args:
        program: what is evaluated.
        source: values of the source, float64.
        globals_: as of any machine.
    """

    def __init__(self, program: Program, source: Sequence[Tensor], globals_: dict[Any, Any] | None = None):
        super().__init__(program, globals_)
        self.striped = False  # what a region makes is to be compared as a whole
        self._source = source

    def _evaluate(self, op: Op) -> None:
        super()._evaluate(op)
        for slot in op.results:
            value = self.env.get(slot)
            if isinstance(value, Tensor) and value.dtype == torch.float64 and not op.typed:
                self.env[slot] = self._settled(op, value)

    def _settled(self, op: Op, value: Tensor) -> Tensor:
        return snapped(value, self._source)


def snapped(value: Tensor, source: Iterable[Tensor]) -> Tensor:
    """The one of ``source`` that ``value`` is, laid out as it is; ``value`` itself where it is none of them."""
    size = None
    for other in source:
        if other.numel() != value.numel():
            continue
        size = largest(value) if size is None else size
        if abs(largest(other) - size) > SEMANTIC_FLOOR * size:
            continue
        for layout in layouts(tuple(other.shape), tuple(value.shape), None):
            placed = layout.place(other, value)
            if agrees(value, placed):
                return without_noise(value, placed)
    return value


def without_noise(value: Tensor, source: Tensor) -> Tensor:
    """``source`` where ``value`` is that but for float64's rounding, else ``value``; all of one shape."""
    if value is source or not value.is_floating_point():
        return source
    near = (value - source).abs() <= NOISE * largest(source)
    return source if bool(near.all()) else torch.where(near, source, value)


def decided_values(
    source: Program,
    function: Op,
    stage: str,
    arguments: Sequence[Any],
    globals_: Mapping[Any, Any],
    program: Program,
) -> list[Tensor]:
    """The float values of ``source`` that the decisions of ``program`` hang on.

    They are what the source ops that decide there read and make.

    Args:
        source, function, arguments, globals_: as of :class:`~numtrace.attribute.reference.Reference`.
        stage: of the source, see :func:`~numtrace.attribute.matching.source_finals`.
        program: the same at a later stage, with the source's stamps.

    Raises:
        UncoveredOp: an op of the source cannot be evaluated.
    """
    finals = source_finals(source, function, stage)
    makers = {slot: stamp for stamp, slots in finals.items() for slot in slots}
    stamps = {stamp for op in deciding([program.body]) for stamp in op.stamps}
    read = {slot for op in function.regions[0].ops if stamps & {*op.stamps} for slot in reads(op)}
    wanted = sorted(stamps | {makers[slot] for slot in read if slot in makers})
    reference = Reference(source, function, arguments, globals_, finals, wanted)
    reference.finish()
    found = [value for stamp in wanted for value in reference.values(stamp)]
    return [value for value in found if isinstance(value, Tensor) and value.dtype == torch.float64]
