"""Elements that change places, and constants."""

from __future__ import annotations

import torch
from torch import Tensor

from numtrace.evaluate.constants import constant_value
from numtrace.evaluate.onnx_ops.registry import evaluates_onnx, given
from numtrace.evaluate.op import Op
from numtrace.evaluate.types import exact_dtype, tensor_type


@evaluates_onnx("Constant", unless=("value_string", "value_strings", "sparse_value"))
def constant(op: Op) -> Tensor:
    for name, dtype in (("value_float", torch.float64), ("value_int", torch.int64)):
        for key in (name, f"{name}s"):
            if (value := given(op, key)) is not None:
                return torch.tensor(value, dtype=dtype)
    attribute = op.attributes["torch.onnx.value"]
    return constant_value(attribute, exact_dtype(tensor_type(attribute.type)[1]))


@evaluates_onnx("SpaceToDepth")
def space_to_depth(op: Op, x: Tensor) -> Tensor:
    """(n, c, h·b, w·b) to (n, b·b·c, h, w); with mode CRD the channel, not the place in the block, counts most."""
    n, c, height, width = x.shape
    b = given(op, "blocksize")
    blocks = x.reshape(n, c, height // b, b, width // b, b)
    order = (0, 1, 3, 5, 2, 4) if given(op, "mode", "DCR") == "CRD" else (0, 3, 5, 1, 2, 4)
    return blocks.permute(order).reshape(n, b * b * c, height // b, width // b)


@evaluates_onnx("DepthToSpace")
def depth_to_space(op: Op, x: Tensor) -> Tensor:
    """(n, b·b·c, h, w) to (n, c, h·b, w·b)."""
    n, deep, height, width = x.shape
    b = given(op, "blocksize")
    c = deep // (b * b)
    if given(op, "mode", "DCR") == "CRD":
        blocks = x.reshape(n, c, b, b, height, width).permute(0, 1, 4, 2, 5, 3)
    else:
        blocks = x.reshape(n, b, b, c, height, width).permute(0, 3, 4, 1, 5, 2)
    return blocks.reshape(n, c, height * b, width * b)
