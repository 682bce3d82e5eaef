"""Evaluates a program and keeps a few sums of what each source op came to, to compare two programs op by op."""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor

from numtrace.attribute.floor import SEMANTIC_FLOOR
from numtrace.evaluate.complex_numbers import as_parts
from numtrace.evaluate.machine import Machine
from numtrace.evaluate.op import Op
from numtrace.evaluate.program import Program

#: Sums of a value's elements: of |x|, of x, of x², of x³. A transpose, a reshape and a pad with zeros leave them.
Sums = tuple[float, float, float, float]


class SummingMachine(Machine):
    """A machine that remembers :data:`Sums` of the last value that each source op made.

    Ops of several source ops (fused ones) are passed over, and so are those within a structured op's region.
    """

    def __init__(self, program: Program, globals_: dict[str, Any]):
        super().__init__(program, globals_)
        self.sums: dict[int, Sums] = {}
        self._functions = function_stamps(program)

    def step(self, op: Op) -> None:
        super().step(op)
        stamp = only_stamp(op, self._functions)
        if self.domain is None and stamp is not None and len(op.results) == 1:
            value = self.env.get(op.results[0])
            if isinstance(value, Tensor) and (parts := as_parts(value)).is_floating_point():
                self.sums[stamp] = sums(parts)


def function_stamps(program: Program) -> frozenset[int]:
    """The stamps of the functions: an op of an inlined one carries its function's beside its own."""
    return frozenset(stamp for function in program.functions.values() for stamp in function.stamps)


def only_stamp(op: Op, functions: frozenset[int]) -> int | None:
    """The source op that ``op`` is of; None where there are several, or none but its function."""
    own = [stamp for stamp in op.stamps if stamp not in functions]
    return own[0] if len(own) == 1 else None


def sums(value: Tensor) -> Sums:
    value = value.double()
    square = value * value
    return (
        float(value.abs().sum()),
        float(value.sum()),
        float(square.sum()),
        float((square * value).sum()),
    )


def alike(a: Sums, b: Sums) -> bool:
    """Whether two values may be the same: their sums agree as far as float64 and another order of adding allow."""
    sizes = (b[0], b[0], b[2], b[2] * math.sqrt(b[2]))  # Σ|x³| is at most (Σx²)^(3/2)
    return all(
        x == y or (x != x and y != y) or abs(x - y) <= SEMANTIC_FLOOR * size
        for x, y, size in zip(a, b, sizes, strict=True)
    )
