"""Norms along an axis."""

from __future__ import annotations

import torch
from torch import Tensor

from numtrace.evaluate.onnx_ops.registry import evaluates_onnx, given
from numtrace.evaluate.op import Op


@evaluates_onnx("LpNormalization")
def lp_normalization(op: Op, x: Tensor) -> Tensor:
    """x / ‖x‖ₚ; "when the Lp norm is zero, the output is defined to be zero to avoid division by zero"."""
    size = torch.linalg.vector_norm(x, ord=given(op, "p", 2), dim=given(op, "axis", -1), keepdim=True)
    return torch.where(size == 0, 0.0, x / size)
