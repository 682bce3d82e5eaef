"""Comparisons of floats, and choices by them.

A comparison that only chooses between what it compares, as a relu is written, is a clamp. It is evaluated as one: a
choice element by element costs a mispredicted branch wherever the data is of either sign, 15 times as much.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import threshold

from numtrace.evaluate.op import Op
from numtrace.evaluate.registry import evaluates

# Predicates as numbered by arith::CmpFPredicate: 1-7 ordered, 8-14 the unordered ones.
_COMPARE = {1: torch.eq, 2: torch.gt, 3: torch.ge, 4: torch.lt, 5: torch.le}
_GREATER, _LESS = (2, 3, 9, 10), (4, 5, 11, 12)
_OR_EQUAL = (3, 5, 10, 12)

#: What torch clamps and sums.
_CLAMPED = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


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
    number_first = condition.a.numel() == 1
    value, limit = (condition.b, condition.a) if number_first else (condition.a, condition.b)
    clamp = clamp_of(condition.op, op, number_first)
    found = None if clamp is None else clamp(value, limit)
    return torch.where(condition.made(), a, b) if found is None else found


@dataclass(frozen=True, slots=True)
class Clamp:
    """The choice between a value and a number, the limit.

    ``upper``: the greater one is chosen, else the lesser. ``is_limit``: of two equal ones it is the limit.
    """

    upper: bool
    is_limit: bool

    def __call__(self, value: Tensor, limit: Tensor) -> Tensor | None:
        """What is chosen, bit for bit; None where a clamp does not tell: beside NaN, or between zeros."""
        if limit.numel() != 1 or limit.dim() > value.dim() or value.dtype not in _CLAMPED:
            return None
        number = limit.item()
        if number != 0:
            found = value.clamp_min(number) if self.upper else value.clamp_max(number)
        elif self.upper and self.is_limit:
            found = threshold(value, number, number)
        else:
            return None
        return None if bool(torch.isnan(found.sum())) else found


def clamp_of(comparison: Op, choice: Op, number_first: bool) -> Clamp | None:
    """What ``choice`` between the operands of ``comparison`` is, of which one is a number; None if it is no clamp."""
    predicate = comparison.integer("predicate")
    if predicate not in _GREATER + _LESS:
        return None
    first = choice.operands[1] == comparison.operands[0]  # taken where the comparison holds
    return Clamp((predicate in _GREATER) == first, (predicate in _OR_EQUAL) == (first == number_first))
