"""Operators on each element by itself, with NumPy's broadcasting."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce

import torch
from torch import Tensor
from torch.nn import functional

from numtrace.errors import UndefinedResult
from numtrace.evaluate.arith import divisible
from numtrace.evaluate.extremes import maximum, minimum
from numtrace.evaluate.onnx_ops.registry import ALL, evaluates_onnx, given
from numtrace.evaluate.op import Op


def _plain(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    return lambda op, *operands: function(*operands)


def _divided(a: Tensor, b: Tensor) -> Tensor:
    return a / b if a.is_floating_point() else torch.div(*divisible("onnx.Div", a, b), rounding_mode="trunc")


def _power(base: Tensor, exponent: Tensor) -> Tensor:
    """Of the base's type. A whole number to a whole power wraps; to another it is cut down."""
    if base.is_floating_point() or not exponent.is_floating_point():
        return torch.pow(base, exponent.to(base.dtype))
    return torch.trunc(torch.pow(base.double(), exponent)).to(base.dtype)


_PLAIN: dict[str, Callable[..., Tensor]] = {
    "Abs": torch.abs, "Neg": torch.neg, "Exp": torch.exp, "Log": torch.log, "Sqrt": torch.sqrt, "Floor": torch.floor,
    "Ceil": torch.ceil, "Round": torch.round, "Sign": torch.sign, "Sin": torch.sin, "Cos": torch.cos, "Tan": torch.tan,
    "Asin": torch.asin, "Acos": torch.acos, "Atan": torch.atan, "Sinh": torch.sinh, "Cosh": torch.cosh,
    "Tanh": torch.tanh, "Asinh": torch.asinh, "Acosh": torch.acosh, "Atanh": torch.atanh, "Erf": torch.erf,
    "Sigmoid": torch.sigmoid, "Relu": torch.relu, "Softsign": functional.softsign, "Reciprocal": torch.reciprocal,
    "Not": torch.logical_not, "IsNaN": torch.isnan, "And": torch.logical_and, "Or": torch.logical_or,
    "Xor": torch.logical_xor, "PRelu": lambda x, slope: torch.where(x < 0, slope * x, x),
    "Softplus": lambda x: torch.logaddexp(x, torch.zeros((), dtype=x.dtype)),
    "HardSwish": lambda x: x * (x / 6 + 0.5).clamp(0, 1),
    "Mish": lambda x: x * torch.tanh(torch.logaddexp(x, torch.zeros((), dtype=x.dtype))),
    "Add": torch.add, "Sub": torch.sub, "Mul": torch.mul, "Div": _divided, "Pow": _power,
    "Equal": torch.eq, "Greater": torch.gt, "GreaterOrEqual": torch.ge, "Less": torch.lt, "LessOrEqual": torch.le,
    "Max": lambda *values: reduce(maximum, values), "Min": lambda *values: reduce(minimum, values),
    "Sum": lambda *values: reduce(torch.add, values),
    "Mean": lambda *values: reduce(torch.add, values) / len(values),
    "BitwiseAnd": torch.bitwise_and, "BitwiseOr": torch.bitwise_or, "BitwiseXor": torch.bitwise_xor,
    "BitwiseNot": torch.bitwise_not,
}  # fmt: skip
for _name, _function in _PLAIN.items():
    evaluates_onnx(_name, since=7)(_plain(_function))  # the broadcasting is NumPy's from then on
evaluates_onnx("Identity", since=1, types=ALL)(lambda op, x: x)
evaluates_onnx("Where", since=9, types=ALL)(lambda op, chosen, x, y: torch.where(chosen, x, y))


@evaluates_onnx("Gelu", reads=("approximate",), since=20)
def gelu(op: Op, x: Tensor) -> Tensor:
    if given(op, "approximate", "none") == "tanh":
        return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))


@evaluates_onnx("LeakyRelu", reads=("alpha",), since=6)
def leaky_relu(op: Op, x: Tensor) -> Tensor:
    return torch.where(x < 0, given(op, "alpha", 0.01) * x, x)


@evaluates_onnx("ThresholdedRelu", reads=("alpha",), since=10)
def thresholded_relu(op: Op, x: Tensor) -> Tensor:
    return torch.where(x > given(op, "alpha", 1.0), x, torch.zeros_like(x))


@evaluates_onnx("Elu", reads=("alpha",), since=6)
def elu(op: Op, x: Tensor) -> Tensor:
    return torch.where(x < 0, given(op, "alpha", 1.0) * torch.expm1(x), x)


@evaluates_onnx("Celu", reads=("alpha",), since=12)
def celu(op: Op, x: Tensor) -> Tensor:
    alpha = given(op, "alpha", 1.0)
    return torch.where(x < 0, alpha * torch.expm1(x / alpha), x)


@evaluates_onnx("Selu", reads=("alpha", "gamma"), since=6)
def selu(op: Op, x: Tensor) -> Tensor:
    """The defaults are those of G. Klambauer et al., "Self-normalizing neural networks", 2017, in float32."""
    alpha, gamma = (
        given(op, "alpha", 1.67326319217681884765625),
        given(op, "gamma", 1.05070102214813232421875),
    )
    return gamma * torch.where(x > 0, x, alpha * torch.expm1(x))


@evaluates_onnx("Swish", reads=("alpha",), since=24)
def swish(op: Op, x: Tensor) -> Tensor:
    return x * torch.sigmoid(given(op, "alpha", 1.0) * x)


@evaluates_onnx("HardSigmoid", reads=("alpha", "beta"), since=6)
def hard_sigmoid(op: Op, x: Tensor) -> Tensor:
    return (given(op, "alpha", 0.2) * x + given(op, "beta", 0.5)).clamp(0, 1)


@evaluates_onnx("Clip", since=11)
def clip(op: Op, x: Tensor, low: Tensor | None = None, high: Tensor | None = None) -> Tensor:
    """The lower end first: where the two cross, all is the upper one."""
    x = x if low is None else maximum(x, low)
    return x if high is None else minimum(x, high)


@evaluates_onnx("Mod", reads=("fmod",), since=10)
def mod(op: Op, a: Tensor, b: Tensor) -> Tensor:
    """With the divisor's sign as Python's, or with ``fmod`` the dividend's as C's."""
    if not a.is_floating_point():
        a, b = divisible("onnx.Mod", a, b)
    return torch.fmod(a, b) if given(op, "fmod", 0) else torch.remainder(a, b)


@evaluates_onnx("IsInf", reads=("detect_negative", "detect_positive"), since=10)
def is_inf(op: Op, x: Tensor) -> Tensor:
    found = torch.isinf(x)
    if not given(op, "detect_negative", 1):
        found &= x > 0
    return found if given(op, "detect_positive", 1) else found & (x < 0)


@evaluates_onnx("Dropout", reads=("ratio", "seed"), since=10)
def dropout(
    op: Op, x: Tensor, ratio: Tensor | None = None, training: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    if training is not None and bool(training):
        raise UndefinedResult("onnx.Dropout", "is random in training")
    return x, torch.ones_like(x, dtype=torch.bool)
