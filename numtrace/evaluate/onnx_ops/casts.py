"""Casts. Those between float types are the identity, except that a cast to f8 saturates unless it says otherwise."""

from __future__ import annotations

import torch
from torch import Tensor

from numtrace.errors import UncoveredOp
from numtrace.evaluate.formats import FORMATS
from numtrace.evaluate.onnx_ops.registry import ALL, element, evaluates_onnx, given
from numtrace.evaluate.op import Op

#: Integers and booleans by what MLIR calls them.
_WHOLE = {
    "i1": torch.bool, "si8": torch.int8, "si16": torch.int16, "si32": torch.int32, "si64": torch.int64,
    "ui8": torch.uint8, "ui16": torch.uint16, "ui32": torch.uint32, "ui64": torch.uint64,
}  # fmt: skip


@evaluates_onnx("Cast", reads=("to", "saturate"), since=6, types=ALL)
@evaluates_onnx("CastLike", reads=("saturate",), since=15, types=ALL)
def cast(op: Op, value: Tensor, like: Tensor | None = None) -> Tensor:
    target = element(op.result_types[0])
    if target in _WHOLE:
        if value.is_floating_point() and target != "i1":
            value = _truncated(op, value, _WHOLE[target])
        return value.to(_WHOLE[target])
    if target not in FORMATS:
        raise UncoveredOp(f"a cast to {target}")
    result = value.double()
    return saturated(result, target) if target.startswith("f8") and given(op, "saturate", 1) else result


def saturated(value: Tensor, target: str) -> Tensor:
    """What is too large for the type ``target`` as its largest number.

    Up to half-way to the next number a value is rounded to that anyway, and rounding is erased here.
    """
    fmt = FORMATS[target]
    rounded = fmt.max_finite + 2.0 ** (fmt.emax - fmt.precision)
    sized = torch.where(value > 0, fmt.max_finite, -fmt.max_finite)
    return torch.where(value.abs() > rounded, sized, value)


def _truncated(op: Op, value: Tensor, dtype: torch.dtype) -> Tensor:
    """Floats without their fractions, as ``arith.fptosi`` and ``arith.fptoui`` are evaluated; of ui64 the bits.

    Of what is not of ``dtype``'s range "the result of conversion is undefined", says ONNX. It is noted: a program may
    choose other elements afterwards, as T5 does beside the logarithm of 0.
    """
    value = torch.trunc(value).double()
    limits = torch.iinfo(dtype)
    beyond = ~((value >= limits.min) & (value < 2.0 ** (limits.bits - (limits.min < 0))))
    if bool(beyond.any()):
        what = f"{int(beyond.sum())} numbers, such as {float(value[beyond][0]):g},"
        op.cache["undefined"] = f"onnx.Cast of {what} to {dtype}, which does not hold them"
    if limits.min < 0:
        return value.to(dtype)
    return torch.where(value >= 2.0**63, value - 2.0**64, value).to(torch.int64)
