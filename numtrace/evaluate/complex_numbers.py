"""``complex``: torch's complex numbers of two float64. What is compared of them is their parts, as real tensors."""

from __future__ import annotations

from collections.abc import Callable

import torch
from iree.compiler import ir
from torch import Tensor

from numtrace.evaluate.op import Op
from numtrace.evaluate.registry import evaluates
from numtrace.evaluate.types import tensor_type

_UNARY: dict[str, Callable[[Tensor], Tensor]] = {
    "complex.neg": torch.neg,
    "complex.conj": torch.conj_physical,
    "complex.abs": torch.abs,
    "complex.angle": torch.angle,
    "complex.exp": torch.exp,
    "complex.log": torch.log,
    "complex.sqrt": torch.sqrt,
    "complex.rsqrt": torch.rsqrt,
    "complex.sin": torch.sin,
    "complex.cos": torch.cos,
    "complex.tan": torch.tan,
    "complex.tanh": torch.tanh,
    "complex.sign": torch.sgn,
}
_BINARY: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "complex.create": torch.complex,
    "complex.add": torch.add,
    "complex.sub": torch.sub,
    "complex.mul": torch.mul,
    "complex.div": torch.div,
    "complex.pow": torch.pow,
    "complex.eq": torch.eq,
    "complex.neq": torch.ne,
}


def as_parts(value: Tensor) -> Tensor:
    """Complex numbers as a last dimension of two, the real and the imaginary part; any other value as it is."""
    return torch.view_as_real(value.resolve_conj()) if value.is_complex() else value


def of_parts(value: Tensor) -> Tensor:
    """The complex numbers that :func:`as_parts` made a last dimension of."""
    return torch.complex(value[..., 0], value[..., 1])


def is_complex(type_: ir.Type) -> bool:
    """Whether a type, of a tensor or a scalar, is one of complex numbers."""
    return tensor_type(type_)[1].startswith("complex")


def part_type(element: str) -> str:
    """The element type of the parts of complex numbers: ``f32`` of ``complex<f32>``; any other type itself."""
    return element.removeprefix("complex<").removesuffix(">")


@evaluates(*_UNARY)
def unary(op: Op, machine, a: Tensor) -> Tensor:
    return _UNARY[op.name](a)


@evaluates(*_BINARY)
def binary(op: Op, machine, a: Tensor, b: Tensor) -> Tensor:
    return _BINARY[op.name](*torch.broadcast_tensors(a, b))


@evaluates("complex.re")
def real(op: Op, machine, a: Tensor) -> Tensor:
    return a.real


@evaluates("complex.im")
def imaginary(op: Op, machine, a: Tensor) -> Tensor:
    return a.imag


@evaluates("complex.constant")
def constant(op: Op, machine) -> Tensor:
    parts = [part.value for part in op.attributes["value"]]
    return of_parts(torch.tensor(parts, dtype=torch.float64))
