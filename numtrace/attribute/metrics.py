"""How far two tensors are apart: pure functions in float64, over every element.

What counts as too far is for the verdict, how to print it for the report.

* Numbers hold over the elements finite in both; the others are counted by kind. A result is finite, or
  None where it is undefined (or larger than float64 holds).
* An empty tensor differs by 0 from an empty tensor.
* Shapes, types, ``where`` and positions: see :mod:`numtrace.attribute.chunks`.
"""

from __future__ import annotations

import math
import sys
from dataclasses import astuple, dataclass

import torch
from torch import Tensor

from numtrace.attribute.chunks import chunks, count, position, screen, subtract, zero_others
from numtrace.evaluate.formats import in_ulps, is_float_type

# Between these a 2-norm computed by plain squaring neither overflows nor loses digits to underflow.
_PLAIN_NORM = (1e-140, 1e150)


@dataclass(frozen=True)
class Nonfinite:
    """Counts of elements left out of a comparison, by kind; an element is of one kind only."""

    nan_both: int = 0
    nan_actual: int = 0  # NaN in actual only, whatever else expected holds
    nan_expected: int = 0
    inf_equal: int = 0  # the same infinity in both
    inf_opposite: int = 0
    inf_actual: int = 0  # infinite where a finite value is expected
    inf_expected: int = 0
    overflow: int = 0  # both finite, their difference beyond float64

    @property
    def total(self) -> int:
        return sum(astuple(self))

    @property
    def disagreeing(self) -> int:
        """Those where the two sides are not the same NaN or infinity."""
        return self.total - self.nan_both - self.inf_equal

    def __add__(self, other: Nonfinite) -> Nonfinite:
        return Nonfinite(*map(sum, zip(astuple(self), astuple(other), strict=True)))


@dataclass(frozen=True)
class Difference:
    """Actual minus expected; ``max_abs`` to ``cosine`` hold over the ``finite`` elements.

    ``at`` is where |actual − expected| is greatest, None when nothing differs. ``l2`` is ‖a − e‖₂ and
    ``rel_l2`` is ‖a − e‖₂ / ‖e‖₂: 0 when a = e = 0, None when only e = 0. ``cosine`` is a·e / (‖a‖‖e‖),
    None when a or e is 0. If there are elements but none is finite, every number is None.
    """

    max_abs: float | None
    at: tuple[int, ...] | None
    mean_abs: float | None
    l2: float | None
    rel_l2: float | None
    cosine: float | None
    finite: int
    kinds: Nonfinite

    @property
    def nonfinite(self) -> int:
        return self.kinds.total

    @property
    def identical(self) -> bool:
        """Equal in every element; −0 equals 0, NaN equals NaN."""
        return not self.max_abs and not self.kinds.disagreeing

    def psnr_db(self, peak: float = 1.0) -> float | None:
        """Peak signal-to-noise ratio in dB, 10·log10(peak² / mean (a − e)²); ``peak`` is the largest pixel value.

        ``math.inf`` for identical tensors, which a caller must turn into something JSON can hold. None if any
        element of either is not finite: an average over the rest would flatter a broken picture.
        """
        if not 0 < peak < math.inf:
            raise ValueError(f"peak is {peak}; give the largest value a pixel can have, a positive number")
        if self.nonfinite or self.l2 is None:
            return None
        if self.identical:
            return math.inf
        return 20 * (math.log10(peak) + math.log10(self.finite) / 2 - math.log10(self.l2))


def difference(actual: Tensor, expected: Tensor, where: Tensor | None = None) -> Difference:
    """Compare two tensors of one shape."""
    track, kinds = _Track(), Nonfinite()
    norms_a, norms_e, dots = [], [], []
    for start, (a, e), mask in chunks((actual, expected), where):
        a, e, gap = subtract(a, e)
        keep, bad = screen(gap, mask)
        if bad is not None:
            kinds += _kinds(a[bad], e[bad])
        a, e, gap = zero_others(keep, a, e, gap)
        track.add(gap, start, keep)
        norms_a.append(_norm(a))
        norms_e.append(_norm(e))
        dots.append(_cosine(a, e, norms_a[-1], norms_e[-1]))
    norm_a, norm_e = math.hypot(*norms_a), math.hypot(*norms_e)
    l2, cosine = math.hypot(*track.norms), None
    if 0 < norm_a < math.inf and 0 < norm_e < math.inf:
        parts = zip(dots, norms_a, norms_e, strict=True)
        cosine = math.fsum(dot * (a / norm_a) * (e / norm_e) for dot, a, e in parts)
        cosine = max(-1.0, min(1.0, cosine))
    undefined = not track.finite and kinds.total > 0
    return Difference(
        max_abs=None if undefined else track.max_abs,
        at=position(track.at, actual.shape),
        mean_abs=None if undefined else track.mean_abs(),
        l2=None if undefined else _finite(l2),
        rel_l2=None if undefined else _ratio(l2, norm_e),
        cosine=cosine,
        finite=track.finite,
        kinds=kinds,
    )


