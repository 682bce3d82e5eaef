"""Operators on each element by itself, with NumPy's broadcasting."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from numtrace.evaluate.onnx_ops.registry import evaluates_onnx, given
from numtrace.evaluate.op import Op


def _plain(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    return lambda op, *operands: function(*operands)


_PLAIN: dict[str, Callable[..., Tensor]] = {
    "Abs": torch.abs, "Neg": torch.neg, "Exp": torch.exp, "Log": torch.log, "Sqrt": torch.sqrt, "Floor": torch.floor,
    "Ceil": torch.ceil, "Sign": torch.sign, "Sin": torch.sin, "Cos": torch.cos, "Tan": torch.tan, "Asin": torch.asin,
    "Acos": torch.acos, "Atan": torch.atan, "Sinh": torch.sinh, "Cosh": torch.cosh, "Tanh": torch.tanh,
    "Asinh": torch.asinh, "Acosh": torch.acosh, "Atanh": torch.atanh, "Erf": torch.erf, "Sigmoid": torch.sigmoid,
    "Relu": torch.relu, "Softsign": functional.softsign, "Reciprocal": torch.reciprocal, "Not": torch.logical_not,
    "IsNaN": torch.isnan, "Identity": lambda x: x, "And": torch.logical_and, "Or": torch.logical_or,
    "Xor": torch.logical_xor, "PRelu": lambda x, slope: torch.where(x < 0, slope * x, x), "Where": torch.where,
    "Softplus": lambda x: torch.logaddexp(x, torch.zeros((), dtype=x.dtype)),
}  # fmt: skip
for _name, _function in _PLAIN.items():
    evaluates_onnx(_name)(_plain(_function))


@evaluates_onnx("Gelu")
def gelu(op: Op, x: Tensor) -> Tensor:
    if given(op, "approximate", "none") == "tanh":
        return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))


@evaluates_onnx("LeakyRelu")
def leaky_relu(op: Op, x: Tensor) -> Tensor:
    return torch.where(x < 0, given(op, "alpha", 0.01) * x, x)


@evaluates_onnx("Elu")
def elu(op: Op, x: Tensor) -> Tensor:
    return torch.where(x < 0, given(op, "alpha", 1.0) * torch.expm1(x), x)


@evaluates_onnx("HardSigmoid")
def hard_sigmoid(op: Op, x: Tensor) -> Tensor:
    return (given(op, "alpha", 0.2) * x + given(op, "beta", 0.5)).clamp(0, 1)
