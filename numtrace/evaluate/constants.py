"""Constants of the IR as torch tensors."""

from __future__ import annotations

import re

import numpy as np
import torch
from iree.compiler import ir

from numtrace.errors import UncoveredOp
from numtrace.evaluate.complex_numbers import of_parts, part_type
from numtrace.evaluate.program import Printed
from numtrace.evaluate.types import NATIVE, exact_dtype, static_shape, tensor_type
from numtrace.instrument.dtypes import from_torch, numpy_dtype, to_torch


def constant_value(attribute: ir.Attribute | Printed, dtype: torch.dtype) -> torch.Tensor:
    """The exact value of a scalar or dense attribute in ``dtype``.

    Raises:
        UncoveredOp: the attribute carries no elements here, such as an external resource (constants are
            moved into a parameter archive before anything is evaluated, see ``instrument/constants.py``).
    """
    attribute = attribute.maybe_downcast()
    if isinstance(attribute, Printed):
        return _complex(attribute.text)
    if isinstance(attribute, (ir.FloatAttr, ir.IntegerAttr, ir.BoolAttr)):
        return torch.tensor(_wrap(attribute.value, dtype), dtype=dtype)
    if isinstance(attribute, ir.DenseElementsAttr):
        return _dense(attribute).to(dtype)
    raise UncoveredOp("a constant", str(attribute)[:60])


def _wrap(value: float | int, dtype: torch.dtype) -> float | int:
    """An integer attribute is a bit pattern: read it in the signed range of ``dtype``."""
    if dtype.is_floating_point or dtype == torch.bool or not isinstance(value, int):
        return value
    info = torch.iinfo(dtype)
    return (value - info.min) % (1 << info.bits) + info.min


def _dense(attribute: ir.DenseElementsAttr) -> torch.Tensor:
    shape = static_shape(attribute.type)
    _, element = tensor_type(attribute.type)
    dtype = exact_dtype(element)
    if attribute.is_splat:
        return torch.full(shape, _wrap(attribute.get_splat_value().value, dtype), dtype=dtype)
    if dtype.is_floating_point and NATIVE[element] not in (torch.float32, torch.float64, torch.float16):
        return _printed(attribute, NATIVE[element]).to(dtype).reshape(shape)
    return to_torch(np.array(attribute).reshape(shape).copy())


def _complex(text: str) -> torch.Tensor:
    """Complex numbers as MLIR prints them: their parts are floats that the bindings read."""
    elements, _, type_ = text.removeprefix("dense<").rpartition("> : ")
    shape, element = tensor_type(type_)
    splat = elements.startswith("(")
    dims = "x".join(str(size) for size in ((2,) if splat else (*shape, 2)))
    nested = elements.replace("(", "[").replace(")", "]")
    with ir.Context():
        parts = _dense(
            ir.DenseElementsAttr(ir.Attribute.parse(f"dense<{nested}> : tensor<{dims}x{part_type(element)}>"))
        )
    return of_parts(parts.double()).expand(static_shape(type_))


def _printed(attribute: ir.DenseElementsAttr, dtype: torch.dtype) -> torch.Tensor:
    """The elements as MLIR prints them: the bindings hand out no bf16 or f8."""
    text = str(attribute)
    raw = re.search(r'"0x([0-9A-Fa-f]*)"', text)  # how a long attribute is printed: its bytes
    if raw is not None:
        return to_torch(np.frombuffer(bytearray.fromhex(raw[1]), numpy_dtype(from_torch(dtype))))
    bits = torch.int16 if dtype.itemsize == 2 else torch.int8
    numbers = re.findall(r"0x[0-9A-Fa-f]+|[-+.0-9eE]+", text[text.index("<") + 1 : text.rindex("> :")])
    values = [
        torch.tensor(_wrap(int(number, 16), bits), dtype=bits).view(dtype)
        if number.startswith("0x")
        else torch.tensor(float(number), dtype=torch.float64).to(dtype)
        for number in numbers
    ]
    return torch.stack([value.double() for value in values])
