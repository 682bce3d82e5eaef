"""Comparisons of floats and choices by them, with the doubt of a near tie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from numtrace.errors import UncoveredOp
from numtrace.evaluate import choices
from numtrace.evaluate.op import Op
from numtrace.evaluate.typed.arithmetic import values_of
from numtrace.evaluate.typed.registry import carries
from numtrace.evaluate.typed.special import assumed, sure_nan
from numtrace.evaluate.typed.value import Typed, bounded, element_of, together
from numtrace.evaluate.types import is_inexact


@dataclass(frozen=True, slots=True)
class Comparison:
    """As :class:`numtrace.evaluate.choices.Comparison`, in both meanings."""

    op: Op
    a: Typed
    b: Typed

    def made(self) -> Typed:
        return compared(self.op, self.a, self.b)


@carries("arith.cmpf")
def compare(op: Op, machine, *operands: Any) -> Typed | Comparison:
    a, b = values_of(op, operands)
    return Comparison(op, a, b) if op.chooses and not any(assumed(op)) else compared(op, a, b)


def compared(op: Op, a: Typed, b: Typed) -> Typed:
    """In doubt (bound 1) where the operands are no further apart than their bounds: a near tie."""
    exact = choices.compare(op, a.exact, b.exact)
    if together((a, b)) and not bounded((a, b)):
        return Typed(exact, exact)
    typed = choices.compare(op, a.wide, b.wide)
    bound = None
    if bounded((a, b)):
        error = (a.error + b.error).double()
        # Not the other way round: of a NaN or an infinity in doubt nothing is known to be apart.
        bound = (~((a.wide - b.wide).abs() > error) & (error != 0)).float()
        if bool(bound.any()):  # with what is no number for sure, the comparison is certain
            bound = torch.where(sure_nan(a) | sure_nan(b), 0.0, bound)
    return Typed(exact, typed, bound, False)


@carries("arith.select")
def select(op: Op, machine, condition: Any, *operands: Any) -> Any:
    if isinstance(condition, Comparison):
        clamped = _clamped(op, condition)
        if clamped is not None:
            return clamped
    if isinstance(condition, Comparison | choices.Comparison):
        condition = condition.made()
    plain = not any(isinstance(value, Typed) for value in (condition, *operands))
    if plain and not is_inexact(element_of(op)):
        return choices.select(op, machine, condition, *operands)  # of indices, and stays one
    condition, a, b = values_of(op, (condition, *operands))
    exact = torch.where(condition.exact, a.exact, b.exact)
    typed = torch.where(condition.typed, a.typed, b.typed)
    bound = None
    if bounded((condition, a, b)):
        bound = torch.where(condition.typed, a.error, b.error)
        if condition.bound is not None:
            if a.exact.is_complex():
                raise UncoveredOp(op.name, "no error bound is known of a choice of complex numbers in doubt")
            either = (a.wide.double() - b.wide.double()).abs().float() + torch.maximum(a.error, b.error)
            bound = torch.where(condition.bound != 0, either.nan_to_num(torch.inf, torch.inf), bound)
    return Typed(exact, typed, bound, together((condition, a, b)))


def _clamped(op: Op, of: Comparison) -> Typed | None:
    """A choice beside a number that nothing was rounded of, as a clamp; None where it is none."""
    number_first = of.a.exact.numel() == 1
    value, limit = (of.b, of.a) if number_first else (of.a, of.b)
    clamp = choices.clamp_of(of.op, op, number_first)
    if clamp is None or limit.bound is not None or not limit.same:
        return None
    exact = clamp(value.exact, limit.exact)
    typed = exact if value.same and value.typed is value.exact else clamp(value.typed, limit.typed)
    if exact is None or typed is None:
        return None
    bound = None if value.bound is None else _beyond(value.typed, limit.typed, value.bound, clamp.upper)
    if bound is not None and not bool(torch.isfinite(bound.sum())):
        return None
    return Typed(exact, typed, bound, value.same)


def _beyond(value: Tensor, limit: Tensor, bound: Tensor, upper: bool) -> Tensor:
    """How far a clamped value may be off: by no more than it is, and not at all where that does not reach the limit."""
    value, limit = value.double(), limit.double()  # their own type may lose what is left of the difference
    reached = (value - limit if upper else limit - value).float()
    # Where the two cancel, both roundings of float32 are of the size of the bound.
    return torch.minimum(bound, reached.add_(bound, alpha=1 + 2.0**-22).clamp_min_(0.0))
