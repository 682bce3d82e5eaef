"""NaN and infinity that correct code must make: those of both meanings that no doubt about an operand can undo.

What leaves the range of a type by rounding is infinite in one meaning and a number in the other: that stays in doubt.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import torch
from torch import Tensor

from numtrace.evaluate.op import Op
from numtrace.evaluate.typed.value import Typed, lift


def special(exact: Tensor, typed: Tensor) -> Tensor:
    """A mask of the elements that are NaN, or the same infinity, in both meanings."""
    wide = typed.double()
    return (torch.isnan(exact) & torch.isnan(wide)) | (torch.isinf(wide) & (exact == wide))


def sure(value: Typed) -> Tensor:
    """A mask of the elements that are NaN or infinite for sure."""
    return special(value.exact, value.typed) & torch.isfinite(value.error)


def sure_nan(value: Typed) -> Tensor:
    return torch.isnan(value.exact) & torch.isnan(value.typed) & torch.isfinite(value.error)


def settled(
    bound: Tensor, exact: Tensor, typed: Tensor, function: Callable[..., Tensor], values: Sequence[Typed]
) -> Tensor:
    """``bound``, zero where ``function`` is the same NaN or infinity of all that its operands may be.

    Between its ends an operand may be zero; one without a bound may be anything, an infinity and 1 among it. A function
    that is monotone on either side of zero takes its extremes there.
    """
    unsure = special(exact, typed) & ~torch.isfinite(bound)
    if not bool(unsure.any()):
        return bound
    at = typed.double()[unsure]
    certain = torch.ones(at.shape, dtype=torch.bool)
    for corner in product(*(_reached(value, unsure) for value in values)):
        made = function(*corner)
        certain &= (made == at) | (torch.isnan(made) & torch.isnan(at))
    settled_ = bound.clone()
    settled_[unsure] = torch.where(certain, 0.0, bound[unsure])
    return settled_


def _reached(value: Typed, mask: Tensor) -> list[Tensor]:
    """What an operand may be at the elements of ``mask``: its ends, itself, and zero where that is between them."""
    middle, error = (lane.expand(mask.shape)[mask].double() for lane in (value.wide, value.error))
    wild = ~torch.isfinite(error)
    low, high = (torch.where(wild, sign * torch.inf, middle + sign * error) for sign in (-1, 1))
    middle = torch.where(wild, 1.0, middle)
    return [low, high, middle, torch.where((low < 0) & (high > 0), 0.0, middle)]


def settled_products(
    bound: Tensor,
    exact: Tensor,
    typed: Tensor,
    values: tuple[Typed, Typed, Typed],
    summed: Callable[[Tensor, Tensor, Tensor], Tensor],
    limit: float,
) -> Tensor:
    """``bound`` of a sum of products, zero where it is NaN or infinite for sure.

    It is NaN where a factor is, whatever the others are. Where no factor is in doubt, it is what both meanings have,
    if the finite terms do not leave the range of the type by themselves: beyond ``limit``.

    Args:
        values: the two factors and what the sum begins with.
        summed: the contraction of three tensors shaped like them.
    """
    unsure = special(exact, typed) & ~torch.isfinite(bound)
    if not bool(unsure.any()):
        return bound
    a, b, start = values
    marks = [sure_nan(value).float() for value in values]
    ones = [torch.ones(value.exact.shape) for value in (a, b)]
    certain = summed(marks[0], ones[1], marks[2]) > 0
    certain |= summed(ones[0], marks[1], torch.zeros(start.exact.shape)) > 0
    if not any(value.bound is not None and bool(value.bound.any()) for value in values):
        numbers = [value.exact.abs().nan_to_num(0.0, 0.0, 0.0) for value in values]
        certain |= torch.isnan(typed) | (summed(*numbers) < limit / 2)
    return torch.where(unsure & certain, 0.0, bound)


def settled_sum(
    bound: Tensor,
    exact: Tensor,
    typed: Tensor,
    start: Typed,
    terms: Typed,
    total: Callable[[Tensor, Tensor], Tensor],
    limit: float,
) -> Tensor:
    """The same for a sum of ``terms``; ``total`` sums what is shaped like the start and like the terms."""
    unsure = special(exact, typed) & ~torch.isfinite(bound)
    if not bool(unsure.any()):
        return bound
    both = (start, terms)
    certain = total(*(sure_nan(value).float() for value in both)) > 0
    wild = total(*(_wild(value).float() for value in both)) > 0
    numbers = [(value.exact.abs() + value.error).nan_to_num(0.0, 0.0, 0.0).double() for value in both]
    certain |= ~wild & (torch.isnan(typed) | (total(*numbers) < limit / 2))
    return torch.where(unsure & certain, 0.0, bound)


def _wild(value: Typed) -> Tensor:
    """What may be NaN, infinite or neither."""
    return ~torch.isfinite(value.error) | (~torch.isfinite(value.wide) & ~sure(value))


def assumed(op: Op) -> tuple[bool, bool]:
    """Whether the IR lets code assume that an op meets no NaN, and no infinity (``fastmath<nnan, ninf>``)."""
    found = op.cache.get("assumed")
    if found is None:
        text = str(op.attributes.get("fastmath", ""))
        fast = "fast>" in text
        found = op.cache["assumed"] = (fast or "nnan" in text, fast or "ninf" in text)
    return found


def unassumed(op: Op, result: Typed, operands: Sequence[Any]) -> Typed:
    """``result``, free where its op meets or makes what code may assume that it does not."""
    no_nan, no_infinity = assumed(op)
    met = torch.zeros((), dtype=torch.bool)
    typed = zip(operands, op.operand_types, strict=True)
    given = [lift(value, type_) for value, type_ in typed if isinstance(value, Tensor | Typed)]
    for value in (result, *given):
        for lane in (value.exact, value.typed):
            if lane.is_floating_point():
                met = met | (torch.isnan(lane) & no_nan) | (torch.isinf(lane) & no_infinity)
    if not bool(met.any()):
        return result
    return Typed(result.exact, result.typed, torch.where(met, torch.inf, result.error), result.same)
