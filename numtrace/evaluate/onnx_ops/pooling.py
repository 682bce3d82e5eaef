"""Windows that are averaged."""

from __future__ import annotations

from itertools import product
from typing import Any

import torch
from torch import Tensor

from numtrace.evaluate.onnx_ops.registry import evaluates_onnx, given
from numtrace.evaluate.op import Op


@evaluates_onnx("AveragePool", unless=("auto_pad",))
def average_pool(op: Op, x: Tensor) -> Tensor:
    """Averages over windows of (n, c, *spatial).

    ``count_include_pad`` counts what was padded, but never what a window of ``ceil_mode`` has beyond the padding. No
    window begins there.
    """
    kernel = given(op, "kernel_shape")
    rank = len(kernel)
    strides, dilations = (given(op, name, [1] * rank) for name in ("strides", "dilations"))
    pads = given(op, "pads", [0] * (2 * rank))
    extents = []
    for size, width, stride, dilation, low, high in zip(
        x.shape[2:], kernel, strides, dilations, pads[:rank], pads[rank:], strict=True
    ):
        free = size + low + high - dilation * (width - 1) - 1
        count = -(-free // stride) + 1 if given(op, "ceil_mode", 0) else free // stride + 1
        extents.append(count - 1 if (count - 1) * stride >= size + low else count)
    counted = torch.ones(x.shape[2:], dtype=x.dtype)
    included = float(given(op, "count_include_pad", 0))
    ends = zip(x.shape[2:], extents, kernel, strides, dilations, pads[:rank], strict=True)
    beyond = [max(0, (n - 1) * s + d * (k - 1) + 1 - size - low) for size, n, k, s, d, low in ends]

    def padded(value: Tensor, by: float) -> Tensor:
        inner = [(low, high) for low, high in zip(pads[:rank], pads[rank:], strict=True)]
        outer = [(0, max(0, more - high)) for more, high in zip(beyond, pads[rank:], strict=True)]
        value = torch.nn.functional.pad(value, [n for pair in reversed(inner) for n in pair], value=by)
        return torch.nn.functional.pad(value, [n for pair in reversed(outer) for n in pair])

    def summed(value: Tensor) -> Tensor:
        total = torch.zeros((), dtype=value.dtype)
        for offsets in product(*map(range, kernel)):
            window: list[Any] = [
                slice(offset * d, offset * d + (n - 1) * s + 1, s)
                for offset, d, n, s in zip(offsets, dilations, extents, strides, strict=True)
            ]
            total = total + value[(..., *window)]
        return total

    return summed(padded(x, 0.0)) / summed(padded(counted, included))
