"""Flat float64 chunks of tensors of one shape, and the rules that every comparison of tensors shares.

* Tensors of up to 64-bit integers, bools and floats of any width may be mixed; the shapes must be equal
  (ValueError). Two integer tensors are subtracted exactly before the one rounding to float64.
* ``where``: an optional bool tensor of the same shape; only where it is true is anything read or counted.
* Positions are indices into the given shape; of equals, the first in row-major order.
* Work goes in flat chunks, so that a temporary takes 2 MB however large the tensors are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import Tensor

# Elements a chunk. Its few float64 temporaries stay in the cache: measured 6 times faster than 4 M elements.
CHUNK = 1 << 18

_INTEGERS = {torch.bool, torch.int8, torch.int16, torch.int32, torch.int64}
_INTEGERS |= {torch.uint8, torch.uint16, torch.uint32, torch.uint64}


def chunks(
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
    total = tensors[0].numel()
    if total == 0:
        return
    if total <= CHUNK:
        yield start, [x.reshape(-1) for x in tensors]
    elif all(x.is_contiguous() for x in tensors):
        flat = [x.view(-1) for x in tensors]
        for i in range(0, total, CHUNK):
            yield start + i, [x[i : i + CHUNK] for x in flat]
    else:
        length = tensors[0].shape[0]
        row = total // length
        step = max(1, CHUNK // row)
        for i in range(0, length, step):
            part = [x[i] if row > CHUNK else x[i : i + step] for x in tensors]
            yield from _blocks(part, start + i * row)


def screen(gap: Tensor, mask: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
    """Which elements of a chunk to keep (None for all), and which are not finite (None for none)."""
    if math.isfinite(gap.max().item()):
        return mask, None
    keep = gap.isfinite()
    if mask is None:
        return keep, ~keep
    bad = mask & ~keep
    return mask & keep, bad if bad.any() else None


def zero_others(keep: Tensor | None, *tensors: Tensor) -> tuple[Tensor, ...]:
    """Zero where not to be kept: of no weight in a sum, a norm or a maximum, and positions stay the same."""
    return tensors if keep is None else tuple(x.masked_fill(~keep, 0) for x in tensors)


def count(x: Tensor, keep: Tensor | None) -> int:
    """How many elements of a chunk are kept."""
    return x.numel() if keep is None else int(keep.sum())


def float64(x: Tensor) -> Tensor:
    """A chunk in float64: the tensor itself if it is one already, so never write into the result."""
    return x.to(torch.float64)


def subtract(a: Tensor, e: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Two chunks in float64, and |a − e| as a new tensor."""
    a64, e64 = float64(a), float64(e)
    if a.dtype in _INTEGERS and e.dtype in _INTEGERS and max(a.itemsize, e.itemsize) == 8:
        # 2^53 + 1 is no float64: subtract in halves, which are exact, and round once at the end
        (a_high, a_low), (e_high, e_low) = _halves(a), _halves(e)
        high, low = float64(a_high - e_high), float64(a_low - e_low)
        return a64, e64, high.mul_(2.0**32).add_(low).abs_()
    return a64, e64, (a64 - e64).abs_()


def _halves(x: Tensor) -> tuple[Tensor, Tensor]:
    """x = high·2^32 + low, in int64."""
    if x.dtype == torch.uint64:
        bits = x.view(torch.int64)
        return (bits >> 32) & 0xFFFFFFFF, bits & 0xFFFFFFFF
    wide = x.to(torch.int64)
    return wide >> 32, wide & 0xFFFFFFFF


def position(flat: int | None, shape: Iterable[int]) -> tuple[int, ...] | None:
    """The index into ``shape`` of a flat one; None stays None."""
    if flat is None:
        return None
    index = []
    for length in reversed(tuple(shape)):
        flat, remainder = divmod(flat, length)
        index.append(remainder)
    return tuple(reversed(index))
