"""Products that are summed: matrices and convolutions."""

from __future__ import annotations

import torch
from torch import Tensor

from numtrace.errors import UncoveredOp
from numtrace.evaluate.convolution import convolution
from numtrace.evaluate.onnx_ops.registry import FLOATS, evaluates_onnx, given
from numtrace.evaluate.onnx_ops.windows import READS, windows
from numtrace.evaluate.op import Op


@evaluates_onnx("MatMul", since=1)
def matmul(op: Op, a: Tensor, b: Tensor) -> Tensor:
    return torch.matmul(a, b)


@evaluates_onnx("Gemm", reads=("alpha", "beta", "transA", "transB"), since=7, types=FLOATS)
def gemm(op: Op, a: Tensor, b: Tensor, c: Tensor | None = None) -> Tensor:
    a = a.T if given(op, "transA", 0) else a
    b = b.T if given(op, "transB", 0) else b
    made = given(op, "alpha", 1.0) * (a @ b)
    return made if c is None else made + given(op, "beta", 1.0) * c


@evaluates_onnx("Det", since=11)
def det(op: Op, x: Tensor) -> Tensor:
    return torch.linalg.det(x)


@evaluates_onnx("Einsum", reads=("equation",), since=12)
def einsum(op: Op, *operands: Tensor) -> Tensor:
    return torch.einsum(given(op, "equation"), *operands)


@evaluates_onnx("Conv", reads=(*READS, "group"), since=1)
def conv(op: Op, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    return convolved(op, x, weight, bias, 0.0)


def convolved(op: Op, x: Tensor, weight: Tensor, bias: Tensor | None, outside: float) -> Tensor:
    """(n, c, *spatial) with (m, c / groups, *kernel); what is padded is ``outside``."""
    at = windows(op, x.shape[2:], weight.shape[2:])
    pads = [n for pair in reversed([*zip(at.low, at.high, strict=True)]) for n in pair]
    x = torch.nn.functional.pad(x, pads, value=outside)
    none = [0] * len(at.kernel)
    return convolution(x, weight, bias, at.strides, none, at.dilations, False, none, given(op, "group", 1))


@evaluates_onnx("ConvTranspose", reads=(*READS, "group", "output_padding", "output_shape"), since=1)
def conv_transpose(op: Op, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Every element spread over a window of the result, from which pads are cut off.

    They are given, or follow from ``output_shape``; with ``auto_pad`` SAME that is the image's times the strides.
    """
    sizes, mode = x.shape[2:], given(op, "auto_pad", "NOTSET")
    rank = len(sizes)
    none = [0] * rank
    strides, dilations = (given(op, name, [1] * rank) for name in ("strides", "dilations"))
    extra, pads = given(op, "output_padding", none), given(op, "pads", none * 2)
    wanted = given(op, "output_shape")
    if wanted is None and mode.startswith("SAME"):
        wanted = [size * stride for size, stride in zip(sizes, strides, strict=True)]
    whole = convolution(x, weight, None, strides, none, dilations, True, none, given(op, "group", 1))
    for axis, more in enumerate(extra):
        dim = axis + 2
        low, high = pads[axis], pads[rank + axis]
        if wanted is not None:
            cut = whole.shape[dim] + more - wanted[axis]
            if cut < 0 and mode.startswith("SAME"):
                raise UncoveredOp("onnx.ConvTranspose", "a result that is larger than its windows")
            less = max(cut, 0) // 2
            low, high = (
                (less, cut - less) if mode == "SAME_UPPER" else (max(cut, 0) - less, min(cut, 0) + less)
            )
        # Beyond the last window there is nothing but the bias.
        grown = torch.nn.functional.pad(whole.movedim(dim, -1), (0, max(more - high, 0))).movedim(-1, dim)
        whole = grown.narrow(dim, low, whole.shape[dim] + more - low - high)
    return whole if bias is None else whole + bias.reshape([-1, *[1] * rank])
