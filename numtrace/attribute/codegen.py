"""Is what a dispatch made within what correct code may make of it? C against d_Q(x_C) and its bound."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from numtrace.attribute.chunks import position
from numtrace.evaluate.formats import FORMATS
from numtrace.evaluate.typed.value import Typed

#: Elements of one block.
_BLOCK = 1 << 18
#: The bound is float32 arithmetic of some tens of steps, each off by 2^-24 at most.
_SLACK = 1 + 2.0**-18


@dataclass(slots=True)
class Distance:
    """How far a site is from its typed meaning, in units of the bound.

    ``ratio``: the greatest |C - Q| over its bound, infinite where they differ and may not at all. ``over``: how
    many elements are beyond the bound. ``at``: the flat index of the worst. ``free``: elements of which the bound
    says nothing (a near tie of an index, an overflow in doubt).
    """

    ratio: float = 0.0
    over: int = 0
    at: int = -1
    free: int = 0


def distance(compiled: Tensor, value: Typed, dtype: str, defined: Tensor | None = None) -> Distance:
    """Compares every element of ``compiled`` with ``value``.

    Args:
        compiled: C, in the site's type.
        value: the typed dispatch on the same inputs; same shape.
        dtype: the site's element type.
        defined: a flat mask of the elements that the program defines; None for all.

    NaN is like NaN and an infinity like itself. A number against a NaN or an infinity is beyond any finite bound,
    but for an infinity where the bound of a number reaches the largest one of the type: an overflow in doubt.
    """
    found = Distance()
    flat = [compiled.reshape(-1), value.typed.reshape(-1)]
    bound = None if value.bound is None else value.bound.reshape(-1)
    for start in range(0, flat[0].numel(), _BLOCK):
        c, q = (lane[start : start + _BLOCK].double() for lane in flat)
        error = None if bound is None else bound[start : start + _BLOCK].double().mul_(_SLACK)
        ratio = _ratios(c, q, error, dtype)
        if defined is not None:
            ratio = torch.where(defined[start : start + _BLOCK], ratio, 0.0)
        worst = float(ratio.max())
        if worst > found.ratio:
            found.ratio, found.at = worst, start + int(ratio.argmax())
        if worst > 1:
            found.over += int((ratio > 1).sum())
        if error is not None and not math.isfinite(float(error.sum())):
            found.free += int((~torch.isfinite(error)).sum())
    return found


def _ratios(c: Tensor, q: Tensor, error: Tensor | None, dtype: str) -> Tensor:
    gap = (c - q).abs_()
    ratio = torch.where(gap == 0, 0.0, torch.inf if error is None else gap / error)
    if math.isfinite(float(gap.sum())) and (error is None or math.isfinite(float(error.sum()))):
        return ratio
    same = (c == q) | (torch.isnan(c) & torch.isnan(q))
    odd = ~(torch.isfinite(c) & torch.isfinite(q))
    ratio = torch.where(odd, torch.inf, ratio)
    if error is not None:
        doubt = ~torch.isfinite(error)
        if dtype in FORMATS:
            doubt |= torch.isinf(c) & torch.isfinite(q) & (q.abs() + error >= FORMATS[dtype].max_finite)
        ratio = torch.where(doubt, 0.0, ratio)
    return torch.where(same, 0.0, ratio)


def free_share(compiled: Tensor, value: Typed, defined: Tensor | None = None) -> float:
    """What part of Σ|C - Q|² is that of elements of which the bound says nothing; 0 where there is no error.

    Args as of :func:`distance`.
    """
    gap = (compiled.reshape(-1).double() - value.wide.reshape(-1).double()).nan_to_num_(0.0, 0.0, 0.0)
    if defined is not None:
        gap = torch.where(defined, gap, 0.0)
    square = gap.square_()
    total = float(square.sum())
    return float(square[~torch.isfinite(value.error.reshape(-1))].sum()) / total if total else 0.0


def as_in_order(compiled: Tensor, near: Typed, ordered: Tensor, defined: Tensor | None = None) -> bool:
    """Whether C is nowhere farther from the typed value than another evaluation that the IR allows, and the bound.

    Args:
        compiled: C.
        near: the typed dispatch, with its bound.
        ordered: the same with sums in the order of the IR; all of one shape.
        defined: as for :func:`distance`.
    """
    flat = [lane.reshape(-1) for lane in (compiled, near.typed, ordered, near.error)]
    for start in range(0, flat[0].numel(), _BLOCK):
        made, middle, other, error = (lane[start : start + _BLOCK].double() for lane in flat)
        within = (
            ((made - middle).abs() <= (other - middle).abs() + error) | (made == middle) | (made == other)
        )
        if defined is not None:
            within |= ~defined[start : start + _BLOCK]
        if not bool(within.all()):
            return False
    return True


def judged(near: Distance, far: Distance | None) -> str:
    """``within``, ``suspect`` (over the probabilistic bound) or ``proven`` (over the deterministic one ``far`` too).

    Without a deterministic bound nothing is proven.
    """
    if near.ratio <= 1:
        return "within"
    return "proven" if far is not None and far.ratio > 1 else "suspect"


def finite(ratio: float) -> float | None:
    return ratio if math.isfinite(ratio) else None


def record_of(near: Distance, far: Distance | None, shape: tuple[int, ...]) -> dict[str, Any]:
    """The report's fields of a site: ``bound_ratio``, ``code`` and what goes with them."""
    fields: dict[str, Any] = {"bound_ratio": finite(near.ratio), "code": judged(near, far)}
    if near.free and near.free == math.prod(shape):
        fields |= {"bound_ratio": None, "code": "unbounded", "unbounded_reason": "every element is in doubt"}
    if near.free:
        fields["free"] = near.free
    if near.ratio > 1:
        fields["over_bound"] = near.over
        fields["over_at"] = list(position(near.at, shape) or ())
        fields["proven_ratio"] = None if far is None else finite(far.ratio)
    return fields
