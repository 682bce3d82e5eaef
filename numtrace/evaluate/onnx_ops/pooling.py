"""Windows that are averaged, or of which the largest element is taken."""

from __future__ import annotations

from functools import reduce
from itertools import product
from typing import Any

import torch
from torch import Tensor

from numtrace.evaluate.extremes import amax, maximum
from numtrace.evaluate.onnx_ops.registry import evaluates_onnx, given
from numtrace.evaluate.onnx_ops.windows import READS, Windows, windows
from numtrace.evaluate.op import Op


@evaluates_onnx("AveragePool", reads=(*READS, "ceil_mode", "count_include_pad"), since=7)
def average_pool(op: Op, x: Tensor) -> Tensor:
    """Averages over windows of (n, c, *spatial).

    ``count_include_pad`` counts what was padded, but never what a window of ``ceil_mode`` has beyond the padding.
    """
    at = windows(op, x.shape[2:], given(op, "kernel_shape"))
    counts = _counts(op, x, at)
    counted = torch.ones(x.shape[2:], dtype=x.dtype)
    included = float(given(op, "count_include_pad", 0))
    total, number = (
        reduce(torch.add, _taken(value, at, counts, inside))
        for value, inside in ((x, 0.0), (counted, included))
    )
    return total / number


@evaluates_onnx("LpPool", reads=(*READS, "ceil_mode", "p"), since=18)
def lp_pool(op: Op, x: Tensor) -> Tensor:
    at, p = windows(op, x.shape[2:], given(op, "kernel_shape")), given(op, "p", 2)
    return reduce(torch.add, _taken(x.abs() ** p, at, _counts(op, x, at), 0.0)) ** (1 / p)


@evaluates_onnx("MaxPool", reads=(*READS, "ceil_mode", "storage_order"), since=1)
def max_pool(op: Op, x: Tensor) -> tuple[Tensor, Tensor]:
    """The largest element of each window, and its place in the whole tensor, of several the first."""
    at = windows(op, x.shape[2:], given(op, "kernel_shape"))
    counts = _counts(op, x, at)
    least: float = -torch.inf if x.is_floating_point() else torch.iinfo(x.dtype).min
    whole = torch.arange(x.numel()).reshape(x.shape)
    if given(op, "storage_order", 0):
        last = x.shape[2:].numel()
        columns = torch.arange(last).reshape(*reversed(x.shape[2:])).permute(*reversed(range(x.dim() - 2)))
        whole = torch.arange(x.shape[:2].numel()).reshape(*x.shape[:2], *[1] * (x.dim() - 2)) * last + columns
    values, places = _taken(x, at, counts, least, least), _taken(whole, at, counts, -1, -1)
    best, place = values[0], places[0]
    for value, where in zip(values[1:], places[1:], strict=True):
        better = ((value > best) | torch.isnan(value.double())) & (where >= 0) | (place < 0)
        best, place = maximum(best, value), torch.where(better, where, place)
    return best, place


@evaluates_onnx("GlobalAveragePool", since=1)
def global_average_pool(op: Op, x: Tensor) -> Tensor:
    return x.mean([*range(2, x.dim())], keepdim=True)


@evaluates_onnx("GlobalMaxPool", since=1)
def global_max_pool(op: Op, x: Tensor) -> Tensor:
    return amax(x, [*range(2, x.dim())]).reshape(*x.shape[:2], *[1] * (x.dim() - 2))


def _counts(op: Op, x: Tensor, at: Windows) -> list[int]:
    """How many windows there are along each axis. With ``ceil_mode`` the last may go beyond, but none begins there."""
    counts = []
    for axis, (size, stride, low, high) in enumerate(
        zip(x.shape[2:], at.strides, at.low, at.high, strict=True)
    ):
        free = size + low + high - at.reach(axis)
        up = bool(given(op, "ceil_mode", 0))
        count = -(-free // stride) + 1 if up else free // stride + 1
        counts.append(count - 1 if up and (count - 1) * stride >= size + low else count)
    return counts


def _taken(value: Tensor, at: Windows, counts: list[int], inside: float, beyond: float = 0.0) -> list[Tensor]:
    """The first element of every window, the second, and so on.

    What is padded is ``inside``, what a window has after that ``beyond``.
    """
    ends = zip(value.shape[-len(counts) :], counts, at.strides, at.low, strict=True)
    more = [max(0, (n - 1) * s + at.reach(axis) - size - low) for axis, (size, n, s, low) in enumerate(ends)]
    inner = [(low, high) for low, high in zip(at.low, at.high, strict=True)]
    outer = [(0, max(0, needed - high)) for needed, high in zip(more, at.high, strict=True)]
    value = torch.nn.functional.pad(value, [n for pair in reversed(inner) for n in pair], value=inside)
    value = torch.nn.functional.pad(value, [n for pair in reversed(outer) for n in pair], value=beyond)
    found = []
    for offsets in product(*map(range, at.kernel)):
        window: list[Any] = [
            slice(offset * d, offset * d + (n - 1) * s + 1, s)
            for offset, d, n, s in zip(offsets, at.dilations, counts, at.strides, strict=True)
        ]
        found.append(value[(..., *window)])
    return found
