"""What a value may be instead, for all that float64 knows of it: as a way to draw another.

A value that is the source's bit for bit has none. One that agrees with the source's is off where it has other bits. One
that is not the source's, as between the parts of a winograd convolution, is made again from what its operands may be:
only so is it known how much noise is left where all of it cancels.
"""

from __future__ import annotations

from itertools import count
from typing import Any

import torch
from torch import Tensor

from numtrace.attribute.near_ties import Ties
from numtrace.attribute.noise import DRIFT, Noisy, element_sizes, signed_draw
from numtrace.attribute.scalars import Constants, as_in_source
from numtrace.evaluate.program import Op, Program

#: So that no two doubts of one seed have the same noise.
_STREAMS = count(1)


class Off:
    """A value that is off where ``where`` is, by ``size``, or by :data:`~numtrace.attribute.noise.DRIFT`."""

    def __init__(self, value: Tensor, where: Tensor, size: Tensor | None = None):
        self._value, self._where, self._size = value, where, size
        self._stream = next(_STREAMS)

    def draw(self, seed: int) -> Tensor:
        """The value with noise, float64."""
        size = element_sizes(self._value) * DRIFT if self._size is None else self._size
        off = signed_draw(self._value, seed, self._stream).mul_(size)
        return torch.where(self._where, self._value + off, self._value)


class Made:
    """The results of an op, made of doubtful values; it keeps them alive.

    Args:
        program: that of ``op``.
        operands: the values by slot, or their doubts.
        constants: scalars of its body to be had as in the source.
    """

    def __init__(self, program: Program, op: Op, operands: dict[int, Any], constants: Constants = ()):
        self._program, self._op, self._operands, self._constants = program, op, operands, [*constants]
        self._stream = next(_STREAMS)
        self._last: tuple[int, list[Any]] | None = None

    def results(self, seed: int) -> list[Any]:
        """All results with noise."""
        if self._last is None or self._last[0] != seed:
            machine = Noisy(self._program, Ties(), seed, stream=self._stream)
            operands = {slot: drawn(value, seed) for slot, value in self._operands.items()}
            with as_in_source(self._constants):
                self._last = (seed, machine.results(self._op, operands))
        return self._last[1]


class Result:
    """One result of :class:`Made`."""

    def __init__(self, made: Made, index: int):
        self._made, self._index = made, index

    def draw(self, seed: int) -> Any:
        """The result with noise."""
        return self._made.results(seed)[self._index]


Doubt = Off | Result


def made(program: Program, op: Op, operands: dict[int, Any], constants: Constants = ()) -> dict[int, Doubt]:
    """The doubts of the results of ``op`` by slot, as of :class:`Made`."""
    of = Made(program, op, operands, constants)
    return {slot: Result(of, index) for index, slot in enumerate(op.results)}


def drawn(value: Any, seed: int) -> Any:
    """What is drawn for a doubt; any other value itself."""
    return value.draw(seed) if isinstance(value, Doubt) else value
