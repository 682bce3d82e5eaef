"""``math`` on floats: the function rounded once, with the measured error of IREE's code for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from numtrace.errors import UncoveredOp
from numtrace.evaluate.formats import float_format
from numtrace.evaluate.op import Op
from numtrace.evaluate.registry import lookup
from numtrace.evaluate.typed.accuracy import Accuracy, accuracy
from numtrace.evaluate.typed.arithmetic import (
    computed,
    unlimited,
    values_of,
)
from numtrace.evaluate.typed.casts import LEFT_OUT, or_zero
from numtrace.evaluate.typed.registry import carries
from numtrace.evaluate.typed.rounding import unit
from numtrace.evaluate.typed.special import settled
from numtrace.evaluate.typed.value import Typed, bounded, element_of, lift
from numtrace.evaluate.types import tensor_type

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


#: Computed from values of size 1 that cancel near 0, as in (e^x - e^-x)/2 or log((1 + x)/(1 - x))/2, or from a
#: remainder of x by π: off by some roundings of 1, however small the result. Measured for |x| up to 1/8: at most 2.8u.
_FROM_ONE = frozenset(("math.sin", "math.tan", "math.sinh", "math.asinh", "math.atanh"))
_ROUNDINGS_OF_ONE = 4.0


@carries(*_BETWEEN_ENDS, "math.sin", "math.cos", "math.tan")
def function(op: Op, machine, a: Any) -> Typed:
    """Raises UncoveredOp where nothing was measured for the function and its type."""
    value = lift(a, op.operand_types[0])
    fn = lookup(op.name)
    found = measurement(op.name, element_of(op))
    exact = fn(op, machine, value.exact)
    raw = exact if value.same else fn(op, machine, value.wide)
    doubtful = in_doubt(value, found)
    inherited = None
    if doubtful.bound is not None:
        if op.name in ("math.sin", "math.cos"):
            inherited = doubtful.bound.clamp(max=2.0)  # Lipschitz with constant 1
        elif op.name == "math.exp":
            inherited = _of_exponential(doubtful, raw)
        elif op.name == "math.tan":
            # Steeper and steeper towards a pole: between ends only where there is none between them.
            inherited = between_ends(lambda x: fn(op, machine, x), doubtful)
            turns = [torch.round((doubtful.wide + s * doubtful.error.double()) / torch.pi) for s in (-1, 1)]
            inherited = torch.where(turns[0] == turns[1], inherited, torch.inf)
        else:
            inherited = between_ends(lambda x: fn(op, machine, x), doubtful)
        # Of what may be anything, a NaN too, so may be the function, be it as bounded as a sine.
        inherited = torch.where(torch.isfinite(doubtful.bound), inherited, torch.inf)
    result = measured(found, value, exact, raw, inherited, element_of(op), lambda x: fn(op, machine, x))
    if op.name in _FROM_ONE and result.bound is not None:
        kept = "f32" if element_of(op) in LEFT_OUT else element_of(op)
        result.bound.add_(_ROUNDINGS_OF_ONE * unit(kept))
    return result


def _of_exponential(value: Typed, raw: Tensor) -> Tensor:
    """The greatest distance of e^y from ``raw`` = e^x for y within β of x: that of the upper end.

    As a difference where the result is far below 1 and β large, so that nothing underflows; as e^x·(e^β - 1) where β
    is so small that float64 would lose digits of the difference. The larger one holds.
    """
    assert value.bound is not None
    beta = value.bound.double()
    ends = torch.exp(value.wide + beta).sub_(raw)
    return torch.maximum(ends, torch.expm1(beta).mul_(raw)).nan_to_num_(torch.inf, torch.inf).float()


def measurement(name: str, element: str) -> Accuracy:
    """Raises UncoveredOp: there is none."""
    found = accuracy(name, element)
    if found is None:
        raise UncoveredOp(name, f"its accuracy in {element} was not measured")
    return found


def in_doubt(value: Typed, found: Accuracy) -> Typed:
    """``value`` with what the code may round the argument by added to its bound, where it is accurate at all."""
    if not found.argument:
        return value
    error = value.wide.abs().float().mul_(found.argument)
    counts = _accurate(found, value.wide) & torch.isfinite(value.wide)
    error = torch.where(counts, error, 0.0).add_(value.error)
    return Typed(value.exact, value.typed, error, value.same)


def _accurate(found: Accuracy, x: Tensor) -> Tensor:
    """A mask of the arguments that lie in an interval in which the function is accurate."""
    inside = torch.zeros(x.shape, dtype=torch.bool)
    for interval in found.accurate:
        inside |= (x >= interval.low) & (x <= interval.high)
    return inside


def measured(
    found: Accuracy,
    at: Typed,
    exact: Tensor,
    raw: Tensor,
    inherited: Tensor | None,
    element: str,
    function: Callable[[Tensor], Tensor] | None = None,
) -> Typed:
    """A result with the measured error of a function at the arguments ``at``; an ulp is at most 2u of the result.

    ``function`` of ``at`` alone, where the result is that.
    """
    of = None if function is None else (function, (at,))
    return computed(exact, raw, inherited, element, 2 * found.ulps_at(at.typed), found.below, of)


@carries(*_STEPS)
def step(op: Op, machine, a: Any) -> Typed:
    value = lift(a, op.operand_types[0])
    fn = lookup(op.name)
    exact = fn(op, machine, value.exact)
    if value.same and value.bound is None:
        return Typed(exact, exact.to(value.typed.dtype))
    typed = fn(op, machine, value.wide).to(value.typed.dtype)
    bound = None
    if value.bound is not None:
        bound = between_ends(lambda x: fn(op, machine, x), value)
        bound = settled(bound, exact, typed, lambda x: fn(op, machine, x), (value,))
    return Typed(exact, typed, bound, False)


@carries("math.absf")
def absolute(op: Op, machine, a: Any) -> Typed:
    value = lift(a, op.operand_types[0])
    return Typed(value.exact.abs(), value.typed.abs(), or_zero(value.typed, value.bound), value.same)


@carries("math.powf", "math.fpowi")
def power(op: Op, machine, *operands: Any) -> Typed:
    base, exponent = values_of(op, operands)
    fn = lookup(op.name)
    raw = fn(op, machine, base.wide, exponent.wide)
    found = measurement("math.powf", element_of(op))
    inherited = None
    if bounded((base, exponent)):
        inherited = _between_corners(lambda x, y: fn(op, machine, x, y), base, exponent, raw)
    if found.argument and not op.name.endswith("i"):
        # Rounding the product y·log|x| is a change of y, but no integer y of a negative x becomes another's.
        size = base.wide.abs()
        middle = torch.pow(size, exponent.wide)
        ends = [(torch.pow(size, exponent.wide * (1 + s * found.argument)) - middle).abs() for s in (-1, 1)]
        own = torch.maximum(*ends).nan_to_num(0.0, torch.inf).float()
        inherited = own if inherited is None else inherited + own
    exact = fn(op, machine, base.exact, exponent.exact)
    return measured(found, base, exact, raw, inherited, element_of(op))


def _between_corners(function: Callable[[Tensor, Tensor], Tensor], a: Typed, b: Typed, at: Tensor) -> Tensor:
    """As :func:`between_ends`, for a function that is monotone in each of two arguments."""
    found = torch.zeros(at.shape, dtype=torch.float32)
    for left in (-1, 1):
        for right in (-1, 1):
            corner = function(a.wide + left * a.error.double(), b.wide + right * b.error.double())
            found = torch.maximum(found, (corner - at).abs().nan_to_num(torch.inf, torch.inf).float())
    return found


@carries("math.atan2")
def arc_tangent(op: Op, machine, *operands: Any) -> Typed:
    values = values_of(op, operands)
    fn = lookup(op.name)
    raw = fn(op, machine, *(value.wide for value in values))
    inherited = unlimited(values, raw) if bounded(values) else None
    exact = fn(op, machine, *(value.exact for value in values))
    quotient = Typed(exact, values[0].wide / values[1].wide)
    found = measurement(op.name, element_of(op))
    return measured(found, quotient, exact, raw, inherited, element_of(op))


@carries("math.copysign")
def copy_sign(op: Op, machine, *operands: Any) -> Typed:
    a, b = values_of(op, operands)
    bound = a.bound
    if b.bound is not None:
        doubt = b.wide.abs() <= b.bound.double()
        bound = a.error + torch.where(doubt & (b.bound > 0), 2 * a.wide.abs().float(), 0.0)
    typed = torch.copysign(a.typed, b.typed)
    return Typed(torch.copysign(a.exact, b.exact), typed, or_zero(typed, bound), a.same and b.same)


@carries("math.clampf")
def clamp(op: Op, machine, *operands: Any) -> Typed:
    value, low, high = values_of(op, operands)
    fn = lookup(op.name)
    exact = fn(op, machine, value.exact, low.exact, high.exact)
    typed = fn(op, machine, value.typed, low.typed, high.typed)
    bound = None
    if bounded((value, low, high)):
        bound = torch.maximum(value.error, torch.maximum(low.error, high.error))
    return Typed(exact, typed, or_zero(typed, bound), value.same and low.same and high.same)


@carries("math.isnan", "math.isinf", "math.isfinite")
def classify(op: Op, machine, a: Any) -> Typed:
    value = lift(a, op.operand_types[0])
    fn = lookup(op.name)
    exact = fn(op, machine, value.exact)
    if value.same:
        return Typed(exact, exact)
    bound = None
    if value.bound is not None:
        limit = float_format(tensor_type(op.operand_types[0])[1]).max_finite
        reached = value.wide.abs() + value.bound.double()
        # An overflow in doubt is a number in other code; what is infinite for sure has no bound to speak of.
        bound = (~(reached < limit) & (value.bound != 0)).float()
    return Typed(exact, fn(op, machine, value.wide), bound, False)
