"""``math``: the functions themselves, in float64."""

from __future__ import annotations

import torch
from torch import Tensor

from numtrace.evaluate.extremes import maximum, minimum
from numtrace.evaluate.op import Op
from numtrace.evaluate.registry import evaluates

_UNARY = {
    "math.exp": torch.exp,
    "math.exp2": torch.exp2,
    "math.expm1": torch.expm1,
    "math.log": torch.log,
    "math.log2": torch.log2,
    "math.log10": torch.log10,
    "math.log1p": torch.log1p,
    "math.sqrt": torch.sqrt,
    "math.rsqrt": torch.rsqrt,
    "math.tanh": torch.tanh,
    "math.sinh": torch.sinh,
    "math.cosh": torch.cosh,
    "math.sin": torch.sin,
    "math.cos": torch.cos,
    "math.tan": torch.tan,
    "math.asin": torch.asin,
    "math.acos": torch.acos,
    "math.atan": torch.atan,
    "math.asinh": torch.asinh,
    "math.acosh": torch.acosh,
    "math.atanh": torch.atanh,
    "math.erf": torch.erf,
    "math.erfc": torch.erfc,
    "math.absf": torch.abs,
    "math.absi": torch.abs,
    "math.floor": torch.floor,
    "math.ceil": torch.ceil,
    "math.trunc": torch.trunc,
    "math.roundeven": torch.round,
    "math.isnan": torch.isnan,
    "math.isinf": torch.isinf,
    "math.isfinite": torch.isfinite,
}


def _register(name: str, function) -> None:
    @evaluates(name)
    def unary(op: Op, machine, a: Tensor) -> Tensor:
        return function(a)


for _name, _function in _UNARY.items():
    _register(_name, _function)


@evaluates("math.powf")
def powf(op: Op, machine, a: Tensor, b: Tensor) -> Tensor:
    return torch.pow(a, b)


@evaluates("math.atan2")
def atan2(op: Op, machine, a: Tensor, b: Tensor) -> Tensor:
    return torch.atan2(a, b)


@evaluates("math.fma")
def fma(op: Op, machine, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    return a * b + c


@evaluates("math.copysign")
def copysign(op: Op, machine, a: Tensor, b: Tensor) -> Tensor:
    return torch.copysign(a, b)


@evaluates("math.round")
def round_away(op: Op, machine, a: Tensor) -> Tensor:
    """Half away from zero, unlike roundeven. Not floor(|a| + 0.5): that sum rounds up just below a half."""
    whole = torch.trunc(a)
    return torch.where((a - whole).abs() >= 0.5, whole + torch.sign(a), whole)


@evaluates("math.clampf")
def clampf(op: Op, machine, a: Tensor, low: Tensor, high: Tensor) -> Tensor:
    return minimum(maximum(a, low), high)


@evaluates("math.cbrt")
def cbrt(op: Op, machine, a: Tensor) -> Tensor:
    root = torch.copysign(a.abs().double().pow(1 / 3), a)
    correction = torch.where(root == 0, 0.0, (root * root * root - a) / (3 * root * root))
    return torch.where(torch.isfinite(a), root - correction, root).to(a.dtype)  # one Newton step


@evaluates("math.fpowi")
def fpowi(op: Op, machine, a: Tensor, b: Tensor) -> Tensor:
    return torch.pow(a, b.to(a.dtype))
