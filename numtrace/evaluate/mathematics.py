"""``math``: the functions themselves, in float64."""

from __future__ import annotations

import torch
from torch import Tensor

from numtrace.evaluate.program import Op
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
    "math.erf": torch.erf,
    "math.erfc": torch.erfc,
    "math.absf": torch.abs,
    "math.absi": torch.abs,
    "math.floor": torch.floor,
    "math.ceil": torch.ceil,
    "math.trunc": torch.trunc,
    "math.roundeven": torch.round,
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
    return torch.copysign(torch.floor(a.abs() + 0.5), a)  # half away from zero, unlike roundeven
