"""``math`` on floats: the function rounded once, with the measured error of IREE's code for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from numtrace.errors import UncoveredOp
from numtrace.evaluate.program import Op
from numtrace.evaluate.registry import lookup
from numtrace.evaluate.typed.accuracy import accuracy
from numtrace.evaluate.typed.arithmetic import computed, element_of, unlimited, values_of
from numtrace.evaluate.typed.registry import carries
from numtrace.evaluate.typed.value import Typed, bounded, lift

#: Monotone, or convex with the lowest point inside: no value between two ends is farther from the middle's.
_BETWEEN_ENDS = (
    "math.exp", "math.exp2", "math.expm1", "math.log", "math.log2", "math.log10", "math.log1p", "math.sqrt",
    "math.rsqrt", "math.cbrt", "math.tanh", "math.sinh", "math.cosh", "math.asin", "math.acos", "math.atan",
    "math.asinh", "math.acosh", "math.atanh", "math.erf", "math.erfc",
)  # fmt: skip
_STEPS = ("math.floor", "math.ceil", "math.trunc", "math.round", "math.roundeven")


def between_ends(function: Callable[[Tensor], Tensor], value: Typed) -> Tensor:
    """The greatest distance of f(x) from f(typed) for x within the bound; unlimited off the function's domain."""
    error = value.error.double()
    at = function(value.wide)
    ends = [(function(value.wide + sign * error) - at).abs() for sign in (-1, 1)]
    return torch.maximum(*ends).nan_to_num(torch.inf, torch.inf).float()


@carries(*_BETWEEN_ENDS, "math.sin", "math.cos", "math.tan")
def function(op: Op, machine, a: Any) -> Typed:
    """Raises UncoveredOp where nothing was measured for the function and its type."""
    value = lift(a, op.operand_types[0])
    fn = lookup(op.name)
    exact = fn(op, machine, value.exact)
    raw = exact if value.same else fn(op, machine, value.wide)
    inherited = None
    if value.bound is not None:
        if op.name in ("math.sin", "math.cos"):
            inherited = value.bound.clamp(max=2.0)  # Lipschitz with constant 1
        elif op.name == "math.tan":
            inherited = unlimited([value], raw)
        else:
            inherited = between_ends(lambda x: fn(op, machine, x), value)
    return measured(op.name, exact, raw, inherited, element_of(op))


def measured(name: str, exact: Tensor, raw: Tensor, inherited: Tensor | None, element: str) -> Typed:
    """A result with the measured error of the function ``name``.

    Raises:
        UncoveredOp: there is no measurement.
    """
    found = accuracy(name, element)
    if found is None:
        raise UncoveredOp(name, f"its accuracy in {element} was not measured")
    result = computed(exact, raw, inherited, element, roundings=2 * found.ulps)  # an ulp is at most 2u·|x|
    if found.absolute and result.bound is not None:
        result.bound.add_(found.absolute)
    return result


@carries(*_STEPS)
def step(op: Op, machine, a: Any) -> Typed:
    value = lift(a, op.operand_types[0])
    fn = lookup(op.name)
    exact = fn(op, machine, value.exact)
    if value.same and value.bound is None:
        return Typed(exact, exact.to(value.typed.dtype))
    bound = None if value.bound is None else between_ends(lambda x: fn(op, machine, x), value)
    return Typed(exact, fn(op, machine, value.wide).to(value.typed.dtype), bound, False)


@carries("math.absf")
def absolute(op: Op, machine, a: Any) -> Typed:
    value = lift(a, op.operand_types[0])
    return Typed(value.exact.abs(), value.typed.abs(), value.bound, value.same)


@carries("math.powf", "math.fpowi")
def power(op: Op, machine, *operands: Any) -> Typed:
    base, exponent = values_of(op, operands)
    fn = lookup(op.name)
    raw = fn(op, machine, base.wide, exponent.wide)
    inherited = None
    if bounded((base, exponent)):
        inherited = torch.zeros_like(raw)
        for left in (-1, 1):
            for right in (-1, 1):
                corner = fn(
                    op, machine,
                    base.wide + left * base.error.double(), exponent.wide + right * exponent.error.double(),
                )  # fmt: skip
                inherited = torch.maximum(inherited, (corner - raw).abs().nan_to_num(torch.inf, torch.inf))
        inherited = inherited.float()
    exact = fn(op, machine, base.exact, exponent.exact)
    return measured("math.powf", exact, raw, inherited, element_of(op))


@carries("math.atan2")
def arc_tangent(op: Op, machine, *operands: Any) -> Typed:
    values = values_of(op, operands)
    fn = lookup(op.name)
    raw = fn(op, machine, *(value.wide for value in values))
    inherited = unlimited(values, raw) if bounded(values) else None
    return measured(op.name, fn(op, machine, *(v.exact for v in values)), raw, inherited, element_of(op))


@carries("math.copysign")
def copy_sign(op: Op, machine, *operands: Any) -> Typed:
    a, b = values_of(op, operands)
    bound = a.bound
    if b.bound is not None:
        doubt = b.wide.abs() <= b.bound.double()
        bound = a.error + torch.where(doubt & (b.bound > 0), 2 * a.wide.abs().float(), 0.0)
    return Typed(torch.copysign(a.exact, b.exact), torch.copysign(a.typed, b.typed), bound, a.same and b.same)


@carries("math.clampf")
def clamp(op: Op, machine, *operands: Any) -> Typed:
    value, low, high = values_of(op, operands)
    fn = lookup(op.name)
    exact = fn(op, machine, value.exact, low.exact, high.exact)
    typed = fn(op, machine, value.typed, low.typed, high.typed)
    bound = None
    if bounded((value, low, high)):
        bound = torch.maximum(value.error, torch.maximum(low.error, high.error))
    return Typed(exact, typed, bound, value.same and low.same and high.same)


@carries("math.isnan", "math.isinf", "math.isfinite")
def classify(op: Op, machine, a: Any) -> Typed:
    value = lift(a, op.operand_types[0])
    fn = lookup(op.name)
    exact = fn(op, machine, value.exact)
    if value.same:
        return Typed(exact, exact)
    return Typed(exact, fn(op, machine, value.wide), None, False)
