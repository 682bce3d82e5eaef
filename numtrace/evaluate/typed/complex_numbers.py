"""``complex`` by the arithmetic on the parts that it is lowered to, each step rounded to their type.

Source: MLIR's ``ConvertComplexToStandard``. Division, powers and functions have no bound.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from numtrace.evaluate.complex_numbers import part_type
from numtrace.evaluate.op import Op
from numtrace.evaluate.registry import lookup
from numtrace.evaluate.typed.arithmetic import computed, correctly_rounded, of_product, of_sum, values_of
from numtrace.evaluate.typed.registry import carries
from numtrace.evaluate.typed.value import Typed, bounded, element_of, together


def in_two(value: Typed) -> tuple[Typed, Typed]:
    """The real and the imaginary parts of complex numbers."""
    return value.map(lambda lane: lane.real), value.map(lambda lane: lane.imag)


def of_two(re: Typed, im: Typed) -> Typed:
    """Complex numbers of their parts."""
    bound = torch.complex(*torch.broadcast_tensors(re.error, im.error)) if bounded((re, im)) else None
    exact, typed = (
        torch.complex(*torch.broadcast_tensors(*lanes))
        for lanes in ((re.exact, im.exact), (re.typed, im.typed))
    )
    return Typed(exact, typed, bound, together((re, im)))


@carries("complex.create")
def create(op: Op, machine, *operands: Any) -> Typed:
    re, im = values_of(op, operands)
    return of_two(re, im)


@carries("complex.re", "complex.im")
def part(op: Op, machine, a: Any) -> Typed:
    (value,) = values_of(op, [a])
    return in_two(value)[op.name == "complex.im"]


@carries("complex.neg", "complex.conj")
def signs(op: Op, machine, a: Any) -> Typed:
    """Only signs change: the bound is as it was."""
    (value,) = values_of(op, [a])
    fn = lookup(op.name)
    return Typed(fn(op, machine, value.exact), fn(op, machine, value.typed), value.bound, value.same)


def _each(function: Callable) -> Callable:
    def rule(op: Op, machine, *operands: Any) -> Typed:
        element = part_type(element_of(op))
        (a, b), (c, d) = (in_two(value) for value in values_of(op, operands))
        return of_two(
            correctly_rounded(function, of_sum, (a, c), element),
            correctly_rounded(function, of_sum, (b, d), element),
        )

    return rule


carries("complex.add")(_each(torch.add))
carries("complex.sub")(_each(torch.sub))


@carries("complex.mul")
def multiply(op: Op, machine, *operands: Any) -> Typed:
    """(a + bi)(c + di) = (ac - bd) + (bc + ad)i"""
    element = part_type(element_of(op))
    (a, b), (c, d) = (in_two(value) for value in values_of(op, operands))
    ac, bd, bc, ad = (
        correctly_rounded(torch.mul, of_product, pair, element) for pair in ((a, c), (b, d), (b, c), (a, d))
    )
    return of_two(
        correctly_rounded(torch.sub, of_sum, (ac, bd), element),
        correctly_rounded(torch.add, of_sum, (bc, ad), element),
    )


#: Of max·√(1 + (min/max)²), before the last product: u for the quotient, so 3u for its square, which is at most half
#: of the sum; u for the sum; half of these 2.5u after the root, and u for the root.
_ROUNDINGS_OF_ABS = 2.5


@carries("complex.abs")
def absolute(op: Op, machine, a: Any) -> Typed:
    """|a + bi|; it moves by no more than the parts do together."""
    (value,) = values_of(op, [a])
    re, im = in_two(value)
    exact, raw = (torch.hypot(x, y) for x, y in ((re.exact, im.exact), (re.wide, im.wide)))
    inherited = of_sum((re, im), raw) if bounded((re, im)) else None
    return computed(
        exact, raw, inherited, element_of(op), roundings=_ROUNDINGS_OF_ABS, of=(torch.hypot, (re, im))
    )
