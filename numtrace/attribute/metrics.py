"""How far two tensors are apart: pure functions in float64, over every element.

What counts as too far is for the verdict, how to print it for the report.

Rules that all of them share:

* Numbers hold over the elements finite in all terms; the others are counted by kind. A result is finite, or
  None where it is undefined (or larger than float64 holds).
* An empty tensor differs by 0 from an empty tensor.
* Tensors of up to 64-bit integers, bools and floats of any width may be mixed; the shapes must be equal
  (ValueError). Two integer tensors are subtracted exactly before the one rounding to float64.
* ``where``: an optional bool tensor of the same shape; only where it is true is anything read or counted.
* Positions are indices into the given shape; of equals, the first in row-major order.
* Work goes in flat chunks, so that a temporary takes 2 MB however large the tensors are.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass

import torch
from torch import Tensor

from numtrace.attribute.ulp import in_ulps, is_float_type

# Elements a chunk. Its few float64 temporaries stay in the cache: measured 6 times faster than 4 M elements.
CHUNK = 1 << 18

# Between these a 2-norm computed by plain squaring neither overflows nor loses digits to underflow.
_PLAIN_NORM = (1e-140, 1e150)

_INTEGERS = {torch.bool, torch.int8, torch.int16, torch.int32, torch.int64}
_INTEGERS |= {torch.uint8, torch.uint16, torch.uint32, torch.uint64}


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
        """Peak signal-to-noise ratio 20·log10(peak/rms) in dB; see the function :func:`psnr_db`."""
        if not 0 < peak < math.inf:
            raise ValueError(f"peak is {peak}; give the largest value a pixel can have, a positive number")
        if self.nonfinite or self.l2 is None:
            return None
        if self.identical:
            return math.inf
        return 20 * (math.log10(peak) + math.log10(self.finite) / 2 - math.log10(self.l2))


@dataclass(frozen=True)
class Magnitude:
    """The size of a tensor that is a difference itself; fields as in :class:`Difference`."""

    max_abs: float | None
    at: tuple[int, ...] | None
    mean_abs: float | None
    l2: float | None
    finite: int
    nan: int
    inf: int

    @property
    def nonfinite(self) -> int:
        return self.nan + self.inf


@dataclass(frozen=True)
class Closeness:
    """Whether |a − e| ≤ atol + rtol·|e| holds everywhere.

    ``worst`` is where |a − e| − rtol·|e| is greatest (None when there is nothing to compare) and ``min_atol``
    that value, at least 0: the smallest atol that would pass at the given rtol, None if no atol would.
    """

    ok: bool
    violations: int
    fraction: float
    worst: tuple[int, ...] | None
    min_atol: float | None


def difference(actual: Tensor, expected: Tensor, where: Tensor | None = None) -> Difference:
    """Compare two tensors of one shape."""
    track, kinds = _Track(), Nonfinite()
    norms_a, norms_e, dots = [], [], []
    for start, (a, e), mask in _chunks((actual, expected), where):
        a, e, gap = _subtract(a, e)
        keep, bad = _screen(gap, mask)
        if bad is not None:
            kinds += _kinds(a[bad], e[bad])
        a, e, gap = _zero_others(keep, a, e, gap)
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
        at=_position(track.at, actual.shape),
        mean_abs=None if undefined else track.mean_abs(),
        l2=None if undefined else _finite(l2),
        rel_l2=None if undefined else _ratio(l2, norm_e),
        cosine=cosine,
        finite=track.finite,
        kinds=kinds,
    )


def magnitude(term: Tensor, where: Tensor | None = None) -> Magnitude:
    """The size of a term of an error (introduced, inherited, semantic); any shape."""
    track, nan, inf = _Track(), 0, 0
    for start, (x,), mask in _chunks((term,), where):
        x = _float64(x).abs()
        keep, bad = _screen(x, mask)
        if bad is not None:
            nan += int((bad & x.isnan()).sum())
            inf += int((bad & x.isinf()).sum())
        (x,) = _zero_others(keep, x)
        track.add(x, start, keep)
    undefined = not track.finite and nan + inf > 0
    return Magnitude(
        max_abs=None if undefined else track.max_abs,
        at=_position(track.at, term.shape),
        mean_abs=None if undefined else track.mean_abs(),
        l2=None if undefined else _finite(math.hypot(*track.norms)),
        finite=track.finite,
        nan=nan,
        inf=inf,
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
    for _, (a, e), mask in _chunks((actual, expected), where):
        _, e, gap = _subtract(a, e)
        keep, bad = _screen(gap, mask)
        e, gap = _zero_others(keep, e, gap)
        bad_ones |= bad is not None
        finite += _count(gap, keep)
        most = max(most, in_ulps(gap, e, dtype).max().item())
    return None if bad_ones and not finite else min(most, sys.float_info.max)


def allclose(
    actual: Tensor,
    expected: Tensor,
    atol: float,
    rtol: float,
    *,
    equal_nan: bool = True,
    where: Tensor | None = None,
) -> Closeness:
    """Test |a − e| ≤ atol + rtol·|e|, as |a − e| − rtol·|e| ≤ atol so that ``min_atol`` surely passes.

    Equal infinities are close, any other infinity is not; NaN is close to NaN only, and with ``equal_nan``
    false to nothing. ValueError for a tolerance that is negative or not finite.
    """
    if not (0 <= atol < math.inf and 0 <= rtol < math.inf):
        raise ValueError(f"atol is {atol} and rtol is {rtol}; give finite numbers that are not negative")
    violations, total, worst, at = 0, 0, -math.inf, None
    for start, (a, e), mask in _chunks((actual, expected), where):
        a, e, gap = _subtract(a, e)
        total += _count(a, mask)
        excess = gap - e.abs() * rtol if rtol else gap
        if not math.isfinite(excess.max().item()):
            same = (a == e) | (a.isnan() & e.isnan()) if equal_nan else a == e
            bad = ~gap.isfinite()
            excess = excess.masked_fill(bad & ~same, math.inf).masked_fill_(bad & same, -math.inf)
        if mask is not None:
            excess = excess.masked_fill(~mask, -math.inf)
        most = excess.max().item()
        if most > atol:
            violations += int((excess > atol).sum())
        if most > worst:
            worst, at = most, start + int(excess.argmax())
    return Closeness(
        ok=violations == 0,
        violations=violations,
        fraction=violations / total if total else 0.0,
        worst=_position(at, actual.shape),
        min_atol=_finite(max(worst, 0.0)),
    )


def psnr_db(actual: Tensor, expected: Tensor, peak: float = 1.0) -> float | None:
    """Peak signal-to-noise ratio in dB, 10·log10(peak² / mean (a − e)²); ``peak`` is the largest pixel value.

    ``math.inf`` for identical tensors, which a caller must turn into something JSON can hold. None if any
    element of either is not finite: an average over the rest would flatter a broken picture.
    """
    return difference(actual, expected).psnr_db(peak)


def u8_steps(actual: Tensor, expected: Tensor) -> int | None:
    """The greatest difference in 8-bit levels, max |round(255·clip(a)) − round(255·clip(e))|, clip to [0, 1].

    Halves round to even; infinities clip. None if there is a NaN, which no 8-bit picture can hold.
    """
    most = 0.0
    for _, (a, e), _ in _chunks((actual, expected)):
        a, e = (_float64(x).clamp(0, 1).mul_(255).round_() for x in (a, e))
        steps = (a - e).abs_().max().item()
        if math.isnan(steps):
            return None
        most = max(most, steps)
    return int(most)


def is_image(expected: Tensor) -> bool:
    """Guess whether a tensor is a picture: floats in [0, 1], not all equal, CHW, HWC, NCHW or NHWC.

    The channels are 1, 3 or 4, height and width at least 2. Probabilities can look the same.
    """
    if not expected.is_floating_point() or expected.ndim not in (3, 4) or expected.numel() == 0:
        return False
    first, middle, last = expected.shape[-3:]
    chw = first in (1, 3, 4) and min(middle, last) >= 2
    hwc = last in (1, 3, 4) and min(first, middle) >= 2
    if not (chw or hwc):
        return False
    low, high = math.inf, -math.inf
    for _, (x,), _ in _chunks((expected,)):
        least, most = (float(v) for v in _float64(x).aminmax())
        if not (least >= 0 and most <= 1):  # so written, NaN fails too
            return False
        low, high = min(low, least), max(high, most)
    return low < high


# The greatest `additivity` of terms that are float64 differences of shared operands. With M the largest
# |term| and eps = 2u: four rounded differences are off by u·M each, the two additions of the sum by 2u·M and
# u·M, the last subtraction by a u of what is left: 7u·M = 3.5 eps·M to first order.
ADDITIVITY_BOUND = 4.0


def additivity(
    total: Tensor,
    introduced: Tensor,
    inherited: Tensor,
    semantic: Tensor | None = None,
    scale: Tensor | None = None,
    where: Tensor | None = None,
) -> float:
    """The greatest |total − (introduced + inherited + semantic)| / scale, in units of float64's eps 2^−52.

    The scale of an element is the largest |term| there, or |scale| if that is larger (give the operands when
    terms were not formed from the very same values). All shapes are equal; no ``semantic`` is a zero one.
    Terms made as C − d, d − r, r − ref, C − ref from shared float64 operands stay under
    ``ADDITIVITY_BOUND``. Elements not finite in a term, in the scale or in the sum are left out.
    """
    terms = [introduced, inherited, *([] if semantic is None else [semantic])]
    most = 0.0
    for _, pieces, mask in _chunks((total, *terms, *([] if scale is None else [scale])), where):
        parts = _zero_others(mask, *map(_float64, pieces))
        addends = parts[1 : 1 + len(terms)]
        residual = (parts[0] - sum(addends[1:], addends[0])).abs_()
        largest = parts[0].abs()
        for x in parts[1:]:
            largest = torch.maximum(largest, x.abs())
        # 0/0 where all terms are 0, and NaN where one is not finite: neither says anything against the sum
        relative = (residual / largest).nan_to_num_(nan=0.0, posinf=0.0)
        most = max(most, relative.max().item())
    return most / 2.0**-52


class _Track:
    """Running maximum, sum and norm of non-negative finite chunks."""

    def __init__(self) -> None:
        self.max_abs, self.finite = 0.0, 0
        self.at: int | None = None
        self.sums: list[float] = []
        self.norms: list[float] = []

    def add(self, x: Tensor, start: int, keep: Tensor | None) -> None:
        """Take a chunk that begins at flat index ``start`` and is 0 where it is not to be kept."""
        self.finite += _count(x, keep)
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


def _chunks(
    tensors: Sequence[Tensor], where: Tensor | None = None
) -> Iterator[tuple[int, list[Tensor], Tensor | None]]:
    """Flat pieces of tensors of one shape in row-major order: flat index of the first element, pieces, mask.

    No piece is empty, and none is without an element where its mask is true; no mask means all.
    """
    for x in tensors:
        if x.shape != tensors[0].shape:
            one, other = tuple(tensors[0].shape), tuple(x.shape)
            raise ValueError(f"shapes {one} and {other} differ; give tensors of one shape")
        if x.is_complex():
            raise ValueError(f"a tensor is {x.dtype}; give its real and imaginary parts, one at a time")
    tensors = [x.detach() for x in tensors]
    if where is None:
        for start, pieces in _blocks(tensors, 0):
            yield start, pieces, None
        return
    if where.dtype != torch.bool or where.shape != tensors[0].shape:
        given, wanted = tuple(where.shape), tuple(tensors[0].shape)
        raise ValueError(f"where is {where.dtype} of shape {given}; give torch.bool of shape {wanted}")
    for start, (*pieces, mask) in _blocks([*tensors, where], 0):
        if mask.all():
            yield start, pieces, None
        elif mask.any():
            yield start, pieces, mask


def _blocks(tensors: list[Tensor], start: int) -> Iterator[tuple[int, list[Tensor]]]:
    """Split along leading dims, so that of a view with strides only one piece at a time is copied."""
    count = tensors[0].numel()
    if count == 0:
        return
    if count <= CHUNK:
        yield start, [x.reshape(-1) for x in tensors]
    elif all(x.is_contiguous() for x in tensors):
        flat = [x.view(-1) for x in tensors]
        for i in range(0, count, CHUNK):
            yield start + i, [x[i : i + CHUNK] for x in flat]
    else:
        length = tensors[0].shape[0]
        row = count // length
        step = max(1, CHUNK // row)
        for i in range(0, length, step):
            part = [x[i] if row > CHUNK else x[i : i + step] for x in tensors]
            yield from _blocks(part, start + i * row)


def _screen(gap: Tensor, mask: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
    """Which elements of a chunk to keep (None for all), and which are not finite (None for none)."""
    if math.isfinite(gap.max().item()):
        return mask, None
    keep = gap.isfinite()
    if mask is None:
        return keep, ~keep
    bad = mask & ~keep
    return mask & keep, bad if bad.any() else None


def _zero_others(keep: Tensor | None, *tensors: Tensor) -> tuple[Tensor, ...]:
    """Zero where not to be kept: of no weight in a sum, a norm or a maximum, and positions stay the same."""
    return tensors if keep is None else tuple(x.masked_fill(~keep, 0) for x in tensors)


def _count(x: Tensor, keep: Tensor | None) -> int:
    return x.numel() if keep is None else int(keep.sum())


def _float64(x: Tensor) -> Tensor:
    return x.to(torch.float64)  # the tensor itself if it is one already: never write into the result


def _subtract(a: Tensor, e: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Two chunks in float64, and |a − e| as a new tensor."""
    a64, e64 = _float64(a), _float64(e)
    if a.dtype in _INTEGERS and e.dtype in _INTEGERS and max(a.itemsize, e.itemsize) == 8:
        # 2^53 + 1 is no float64: subtract in halves, which are exact, and round once at the end
        (a_high, a_low), (e_high, e_low) = _halves(a), _halves(e)
        high, low = _float64(a_high - e_high), _float64(a_low - e_low)
        return a64, e64, high.mul_(2.0**32).add_(low).abs_()
    return a64, e64, (a64 - e64).abs_()


def _halves(x: Tensor) -> tuple[Tensor, Tensor]:
    """x = high·2^32 + low, in int64."""
    if x.dtype == torch.uint64:
        bits = x.view(torch.int64)
        return (bits >> 32) & 0xFFFFFFFF, bits & 0xFFFFFFFF
    wide = x.to(torch.int64)
    return wide >> 32, wide & 0xFFFFFFFF


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


def _position(flat: int | None, shape: Iterable[int]) -> tuple[int, ...] | None:
    if flat is None:
        return None
    index = []
    for length in reversed(tuple(shape)):
        flat, remainder = divmod(flat, length)
        index.append(remainder)
    return tuple(reversed(index))


def _ratio(part: float, whole: float) -> float | None:
    if part == 0:
        return 0.0
    return _finite(part / whole) if 0 < whole < math.inf else None


def _finite(x: float) -> float | None:
    return x if math.isfinite(x) else None
