"""MLIR types as shapes and torch dtypes."""

from __future__ import annotations

import re
from functools import cache

import torch
from iree.compiler import ir

from numtrace.errors import UncoveredOp

#: Element types and the torch dtype that holds them bit for bit.
NATIVE: dict[str, torch.dtype] = {
    "f64": torch.float64,
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f8E4M3FN": torch.float8_e4m3fn,
    "f8E5M2": torch.float8_e5m2,
    "f8E4M3FNUZ": torch.float8_e4m3fnuz,
    "f8E5M2FNUZ": torch.float8_e5m2fnuz,
    "i1": torch.bool,
    "i8": torch.int8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
    "index": torch.int64,
    # Of the torch dialect, whose integers have a sign.
    "si8": torch.int8,
    "si16": torch.int16,
    "si32": torch.int32,
    "si64": torch.int64,
    "ui8": torch.uint8,
    "complex<f32>": torch.complex64,
    "complex<f64>": torch.complex128,
}

_TENSOR = re.compile(r"tensor<((?:[0-9?]+x)*)([A-Za-z][A-Za-z0-9]*(?:<f(?:32|64)>)?)(?=[>,])")


@cache
def _parse(text: str) -> tuple[tuple[int | None, ...], str]:
    match = _TENSOR.search(text)
    if match is None:
        return (), text
    sizes = tuple(None if size == "?" else int(size) for size in match[1].split("x")[:-1])
    return sizes, match[2]


def tensor_type(type_: ir.Type | str) -> tuple[tuple[int | None, ...], str]:
    """Shape and element name of a tensor, a dispatch tensor or a scalar type; ``None`` is a dynamic size."""
    return _parse(str(type_))


def is_float(element: str) -> bool:
    return NATIVE.get(element, torch.int8).is_floating_point


def is_inexact(element: str) -> bool:
    """Whether arithmetic on it rounds: floats and complex numbers."""
    native = NATIVE.get(element, torch.int8)
    return native.is_floating_point or native.is_complex


def integer_width(element: str) -> int:
    """The bits of an integer element type; ``index`` has 64."""
    return 64 if element == "index" else int(element.lstrip("sui"))


def exact_dtype(element: str) -> torch.dtype:
    """The dtype of an exact evaluation: float64 for every float, two of it for complex numbers, integers as they are.

    Raises:
        UncoveredOp: for an element type that torch cannot hold.
    """
    native = NATIVE.get(element)
    if native is None:
        raise UncoveredOp(f"type {element}")
    if native.is_complex:
        return torch.complex128
    return torch.float64 if native.is_floating_point else native


def widen(value: torch.Tensor) -> torch.Tensor:
    """Floats as float64, and complex numbers as two of it, exactly; anything else as it is."""
    if value.dtype is torch.float64:
        return value
    if value.is_floating_point():
        return value.double()
    return value.to(torch.complex128) if value.dtype is torch.complex64 else value


def static_shape(type_: ir.Type | str) -> tuple[int, ...]:
    shape, _ = tensor_type(type_)
    if None in shape:
        raise UncoveredOp(f"dynamic shape {type_}")
    return shape  # type: ignore[return-value]
