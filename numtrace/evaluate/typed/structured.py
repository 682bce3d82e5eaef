"""Structured ops in both meanings: the same loops as in ``evaluate/structured.py``, with the bound carried along.

A contraction or a reduction is summed exactly and rounded once to the type of its accumulator. Code may sum in any
order, fused or not: the bound is that of ``typed/summation.py``, plus what the terms' own bounds add.
"""

from __future__ import annotations

from itertools import product
from math import isfinite, prod
from typing import Any

import torch
from torch import Tensor

from numtrace.errors import UncoveredOp
from numtrace.evaluate.affine import Domain, Linear, align, loop_view
from numtrace.evaluate.complex_numbers import part_type
from numtrace.evaluate.contraction import contract
from numtrace.evaluate.linalg import STRUCTURED
from numtrace.evaluate.nest import Nest
from numtrace.evaluate.op import Op
from numtrace.evaluate.structured import REDUCTIONS, STRIPE, same_dtype
from numtrace.evaluate.typed.casts import either_zero, narrowed, or_zero
from numtrace.evaluate.typed.complex_numbers import in_two, of_two
from numtrace.evaluate.typed.order import contract_in_order, sum_in_order
from numtrace.evaluate.typed.registry import carries
from numtrace.evaluate.typed.rounding import round_to, unit
from numtrace.evaluate.typed.sizes import sizes
from numtrace.evaluate.typed.special import assumed, settled_products, settled_sum
from numtrace.evaluate.typed.value import Typed, bound_dtype, bounded, lift, together
from numtrace.evaluate.types import is_float, tensor_type


@carries(*STRUCTURED)
def structured(op: Op, machine, *operands: Any) -> tuple[Any, ...]:
    """The results of a structured op; plain tensors where it has to do with integers alone.

    Raises:
        UncoveredOp: as the exact evaluation, or there is no bound for an op of the region.
    """
    nest = op.cache.get("nest")
    if nest is None:
        nest = op.cache["nest"] = Nest(op)
    values = [lift(value, type_) for value, type_ in zip(operands, op.operand_types, strict=True)]
    shapes = [tuple(value.exact.shape) for value in values]
    domain = Domain.whole(nest.sizes(shapes))
    inputs, outs = values[: nest.ins], values[nest.ins :]
    if 0 in domain.sizes:
        return tuple(outs)
    inputs = nest.over_loops(inputs, domain.sizes, Typed.map)
    results = _results(op, nest, machine, inputs, outs, domain)
    # What joins a reduction is no op of the machine's: it may be one that NaN and infinities are nothing to.
    if nest.joins and any(True in assumed(inner) for inner in nest.body.ops):
        read = (value for slot, value in zip(nest.body.arguments, values, strict=True) if slot in nest.read)
        if not all(map(_is_finite, read)):
            return tuple(_free(value) for value in results)
    return results


def _is_finite(value: Typed) -> bool:
    return not value.exact.is_floating_point() or isfinite(float(value.exact.sum()))


def _free(value: Typed) -> Typed:
    return Typed(value.exact, value.typed, torch.full(value.exact.shape, torch.inf), value.same)


def _results(
    op: Op, nest: Nest, machine, inputs: list[Typed], outs: list[Typed], domain: Domain
) -> tuple[Typed, ...]:
    if nest.joins is None or not (nest.reductions or nest.whole):
        return _loop(nest, machine, inputs, outs, domain)
    factors = [inputs[i].exact for i in nest.factors or ()]
    # A product of complex numbers is four, whose rounding errors the region's own evaluation knows.
    if factors and same_dtype(outs[0].exact, *factors) and not outs[0].exact.is_complex():
        return (_contraction(op, nest, machine, inputs, outs[0], domain),)
    return _vectorised(nest, machine, inputs, outs, domain)


