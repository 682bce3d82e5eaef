"""Comparisons of floats, and choices by them.

A comparison that only chooses between what it compares, as a relu is written, is a clamp. It is evaluated as one: a
choice element by element costs a mispredicted branch wherever the data is of either sign, 15 times as much.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import threshold

from numtrace.evaluate.program import Op
from numtrace.evaluate.registry import evaluates

# Predicates as numbered by arith::CmpFPredicate: 1-7 ordered, 8-14 the unordered ones.
_COMPARE = {1: torch.eq, 2: torch.gt, 3: torch.ge, 4: torch.lt, 5: torch.le}
_GREATER, _LESS = (2, 3, 9, 10), (4, 5, 11, 12)
_OR_EQUAL = (3, 5, 10, 12)


@dataclass(frozen=True, slots=True)
class Comparison:
    """One that is not made yet, as nothing but choices between ``a`` and ``b`` reads it."""

    op: Op
    a: Tensor
    b: Tensor

    def made(self) -> Tensor:
        return compare(self.op, self.a, self.b)


def compare(op: Op, a: Tensor, b: Tensor) -> Tensor:
    """The truth values of ``arith.cmpf``."""
    predicate = op.integer("predicate")
    if predicate in _COMPARE:
        return _COMPARE[predicate](a, b)  # false where there is a NaN
    nan = torch.isnan(a) | torch.isnan(b)
    if predicate in (0, 15):
        return torch.full(nan.shape, predicate == 15)
    if predicate in (7, 14):
        return nan if predicate == 14 else ~nan
    if predicate in (6, 13):
        return torch.ne(a, b) & ~nan if predicate == 6 else torch.ne(a, b)
    return _COMPARE[predicate - 7](a, b) | nan


@evaluates("arith.cmpf")
def cmpf(op: Op, machine, a: Tensor, b: Tensor) -> Tensor | Comparison:
    return Comparison(op, a, b) if op.chooses else compare(op, a, b)


@evaluates("arith.select")
def select(op: Op, machine, condition: Tensor | Comparison, a: Tensor, b: Tensor) -> Tensor:
    if isinstance(condition, Tensor):
        return torch.where(condition, a, b)
    clamped = _clamped(condition, first=op.operands[1] == condition.op.operands[0])
    return torch.where(condition.made(), a, b) if clamped is None else clamped


def _clamped(of: Comparison, *, first: bool) -> Tensor | None:
    """The choice of a comparison with a number, where it is no other than a clamp, bit for bit; else None.

    ``first``: whether the first of what is compared is taken where the comparison holds.
    """
    predicate = of.op.integer("predicate")
    if predicate not in _GREATER + _LESS:
        return None
    (value, other), upper = (of.a, of.b), (predicate in _GREATER) == first
    if value.numel() == 1:
        value, other, first = other, value, not first
    if other.numel() != 1 or other.dim() > value.dim() or not value.is_floating_point():
        return None
    limit = other.item()
    if limit != 0:
        found = value.clamp_min(limit) if upper else value.clamp_max(limit)
    elif upper and (predicate in _OR_EQUAL) != first:
        found = threshold(value, limit, limit)  # of two zeros the limit, whatever their signs
    else:
        return None
    return None if bool(torch.isnan(found.sum())) else found
