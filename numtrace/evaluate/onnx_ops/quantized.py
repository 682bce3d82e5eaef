"""Integers that stand for real numbers: (q − zero point)·scale."""

from __future__ import annotations

import torch
from torch import Tensor

from numtrace.evaluate.onnx_ops.casts import saturated
from numtrace.evaluate.onnx_ops.contraction import convolved
from numtrace.evaluate.onnx_ops.registry import ARITHMETIC, FLOATS_OF_A_BYTE, element, evaluates_onnx, given
from numtrace.evaluate.onnx_ops.windows import READS
from numtrace.evaluate.op import Op
from numtrace.evaluate.types import exact_dtype


@evaluates_onnx("QLinearMatMul", since=10)
def quantized_matmul(
    op: Op, a: Tensor, a_scale: Tensor, a_zero: Tensor, b: Tensor, b_scale: Tensor, b_zero: Tensor,
    y_scale: Tensor, y_zero: Tensor,
) -> Tensor:  # fmt: skip
    """Real matrices multiplied, and quantized."""
    left = _real(a, a_scale, a_zero, -1)
    right = _real(b, b_scale, b_zero, -2)
    return _codes(
        op, left @ right, _along(y_scale.double(), left, -1), _along(y_zero, left, -1), y_zero.dtype
    )


@evaluates_onnx("QLinearConv", reads=(*READS, "group"), since=10)
def quantized_convolution(
    op: Op, x: Tensor, x_scale: Tensor, x_zero: Tensor, weight: Tensor, w_scale: Tensor, w_zero: Tensor,
    y_scale: Tensor, y_zero: Tensor, bias: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Real numbers convolved, and quantized. The bias counts in units of the two scales' product."""
    rank = weight.dim() - 1
    kernel = (weight.double() - _first(w_zero.double(), rank)) * _first(w_scale, rank)
    image = (x.double() - x_zero.double().reshape(())) * x_scale.reshape(())
    made = convolved(op, image, kernel, None, 0.0)
    if bias is not None:
        made = made + _first(bias.double() * (x_scale.reshape(()) * w_scale).reshape(-1), rank - 1)
    return _codes(op, made, y_scale.reshape(()), y_zero.reshape(()), y_zero.dtype)


def _first(factor: Tensor, others: int) -> Tensor:
    """One number for all, or one for each of the first axis (of a result: the second), which ``others`` follow."""
    return factor.reshape(()) if factor.numel() == 1 else factor.reshape([-1, *[1] * others])


@evaluates_onnx("MatMulInteger", since=10)
def integer_matmul(
    op: Op, a: Tensor, b: Tensor, a_zero: Tensor | None = None, b_zero: Tensor | None = None
) -> Tensor:
    """Sums of at most 2^37 products of bytes are whole numbers of float64."""
    left = a.double() if a_zero is None else a.double() - _along(a_zero.double(), a, -1)
    right = b.double() if b_zero is None else b.double() - _along(b_zero.double(), b, -2)
    return (left @ right).to(torch.int64).to(torch.int32)


@evaluates_onnx("ConvInteger", reads=(*READS, "group"), since=10)
def integer_convolution(
    op: Op, x: Tensor, weight: Tensor, x_zero: Tensor | None = None, w_zero: Tensor | None = None
) -> Tensor:
    image = x.double() if x_zero is None else x.double() - x_zero.double().reshape(())
    kernel = (
        weight.double() if w_zero is None else weight.double() - _first(w_zero.double(), weight.dim() - 1)
    )
    return convolved(op, image, kernel, None, 0.0).to(torch.int64).to(torch.int32)


@evaluates_onnx(
    "QuantizeLinear",
    reads=("axis", "block_size", "output_dtype", "saturate"),
    since=10,
    types=ARITHMETIC | FLOATS_OF_A_BYTE,
)
def quantize(op: Op, x: Tensor, scale: Tensor, zero: Tensor | None = None) -> Tensor:
    target = element(op.result_types[0])
    if target.startswith("f8"):  # whose zero point is zero
        codes = x.double() / _blocks(op, scale, x)
        return saturated(codes, target) if given(op, "saturate", 1) else codes
    dtype = exact_dtype(target)
    zero = torch.zeros((), dtype=dtype) if zero is None else _blocks(op, zero, x)
    return _codes(op, x.double(), _blocks(op, scale, x), zero, dtype)


@evaluates_onnx(
    "DequantizeLinear",
    reads=("axis", "block_size", "output_dtype"),
    since=10,
    types=ARITHMETIC | FLOATS_OF_A_BYTE,
)
def dequantize(op: Op, x: Tensor, scale: Tensor, zero: Tensor | None = None) -> Tensor:
    codes = x.double() if zero is None else x.double() - _blocks(op, zero, x).double()
    return codes * _blocks(op, scale, x)


@evaluates_onnx("DynamicQuantizeLinear", since=11)
def quantize_dynamically(op: Op, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Bytes over the range that there is, and 0; the scale and the zero point with them."""
    low, high = x.min().clamp(max=0), x.max().clamp(min=0)
    scale = (high - low) / 255
    zero = torch.round((-low / scale).clamp(0, 255)).to(torch.uint8)
    return _codes(op, x, scale, zero, torch.uint8), scale, zero


def _codes(op: Op, value: Tensor, scale: Tensor, zero: Tensor, dtype: torch.dtype) -> Tensor:
    """Divided by the scale, rounded to even, and saturated at the type; what is no number then is not defined."""
    limits = torch.iinfo(dtype)
    made = torch.round(value / scale) + zero.double()
    if bool(made.isnan().any()):
        op.cache["undefined"] = f"{op.attributes['name'].value} of what is no number"
    return made.clamp(limits.min, limits.max).to(torch.int64).to(dtype)


def _blocks(op: Op, factor: Tensor, x: Tensor) -> Tensor:
    """One number for all, one for each place of ``axis``, or one for each block along it."""
    axis = given(op, "axis", 1)
    if factor.numel() == 1 and factor.dim() <= 1:
        return factor.reshape(())
    if size := given(op, "block_size", 0):
        return factor.repeat_interleave(size, axis).narrow(axis, 0, x.shape[axis])
    return factor.reshape([-1 if dim == axis % x.dim() else 1 for dim in range(x.dim())])


def _real(value: Tensor, scale: Tensor, zero: Tensor, contracted: int) -> Tensor:
    return (value.double() - _along(zero.double(), value, contracted)) * _along(
        scale.double(), value, contracted
    )


def _along(factor: Tensor, value: Tensor, contracted: int) -> Tensor:
    """One number for all; or one for each row (of the left matrix) or column, which are not contracted."""
    if factor.numel() == 1:
        return factor.reshape(())
    return factor.unsqueeze(contracted) if factor.dim() < value.dim() else factor