def _contraction(op: Op, nest: Nest, machine, inputs: list[Typed], out: Typed, domain: Domain) -> Typed:
    assert nest.factors is not None
    a, b = (
        _through_casts(inputs[i], casts) for i, casts in zip(nest.factors, nest.factor_casts, strict=True)
    )
    maps = [nest.maps[i] for i in nest.factors]
    element = tensor_type(op.result_types[0])[1]

    def summed(left: Tensor, right: Tensor, start: Tensor) -> Tensor:
        return contract((left, maps[0]), (right, maps[1]), (start, nest.out_maps[0]), domain)

    exact = summed(a.exact, b.exact, out.exact)
    values = (a, b, out)
    raw = exact if together(values) else summed(a.wide, b.wide, out.wide)
    if not is_float(element):
        if bounded(values):
            raise UncoveredOp(op.name, "integers that hang on rounding are contracted")
        return Typed(exact, raw, None, together(values))
    terms = prod(domain.sizes[loop] for loop in nest.reductions) + 1
    sums = machine.summation(terms, raw.numel(), *nest.sum_types[0])
    operands = ((a.typed, maps[0]), (b.typed, maps[1]), (out.typed, nest.out_maps[0]))
    total, sharp = sizes(*operands, domain, sharp=machine.sharp)
    machine.loose = machine.loose or not sharp
    typed = round_to(raw, element)
    if machine.in_order:
        typed = round_to(contract_in_order(*operands, domain, _narrowest(nest.sum_types[0])), element)
    if bounded(values):
        inherited = out.error
        if a.bound is not None:
            inherited = summed(a.bound, b.typed.float().abs() + b.error, inherited)
        if b.bound is not None:
            inherited = summed(a.typed.float().abs(), b.bound, inherited)
    else:
        inherited = None
    bound = sums.bound(total, typed, inherited)
    if not isfinite(float(bound.sum())):
        bound = settled_products(bound, exact, typed, values, summed, sums.limit)
    return Typed(exact, typed, bound, False, sums.growth)


def _narrowest(types: list[str]) -> str:
    """Of the types that a running sum is rounded to, the one that counts."""
    return max(types, key=unit)


def _through_casts(value: Typed, types: list[str]) -> Typed:
    for element in types:
        value = narrowed(value, element)
    return value


def _region(nest: Nest, machine, operands: list[Typed], domain: Domain, part: bool = False) -> list[Any]:
    arguments = [
        _aligned(value, forms, domain) if slot in nest.read else None
        for slot, value, forms in zip(nest.body.arguments, operands, nest.maps, strict=True)
    ]
    outer, machine.domain = machine.domain, domain
    try:
        if part:
            return machine.run_part(nest.body, arguments, nest.contributing, nest.contributions)
        return machine.run(nest.body, arguments)
    finally:
        machine.domain = outer


def _vectorised(
    nest: Nest, machine, inputs: list[Typed], outs: list[Typed], whole: Domain
) -> tuple[Typed, ...]:
    extents = [whole.sizes[loop] for loop in nest.parallel]
    count = prod(extents)
    stripes = list(whole.cut(nest.parallel, STRIPE))
    results = [_Result(out) for out in outs] if len(stripes) > 1 else []
    values: list[Typed] = []
    for domain in stripes:
        yields = _region(nest, machine, [*inputs, *outs], domain, part=bool(nest.reductions))
        types = nest.contribution_types if nest.reductions else nest.yield_types
        values = [lift(value, type_) for value, type_ in zip(yields, types, strict=True)]
        if nest.reductions:
            starts = [_window(out, forms, domain) for out, forms in zip(outs, nest.out_maps, strict=True)]
            values = [
                _reduced(nest, machine, index, start, value, domain, count)
                for index, (start, value) in enumerate(zip(starts, values, strict=True))
            ]
        for result, value, forms in zip(results, values, nest.out_maps, strict=False):
            result.write(value, forms, domain)
    if results:
        return tuple(result.value() for result in results)
    return tuple(
        _whole(value, extents, [nest.parallel.index(loop) for loop in order], out)
        for value, order, out in zip(values, nest.orders, outs, strict=True)
    )


def _whole(value: Typed, extents: list[int], order: list[int], out: Typed) -> Typed:
    return value.map(lambda lane: lane.expand(extents).permute(order).reshape(out.exact.shape))


def _window(value: Typed, forms: tuple[Linear, ...], domain: Domain) -> Typed:
    return value.map(lambda lane: loop_view(lane, forms, domain)[0])


def _aligned(value: Typed, forms: tuple[Linear, ...], domain: Domain) -> Typed:
    return value.map(lambda lane: align(*loop_view(lane, forms, domain), domain.loops))


def _reduced(
    nest: Nest, machine, index: int, start: Typed, value: Typed, domain: Domain, results: int
) -> Typed:
    join, types = (nest.joins or [])[index], nest.sum_types[index]
    if join != "complex.add":
        return _joined(nest, machine, join, types, start, value, domain, results)
    types = [part_type(element) for element in types]
    return of_two(
        *(
            _joined(nest, machine, "arith.addf", types, onto, of, domain, results)
            for onto, of in zip(in_two(start), in_two(value), strict=True)
        )
    )


