"""Tensors that are written out or counted."""

from __future__ import annotations

import torch
from torch import Tensor

from numtrace.errors import UndefinedResult
from numtrace.evaluate.constants import constant_value
from numtrace.evaluate.onnx_ops.registry import ARITHMETIC, FLOATS_OF_A_BYTE, element, evaluates_onnx, given
from numtrace.evaluate.op import Op
from numtrace.evaluate.types import exact_dtype, tensor_type


@evaluates_onnx(
    "Constant",
    reads=("value", "value_float", "value_floats", "value_int", "value_ints"),
    since=1,
    types=ARITHMETIC | FLOATS_OF_A_BYTE,
)
def constant(op: Op) -> Tensor:
    for name, dtype in (("value_float", torch.float64), ("value_int", torch.int64)):
        for key in (name, f"{name}s"):
            if (value := given(op, key)) is not None:
                return torch.tensor(value, dtype=dtype)
    attribute = op.attributes["torch.onnx.value"]
    return constant_value(attribute, exact_dtype(tensor_type(attribute.type)[1]))


@evaluates_onnx("ConstantOfShape", reads=("value",), since=9)
def constant_of_shape(op: Op, shape: Tensor) -> Tensor:
    dtype = exact_dtype(element(op.result_types[0]))
    attribute = op.attributes.get("torch.onnx.value")
    value = 0 if attribute is None else constant_value(attribute, dtype).reshape(()).item()
    return torch.full(shape.tolist(), value, dtype=dtype)


@evaluates_onnx("Range", since=11)
def range_(op: Op, start: Tensor, limit: Tensor, delta: Tensor) -> Tensor:
    """``start + i·delta`` below the limit (above it, where ``delta`` is negative)."""
    if not bool(delta):
        raise UndefinedResult("onnx.Range", "takes no steps")
    steps = torch.ceil((limit - start) / delta) if delta.is_floating_point() else -((start - limit) // delta)
    count = max(int(steps), 0)
    return start + torch.arange(count, dtype=start.dtype) * delta


@evaluates_onnx("EyeLike", reads=("dtype", "k"), since=9)
def eye_like(op: Op, x: Tensor) -> Tensor:
    ones = torch.ones(x.shape, dtype=exact_dtype(element(op.result_types[0])))
    k = given(op, "k", 0)
    return torch.tril(torch.triu(ones, k), k)
