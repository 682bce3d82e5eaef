"""``arith`` on floats: rounded to the type of the IR, and the propagation of the bound.

With a and b the typed operands, α and β their bounds, the compiled result differs from the typed one by what the
operands' differences make of it, and by the two roundings, u·|result| each. Where both operands are certain, so is
a correctly rounded result; still it gets u·|result|, since code may leave out the rounding of an intermediate (a
fused multiply-add). Where denormals are flushed, a result below the normal range may be zero instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from numtrace.evaluate.extremes import maximum, minimum
from numtrace.evaluate.op import Op
from numtrace.evaluate.typed.casts import either_zero, or_zero
from numtrace.evaluate.typed.registry import carries
from numtrace.evaluate.typed.rounding import round_to, smallest, unit
from numtrace.evaluate.typed.special import settled, special
from numtrace.evaluate.typed.value import Typed, bounded, element_of, lift, together
from numtrace.evaluate.types import integer_width

#: From the typed operands and the raw result, what the operands' bounds make of it; all float32 or float64.
Inherit = Callable[[Sequence[Typed], Tensor], Tensor]


def values_of(op: Op, operands: Sequence[Any]) -> list[Typed]:
    return [lift(value, type_) for value, type_ in zip(operands, op.operand_types, strict=True)]


def working(value: Tensor) -> Tensor:
    """The typed value where arithmetic on it is done: f32 and f64 in themselves, what is narrower in f32.

    One rounding from there is as if direct: 24 >= 2p + 2 for p <= 11 (S. A. Figueroa, "When is double rounding
    innocuous?", SIGNUM Newsletter 30(3), 1995), for +, -, ·, / and the square root.
    """
    return value if value.dtype in (torch.float32, torch.float64) else value.float()


def computed(
    exact: Tensor,
    raw: Tensor,
    inherited: Tensor | None,
    element: str,
    roundings: float | Tensor | None = None,
    below: float = 0.0,
    of: tuple[Callable[..., Tensor], Sequence[Typed]] | None = None,
) -> Typed:
    """A rounded result: ``raw`` from the typed operands; ``roundings`` is the code's own error in units of u before it
    rounds the result, and ``below`` what it may be of results below the normal range. None: a correctly rounded
    operation. ``of``: the function and its operands, by which it is seen what NaN and infinities are certain.

    With ι what is inherited, the code's unrounded result is at most |typed|·(1 + u) + ι, and rounded again: the bound
    is (1 + u)·ι + 2u·|typed|, and below the normal range once more for each of the two roundings. A function's own
    error is relative to what it really computed, so it grows with ι too.
    """
    typed = round_to(raw, element)
    size = typed.abs() if typed.dtype == torch.float32 else typed.float().abs_()
    certain = inherited is None and roundings is None
    own = 0.0
    if roundings is not None:
        own = float(roundings.max() if isinstance(roundings, Tensor) else roundings)
    if roundings is None:
        roundings = 0.0 if certain else 1.0
    error = size.mul_((roundings + 1.0) * unit(element))
    if inherited is not None:
        error.add_(inherited, alpha=1 + (1 + own) * unit(element))
    error.add_(smallest(element) * (1 if certain else 2) + below)
    if not math.isfinite(float(error.sum())):
        certain_ = special(exact, typed)
        if inherited is not None:
            certain_ &= torch.isfinite(inherited)
        error = torch.where(certain_, 0.0, error)
        if of is not None and inherited is not None:
            error = settled(error, exact, typed, *of)
    return Typed(exact, typed, error, False)


def arithmetic(function: Callable[..., Tensor], inherit: Inherit) -> Callable[..., Typed]:
    """The rule of a correctly rounded operation."""

    def rule(op: Op, machine, *operands: Any) -> Typed:
        return correctly_rounded(function, inherit, values_of(op, operands), element_of(op))

    return rule


def correctly_rounded(
    function: Callable[..., Tensor], inherit: Inherit, values: Sequence[Typed], element: str
) -> Typed:
    """The result of a correctly rounded operation in the type ``element``."""
    exact = function(*(value.exact for value in values))
    raw = function(*(working(value.typed) for value in values))
    inherited = inherit(values, raw).float() if bounded(values) else None
    return computed(exact, raw, inherited, element, of=(function, values))


def of_sum(values: Sequence[Typed], raw: Tensor) -> Tensor:
    """α + β."""
    a, b = values
    if a.bound is None or b.bound is None:
        return a.error if b.bound is None else b.error
    return a.bound + b.bound


def of_product(values: Sequence[Typed], raw: Tensor) -> Tensor:
    """|a|β + |b|α + αβ."""
    a, b = values
    if a.bound is None:
        return working(a.typed).abs() * b.error
    if b.bound is None:
        return working(b.typed).abs() * a.bound
    left, right = working(a.typed).abs().mul(b.bound), working(b.typed).abs().add(b.bound)
    return torch.addcmul(left, right, a.bound)


def of_quotient(values: Sequence[Typed], raw: Tensor) -> Tensor:
    """(α + |a/b|β) / (|b| - β), without limit where the divisor may be zero."""
    a, b = values
    size = working(b.typed).abs()
    if b.bound is None:
        return torch.where(a.error > 0, a.error / size, 0.0)
    rest = size.sub_(b.bound)
    reached = raw.abs().mul_(b.bound)
    if a.bound is not None:
        reached += a.bound
    return torch.where(rest > 0, reached.div_(rest), torch.inf)


def of_multiply_add(values: Sequence[Typed], raw: Tensor) -> Tensor:
    return of_product(values[:2], raw) + values[2].error if bounded(values[:2]) else values[2].error


def unlimited(values: Sequence[Typed], raw: Tensor) -> Tensor:
    """For functions with jumps: anything, where an operand is in doubt."""
    doubt = torch.zeros((), dtype=torch.float32)
    for value in values:
        doubt = torch.where(value.error != 0, torch.inf, doubt)  # NaN is doubt too
    return doubt.expand(raw.shape)


def of_addend(values: Sequence[Typed], raw: Tensor) -> Tensor:
    """α + β, and where one is a sum that code may begin with the other, what it is off by then."""
    error = of_sum(values, raw)
    for sum_, addend in (values, reversed(values)):
        if sum_.growth:
            error = error + sum_.growth * (addend.typed.float().abs() + addend.error)
    return error


_ADD = arithmetic(torch.add, of_addend)
_SUBTRACT = arithmetic(torch.sub, of_sum)
_MULTIPLY = arithmetic(torch.mul, of_product)

carries("arith.addf")(_ADD)
carries("arith.subf")(_SUBTRACT)
carries("arith.mulf")(_MULTIPLY)
carries("arith.divf")(arithmetic(torch.div, of_quotient))
carries("arith.remf")(arithmetic(torch.fmod, unlimited))


@carries("math.fma")
def multiply_add(op: Op, machine, *operands: Any) -> Typed:
    values = values_of(op, operands)
    a, b, c = values
    raw = a.wide * b.wide + c.wide  # the product of two f32 is exact in float64
    inherited = of_multiply_add(values, raw).float() if bounded(values) else None
    exact, of = a.exact * b.exact + c.exact, (lambda x, y, z: x * y + z, values)
    return computed(exact, raw, inherited, element_of(op), roundings=2.0, of=of)


@carries("arith.negf")
def negate(op: Op, machine, a: Any) -> Typed:
    value = lift(a, op.operand_types[0])
    return Typed(-value.exact, -value.typed, or_zero(value.typed, value.bound), value.same)


def chosen(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Typed]:
    """The rule of a minimum or maximum: max(α, β), nothing is rounded.

    Where both may be zero (denormals that are flushed to be compared) either may be taken as it is: α + β.
    """

    def rule(op: Op, machine, *operands: Any) -> Typed:
        a, b = values_of(op, operands)
        bound = torch.maximum(a.error, b.error) if bounded((a, b)) else None
        typed = function(a.typed, b.typed)
        if bound is not None:
            bound = either_zero(typed, bound)
        return Typed(function(a.exact, b.exact), typed, or_zero(typed, bound), together((a, b)))

    return rule


carries("arith.maximumf")(chosen(maximum))
carries("arith.minimumf")(chosen(minimum))
carries("arith.maxnumf")(chosen(torch.fmax))
carries("arith.minnumf")(chosen(torch.fmin))


@carries("arith.shli", "arith.shrsi", "arith.shrui")
def shift(op: Op, machine, a: Any, b: Any) -> Any:
    """By the width or more, MLIR's ``arith`` leaves the result open: no code for it is wrong."""
    value = machine.by_definition(op, [a, b])
    by = lift(b, op.operand_types[1]).exact
    free = (by < 0) | (by >= integer_width(element_of(op)))
    if not bool(free.any()):
        return value
    value = lift(value, op.result_types[0])
    return Typed(value.exact, value.typed, torch.where(free, torch.inf, value.error), False)