def _joined(
    nest: Nest,
    machine,
    join: str,
    types: list[str],
    start: Typed,
    value: Typed,
    domain: Domain,
    results: int,
) -> Typed:
    reduce, combine = REDUCTIONS[join]

    def lane(of: Tensor, onto: Tensor) -> Tensor:
        whole = of.to(onto.dtype).expand(domain.sizes)
        return combine(onto, reduce(whole, dim=nest.reductions).to(onto.dtype))

    values = (start, value)
    exact = lane(value.exact, start.exact)
    same = together(values)
    if join != "arith.addf":
        typed = exact.to(start.typed.dtype) if same else lane(value.typed, start.typed)
        bound = None
        if bounded(values):
            errors = value.error.expand(domain.sizes).amax(dim=nest.reductions)
            bound = torch.maximum(start.error, errors)
            floats = exact.is_floating_point()
            bound = either_zero(typed, bound) if floats else torch.where(bound != 0, torch.inf, 0.0)
        return Typed(exact, typed, or_zero(typed, bound), same)
    yielded = types[-1]
    raw = exact
    if not same:
        raw = start.wide + value.typed.expand(domain.sizes).sum(dim=nest.reductions, dtype=torch.float64)
    typed = round_to(raw, yielded)
    if machine.in_order:
        terms_at = value.typed.expand(domain.sizes)
        narrowest = _narrowest(types)
        typed = round_to(sum_in_order(terms_at, nest.reductions, start.typed, narrowest), yielded)
    terms = prod(domain.sizes[loop] for loop in nest.reductions) + 1
    sums = machine.summation(terms, results, *types)
    total = value.typed.float().abs().expand(domain.sizes).sum(dim=nest.reductions)
    total += start.typed.float().abs()
    inherited = None
    if bounded(values):
        inherited = value.error.expand(domain.sizes).sum(dim=nest.reductions)
        inherited += start.error
    bound = sums.bound(total, typed, inherited)
    if not isfinite(float(bound.sum())):

        def added(onto: Tensor, of: Tensor) -> Tensor:
            return onto + of.expand(domain.sizes).sum(dim=nest.reductions)

        bound = settled_sum(bound, exact, typed, start, value, added, sums.limit)
    return Typed(exact, typed, bound, False, sums.growth)


def _loop(nest: Nest, machine, inputs: list[Typed], outs: list[Typed], whole: Domain) -> tuple[Typed, ...]:
    results = [_Result(out, start=out) for out in outs]
    for point in product(*(range(whole.sizes[loop]) for loop in nest.reductions)):
        domain = whole.at(dict(zip(nest.reductions, point, strict=True)))
        yields = _region(nest, machine, [*inputs, *(result.value() for result in results)], domain)
        values = [lift(value, type_) for value, type_ in zip(yields, nest.yield_types, strict=True)]
        values = [value.map(torch.clone) for value in values]  # may be views of what is about to be written
        for result, value, forms in zip(results, values, nest.out_maps, strict=True):
            result.write(value, forms, domain)
    return tuple(result.value() for result in results)


class _Result:
    """A result that is written window by window."""

    def __init__(self, like: Typed, start: Typed | None = None):
        if start is None:
            self._exact = torch.empty(like.exact.shape, dtype=like.exact.dtype)
            self._typed = torch.empty(like.typed.shape, dtype=like.typed.dtype)
            self._bound: Tensor | None = None
            self._same = True
        else:
            self._exact, self._typed = (_own(lane) for lane in (start.exact, start.typed))
            self._bound = None if start.bound is None else _own(start.bound)
            self._same = start.same
        self._growth = 0.0

    def write(self, value: Typed, forms: tuple[Linear, ...], domain: Domain) -> None:
        if value.bound is not None and self._bound is None:
            self._bound = torch.zeros(self._exact.shape, dtype=bound_dtype(self._exact))
        for lane, of in ((self._exact, value.exact), (self._typed, value.typed), (self._bound, value.error)):
            if lane is not None:
                loop_view(lane, forms, domain)[0].copy_(of)
        self._same = self._same and value.same
        self._growth = max(self._growth, value.growth)

    def value(self) -> Typed:
        return Typed(self._exact, self._typed, self._bound, self._same, self._growth)


def _own(lane: Tensor) -> Tensor:
    return lane.clone(memory_format=torch.contiguous_format)
