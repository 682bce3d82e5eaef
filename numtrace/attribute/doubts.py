"""What a value may be instead, for all that float64 knows of it: as a way to draw another.

A value that is the source's bit for bit has none. One that agrees with the source's is off where it has other bits. One
that is not the source's, as between the parts of a winograd convolution, is made again from what its operands may be:
only so is it known how much noise is left where all of it cancels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import torch
from torch import Tensor

from numtrace.attribute.decisions import decides_itself
from numtrace.attribute.near_ties import MARGIN, Ties
from numtrace.attribute.noise import DRIFT, SAMPLING, Noisy, element_sizes, signed_draw
from numtrace.attribute.scalars import Constants, as_in_source
from numtrace.evaluate.op import Op
from numtrace.evaluate.program import Program

#: So that no two doubts of one seed have the same noise.
_STREAMS = count(1)


class Off:
    """A value that is off where ``where`` is, by ``size``, or by :data:`~numtrace.attribute.noise.DRIFT`.

    ``between`` makes of it what lies between dispatches, where it is the parts of complex numbers.
    """

    def __init__(
        self,
        value: Tensor,
        where: Tensor,
        size: Tensor | None = None,
        between: Callable[[Tensor], Tensor] | None = None,
    ):
        self._value, self._where, self._size, self._between = value, where, size, between
        self._stream = next(_STREAMS)

    def draw(self, seed: int) -> Tensor:
        """The value with noise."""
        size = self._size
        if size is None:
            # What a measurement finds is taken MARGIN times: it is not to be what is that much already.
            size = element_sizes(self._value) * (DRIFT / MARGIN if seed in SAMPLING else DRIFT)
        off = signed_draw(self._value, seed, self._stream).mul_(size)
        made = torch.where(self._where, self._value + off, self._value)
        return self._between(made) if self._between else made


class Made:
    """The results of an op, made of doubtful values; it keeps them alive.

    Args:
        program: that of ``op``.
        operands: the values by slot, or their doubts.
        constants: scalars of its body to be had as in the source.
    """

    def __init__(self, program: Program, op: Op, operands: dict[int, Any], constants: Constants = ()):
        self.operands = operands
        #: Whether a decision was taken on the way.
        self.decides = decides_itself(program, op) or decided(operands.values())
        self._program, self._op, self._constants = program, op, [*constants]
        self._stream = next(_STREAMS)

    def results(self, operands: Sequence[Any], seed: int) -> list[Any]:
        """All results with noise, of what is drawn for the operands."""
        machine = Noisy(self._program, Ties(), seed, stream=self._stream)
        with as_in_source(self._constants):
            return machine.results(self._op, dict(zip(self.operands, operands, strict=True)))


@dataclass(frozen=True, slots=True)
class Result:
    """One result of :class:`Made`."""

    made: Made
    index: int


Doubt = Off | Result


def made(program: Program, op: Op, operands: dict[int, Any], constants: Constants = ()) -> dict[int, Doubt]:
    """The doubts of the results of ``op`` by slot, as of :class:`Made`."""
    of = Made(program, op, operands, constants)
    return {slot: Result(of, index) for index, slot in enumerate(op.results)}


def decided(values: Iterable[Any]) -> bool:
    """Whether one of ``values`` is a doubt that hangs on a decision."""
    return any(maker.decides for maker in _makers(values))


def drawn(values: Iterable[Any], seed: int) -> list[Any]:
    """What is drawn for doubts, together; any other value itself."""
    values = [*values]
    found: dict[Made, list[Any]] = {}

    def of(value: Any) -> Any:
        if isinstance(value, Result):
            return found[value.made][value.index]
        return value.draw(seed) if isinstance(value, Off) else value

    # Not by recursion: in a loop each round is made of the one before.
    waiting = _makers(values)
    while waiting:
        maker = waiting[-1]
        before = (
            [] if maker in found else [each for each in _makers(maker.operands.values()) if each not in found]
        )
        if before:
            waiting += before
            continue
        if maker not in found:
            found[maker] = maker.results([of(value) for value in maker.operands.values()], seed)
        waiting.pop()
    return [of(value) for value in values]


def _makers(values: Iterable[Any]) -> list[Made]:
    return [value.made for value in values if isinstance(value, Result)]
