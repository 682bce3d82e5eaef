"""Convolutions in float64, within memory."""

from __future__ import annotations

import torch
from torch import Tensor

#: Bytes that torch may lay out for one float64 convolution: its im2col of a 512x512 layer takes 5.6 GB.
IM2COL = 1 << 28


def convolution(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups) -> Tensor:
    """torch's convolution on stripes of output rows: the same sums, a bounded buffer."""
    whole = torch.ops.aten.convolution.default
    if transposed or x.dim() != 4 or weight.shape[2:].numel() == 1:
        return whole(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
    reach = (weight.shape[2] - 1) * dilation[0] + 1
    x = torch.nn.functional.pad(x, (0, 0, padding[0], padding[0]))
    rows = (x.shape[2] - reach) // stride[0] + 1
    row_bytes = x.shape[3] * x.shape[1] * weight.shape[2:].numel() * x.element_size()
    step = max(1, IM2COL // row_bytes)
    parts = []
    for start in range(0, rows, step):
        last = min(start + step, rows) - 1
        part = x[:, :, start * stride[0] : last * stride[0] + reach].contiguous()
        parts.append(
            whole(part, weight, bias, stride, [0, padding[1]], dilation, False, output_padding, groups)
        )
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=2)
