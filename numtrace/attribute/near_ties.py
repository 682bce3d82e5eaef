"""Decisions that hang on the rounding of float64: nobody's fault, and known by taking the rounding away.

Where ``x > 0`` is asked of an x that is zero but for the order of a sum, two exact evaluations may decide differently.
They mean the same if they decide alike on the same bits. So a dispatch whose value differs is evaluated once more, with
every value on the way that is the source's (up to :data:`~numtrace.attribute.floor.SEMANTIC_FLOOR`, over all of its
elements) replaced by the source's, bit for bit, where noise of the size of float64's roundings moves it by as much. An
element that agrees then is a near tie. One that does not was decided differently on what was equal, or computed from
something else: another mathematics.

How far noise moves an element is measured, by an evaluation with noise, and not taken from the size of its tensor: the
zeros that a maximum makes have none, and an eps that is added to them is seen however small it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from numtrace.attribute.agreement import alike
from numtrace.attribute.decisions import deciding
from numtrace.attribute.floor import SEMANTIC_FLOOR
from numtrace.attribute.layout import layouts
from numtrace.attribute.magnitude import largest
from numtrace.attribute.matching import source_finals
from numtrace.attribute.reference import Reference
from numtrace.evaluate.machine import Machine
from numtrace.evaluate.op import Op, reads
from numtrace.evaluate.program import Program

#: A sum of many roundings may come to nothing by chance. Of :data:`SAMPLES` that are off by 16 times as much as two
#: evaluations are apart (a winograd convolution's; most are by more), all are too small by this, times 1/16, for one
#: element in 10^5.
SAMPLES, MARGIN = 2, 32.0

#: Much more than noise becomes of the largest element of a value that is known at all.
_FAR = 2.0**-20

#: A value in an evaluation: its slot, and the how many-th time that it is made.
Moment = tuple[int, int]

#: Values of the source, float64, by the stamp of the op that makes them.
Values = Mapping[int, Sequence[Tensor]]


class Ties:
    """Values of the source, and by how much noise moves the values of a program that are those.

    Until an evaluation with noise has been noted, no value is taken for the source's.
    """

    def __init__(self, source: Values = MappingProxyType({})):
        self.source = source
        self._noisy: dict[Moment, list[Tensor]] = {}

    def note(self, op: Op, moment: Moment, noisy: Tensor, amplitude: Tensor | float, scale: float) -> None:
        """``noisy`` is what an evaluation with noise has; ``amplitude`` of it the last op added.

        Only what is far from all of the source is not kept: what it is the value itself tells. ``scale`` is the size
        of what the evaluation has: where all of that cancels, the noise is all there is.
        """
        apart = 2 * amplitude + _FAR * (scale if largest(noisy) <= _FAR * scale else largest(noisy))
        if self.source and _placed(noisy, self._of(op), apart) is not None:
            self._noisy.setdefault(moment, []).append(noisy)

    def settled(self, op: Op, moment: Moment, value: Tensor) -> tuple[Tensor, Tensor | None]:
        """``value`` with the source's bits where it has none of its own, and a mask of where; None for nowhere."""
        samples = [noisy for noisy in self._noisy.get(moment, ()) if noisy.shape == value.shape]
        if not samples:
            return value, None
        noise = noise_of(value, samples)
        placed = _placed(value, self._of(op), noise)
        if placed is None:
            return value, None
        near = within_noise(value, placed, noise)
        return torch.where(near, placed, value), near

    def _of(self, op: Op) -> list[Tensor]:
        """What the source has that a value of ``op`` may be: what it makes of the same op, where that is known.

        Noise tells no difference between x and x + 1e-20; whose value it is does.
        """
        stamps = [stamp for stamp in op.stamps if stamp in self.source] or self.source
        return [value for stamp in stamps for value in self.source[stamp]]


def noise_of(value: Tensor, samples: Sequence[Tensor]) -> Tensor:
    """How far float64 may be off, per element, from what ``value`` was with noise."""
    # A sample that is no number, as a root of noise below zero, tells of no distance.
    moved = [(sample - value).abs_().nan_to_num_(0.0, 0.0) for sample in samples]
    return reduce(torch.maximum, moved).mul_(MARGIN)


def _placed(value: Tensor, source: Iterable[Tensor], noise: Tensor | float) -> Tensor | None:
    """The one of ``source`` that ``value`` is but for the floor or ``noise``, laid out as it is."""
    others = [other for other in source if other.numel() == value.numel()]
    if not others:
        return None
    size = largest(value)
    apart = max(SEMANTIC_FLOOR * size, largest(noise) if isinstance(noise, Tensor) else noise)
    for other in others:
        if abs(largest(other) - size) > apart:
            continue
        for layout in layouts(tuple(other.shape), tuple(value.shape), None):
            placed = layout.place(other, value)
            if bool((alike(value, placed) | within_noise(value, placed, noise)).all()):
                return placed
    return None


def within_noise(value: Tensor, source: Tensor, noise: Tensor | float) -> Tensor:
    """A mask of the elements that are the source's, or off by no more than noise moves them; all of one shape."""
    return (value == source) | ((value - source).abs() <= noise)


class Snapping(Machine):
    """A machine that replaces what it makes by the source's value where the two are one.

    Args:
        program: what is evaluated.
        ties: what the source has, and where noise is.
        globals_: as of any machine.
    """

    def __init__(self, program: Program, ties: Ties, globals_: dict[Any, Any] | None = None):
        super().__init__(program, globals_)
        self.striped = False  # what a region makes is to be compared as a whole
        self._ties = ties
        self._times: Counter[int] = Counter()

    def _evaluate(self, op: Op) -> None:
        super()._evaluate(op)
        for slot in op.results:
            value = self.env.get(slot)
            if isinstance(value, Tensor) and value.dtype == torch.float64 and not op.typed:
                moment = (slot, self._times[slot])
                self._times[slot] += 1
                self.env[slot] = self._settled(op, moment, value)

    def _settled(self, op: Op, moment: Moment, value: Tensor) -> Tensor:
        return self._ties.settled(op, moment, value)[0]


def decided_values(
    source: Program,
    function: Op,
    stage: str,
    arguments: Sequence[Any],
    globals_: Mapping[Any, Any],
    program: Program,
) -> Values:
    """The values of ``source`` that the decisions of ``program`` hang on.

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
    return floats({stamp: reference.values(stamp) for stamp in wanted})


def floats(values: Mapping[int, Iterable[Any]]) -> Values:
    """Those of ``values`` that are floats."""
    found = {
        stamp: [value for value in made if isinstance(value, Tensor) and value.dtype == torch.float64]
        for stamp, made in values.items()
    }
    return {stamp: made for stamp, made in found.items() if made}