def max_ulp(actual: Tensor, expected: Tensor, dtype: str, where: Tensor | None = None) -> float | None:
    """The greatest |a − e| / ulp(e), in units in the last place of ``dtype`` (``f32``, ``bf16``, ...).

    ``expected`` is the exact value and need not be of that type: a result rounded correctly has at most 0.5.
    Below the smallest normal number the ulp stays that of subnormals, above the largest finite one that of
    the last binade; so a flushed denormal counts up to 2^(p−1), and an error where 0 is expected far more.
    The answer stops at ``sys.float_info.max``. None for an integer ``dtype``, or if no element is finite;
    ValueError for an unknown ``dtype``.
    """
    if not is_float_type(dtype):
        return None
    most, finite, bad_ones = 0.0, 0, False
    for _, (a, e), mask in chunks((actual, expected), where):
        _, e, gap = subtract(a, e)
        keep, bad = screen(gap, mask)
        e, gap = zero_others(keep, e, gap)
        bad_ones |= bad is not None
        finite += count(gap, keep)
        most = max(most, in_ulps(gap, e, dtype).max().item())
    return None if bad_ones and not finite else min(most, sys.float_info.max)


class _Track:
    """Running maximum, sum and norm of non-negative finite chunks."""

    def __init__(self) -> None:
        self.max_abs, self.finite = 0.0, 0
        self.at: int | None = None
        self.sums: list[float] = []
        self.norms: list[float] = []

    def add(self, x: Tensor, start: int, keep: Tensor | None) -> None:
        """Take a chunk that begins at flat index ``start`` and is 0 where it is not to be kept."""
        self.finite += count(x, keep)
        most = x.max().item()
        if most == 0:
            return
        if most > self.max_abs:
            self.max_abs, self.at = most, start + int(x.argmax())
        self.sums.append(x.sum().item())
        self.norms.append(_norm(x))

    def mean_abs(self) -> float | None:
        try:
            return _finite(math.fsum(self.sums) / max(self.finite, 1))
        except OverflowError:  # finite parts whose sum is not
            return None


def _norm(x: Tensor) -> float:
    """2-norm of a flat finite tensor; scaled when the squares would overflow or underflow."""
    norm = math.sqrt(torch.dot(x, x).item())
    if _PLAIN_NORM[0] < norm < _PLAIN_NORM[1]:
        return norm
    largest = x.abs().max().item()
    if largest == 0:
        return 0.0
    y = x / largest
    return largest * math.sqrt(torch.dot(y, y).item())


def _cosine(a: Tensor, e: Tensor, norm_a: float, norm_e: float) -> float:
    """a·e / (‖a‖‖e‖), 0 where it is undefined: its weight in the whole is then 0."""
    if not (0 < norm_a < math.inf and 0 < norm_e < math.inf):
        return 0.0
    if all(_PLAIN_NORM[0] < n < _PLAIN_NORM[1] for n in (norm_a, norm_e)):
        return torch.dot(a, e).item() / norm_a / norm_e
    return torch.dot(a / norm_a, e / norm_e).item()


def _kinds(a: Tensor, e: Tensor) -> Nonfinite:
    """Count pairs of which no finite difference exists."""
    nan_a, nan_e, inf_a, inf_e = a.isnan(), e.isnan(), a.isinf(), e.isinf()
    return Nonfinite(
        nan_both=int((nan_a & nan_e).sum()),
        nan_actual=int((nan_a & ~nan_e).sum()),
        nan_expected=int((nan_e & ~nan_a).sum()),
        inf_equal=int((inf_a & (a == e)).sum()),
        inf_opposite=int((inf_a & inf_e & (a != e)).sum()),
        inf_actual=int((inf_a & e.isfinite()).sum()),
        inf_expected=int((inf_e & a.isfinite()).sum()),
        overflow=int((a.isfinite() & e.isfinite()).sum()),
    )


def _ratio(part: float, whole: float) -> float | None:
    if part == 0:
        return 0.0
    return _finite(part / whole) if 0 < whole < math.inf else None


def _finite(x: float) -> float | None:
    return x if math.isfinite(x) else None
