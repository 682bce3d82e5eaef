"""Operands that no strided view walks as their map does: backwards, or by ``floordiv`` and ``mod``.

Such an operand is read out first, one element per point of the loops that it depends on. Then it is a tensor over
these loops, and nothing else need know of its map.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from iree.compiler import ir
from torch import Tensor

from numtrace.errors import UndefinedResult
from numtrace.evaluate.affine import Linear, linear, value_at


@dataclass(frozen=True, slots=True)
class ReadOut:
    """How an operand is read out. ``loops``, increasing, are the dimensions of what is made of it."""

    results: tuple[ir.AffineExpr, ...]
    loops: tuple[int, ...]

    @classmethod
    def of(cls, affine_map: ir.AffineMap) -> ReadOut | None:
        """None for a map that a strided view walks, and for one with symbols, which is nobody's."""
        results = tuple(affine_map.results)
        if affine_map.n_symbols:
            return None
        forms = [linear(result) for result in results]
        if all(form is not None and _forward(form) for form in forms):
            return None
        return cls(results, tuple(sorted({loop for result in results for loop in _loops(result)})))

    @property
    def forms(self) -> tuple[Linear, ...]:
        """The map of what was read out."""
        return tuple(Linear(((loop, 1),)) for loop in self.loops)

    @property
    def extents(self) -> tuple[Linear | None, ...]:
        """The operand's own dimensions, for the sizes of loops; None where they tell of none."""
        return tuple(linear(result) for result in self.results)

    def __call__(self, value: Tensor, sizes: list[int]) -> Tensor:
        """``value`` over ``loops``, of which ``sizes`` has the trip counts of all; a copy.

        Raises:
            UndefinedResult: the map reads outside of the tensor.
        """
        points = {
            loop: torch.arange(sizes[loop]).reshape([-1 if other == loop else 1 for other in self.loops])
            for loop in self.loops
        }
        indices = [value_at(result, points, ()) for result in self.results]
        for index, extent in zip(indices, value.shape, strict=True):
            low, high = int(index.min()), int(index.max())
            if low < 0 or high >= extent:
                why = f"reads elements {low} to {high} of a dimension of size {extent}"
                raise UndefinedResult("a structured op", why)
        return value[tuple(indices)]


def _forward(form: Linear) -> bool:
    return all(factor >= 0 for _, factor in form.coefficients)


def _loops(expression: ir.AffineExpr) -> set[int]:
    if isinstance(expression, ir.AffineDimExpr):
        return {expression.position}
    if isinstance(expression, ir.AffineBinaryExpr):
        return _loops(expression.lhs) | _loops(expression.rhs)
    return set()
