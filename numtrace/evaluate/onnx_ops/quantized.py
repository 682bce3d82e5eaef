"""Integers that stand for real numbers: (q − zero point)·scale."""

from __future__ import annotations

import torch
from torch import Tensor

from numtrace.evaluate.onnx_ops.registry import evaluates_onnx
from numtrace.evaluate.op import Op


@evaluates_onnx("QLinearMatMul")
def quantized_matmul(
    op: Op, a: Tensor, a_scale: Tensor, a_zero: Tensor, b: Tensor, b_scale: Tensor, b_zero: Tensor,
    y_scale: Tensor, y_zero: Tensor,
) -> Tensor:  # fmt: skip
    """Real matrices multiplied, divided by the result's scale, rounded to even and saturated at its type."""
    left = _real(a, a_scale, a_zero, -1)
    right = _real(b, b_scale, b_zero, -2)
    made = torch.round(left @ right / _along(y_scale.double(), left, -1)) + _along(y_zero.double(), left, -1)
    limits = torch.iinfo(y_zero.dtype)
    return made.clamp(limits.min, limits.max).to(torch.int64).to(y_zero.dtype)


def _real(value: Tensor, scale: Tensor, zero: Tensor, contracted: int) -> Tensor:
    return (value.double() - _along(zero.double(), value, contracted)) * _along(
        scale.double(), value, contracted
    )


def _along(factor: Tensor, value: Tensor, contracted: int) -> Tensor:
    """One number for all; or one for each row (of the left matrix) or column, which are not contracted."""
    if factor.numel() == 1:
        return factor.reshape(())
    return factor.unsqueeze(contracted) if factor.dim() < value.dim() else factor
