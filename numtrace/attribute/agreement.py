"""Whether an exact value is the source's, and the source's value laid out as a site has it."""

from __future__ import annotations

import torch
from torch import Tensor

from numtrace.attribute.floor import SEMANTIC_FLOOR
from numtrace.attribute.layout import Layout
from numtrace.attribute.magnitude import sizes


def agrees(a: Tensor, b: Tensor) -> bool:
    """Whether two exact values are the same up to :data:`SEMANTIC_FLOOR` of the size of ``b``'s elements.

    Every element is looked at; NaN agrees with NaN and an infinity with itself, undefined with undefined.
    """
    if a.shape != b.shape:
        return False
    a, b = a.reshape(-1), b.reshape(-1)
    top, rest, edge = sizes(b)
    # A wrong layout is seen in the first block already: no need to go through a gigabyte for it.
    return all(
        _within(a[start : start + _BLOCK], b[start : start + _BLOCK], top, rest, edge)
        for start in range(0, a.numel(), _BLOCK)
    )


#: Elements that are compared at a time.
_BLOCK = 1 << 20


def _within(a: Tensor, b: Tensor, top: float, rest: float, edge: float) -> bool:
    a, b = a.double(), b.double()
    gap = (a - b).abs_()
    most = float(gap.max())
    if most <= SEMANTIC_FLOOR * rest:
        return True
    if most == most and rest == top:
        return False
    return bool(_alike(a, b, top, rest, edge).all())


def alike(a: Tensor, b: Tensor) -> Tensor:
    """Which elements of two exact values of one shape are the same, as for :func:`agrees`."""
    return _alike(a.double(), b.double(), *sizes(b))


def _alike(a: Tensor, b: Tensor, top: float, rest: float, edge: float) -> Tensor:
    # As tensors: torch takes two plain numbers for float32.
    large, small = (b.new_tensor(SEMANTIC_FLOOR * size) for size in (top, rest))
    bound = torch.where(b.abs() > edge, large, small)
    return (a == b) | (torch.isnan(a) & torch.isnan(b)) | ((a - b).abs() <= bound)


def nearest(basis: Tensor, candidates: list[tuple[Tensor, Layout]]) -> tuple[Tensor, Layout]:
    """Of the values and layouts that the shapes allow, the one with the least squared difference."""
    # A source op may have several results: the indices of a sort are not its values.
    floats = basis.is_floating_point()
    candidates = [one for one in candidates if one[0].is_floating_point() == floats] or candidates
    if len(candidates) == 1 or candidates[0][1].permutation is None:
        return candidates[0]  # row-major, unless the shapes forbid it

    def distance(candidate: tuple[Tensor, Layout]) -> float:
        source, layout = candidate
        gap = layout.view(basis).double() - layout.place(source, basis).double()
        return float(gap.nan_to_num(0.0, 0.0, 0.0).square_().sum())

    return min(candidates, key=distance)


def placed_in(basis: Tensor, layout: Layout, source: Tensor) -> Tensor:
    """The source value in the site's layout; outside of its window what the program has there."""
    placed = layout.place(source, basis)
    if layout.window is None:
        return placed.to(basis.dtype)
    whole = basis.clone()
    layout.view(whole).copy_(placed)
    return whole
