"""Ops that the compiler takes apart itself, and which of their inner types count.

* ``linalg.softmax``: max, subtract, exp, sum, divide, all in the element type.
  Source: MLIR, ``SoftmaxOp::decomposeOperation``. What is bf16 may stay in f32 until it is stored
  (``arithmetic.LEFT_OUT``).
* ``winograd.*_transform``: two products with a constant matrix, in the element type.
  Source: IREE, ``DecomposeWinogradTransformPass``.
* ``attention``: the query is multiplied by scale·log2(e), a product of two constants in the query's type, and rounded
  to that type. Scores, the mask times log2(e), 2^x and sums in f32; the weights are rounded to the type of V, at the
  scale of a running maximum. The result is multiplied by a reciprocal.
  Source: IREE 3.13, the IR after ``ConvertAttentionToOnlineAttentionPass`` and ``DecomposeAttentionPass``
  (use-exp2) for llvm-cpu; tests/evaluate/typed/test_lowering.py looks at it.

Where the order or the scale of the steps is the code's own choice, the bound is the wider for it.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from numtrace.evaluate.affine import Domain, align, loop_view, loops_of
from numtrace.evaluate.contraction import contract
from numtrace.evaluate.formats import float_format
from numtrace.evaluate.linalg_ext import TRANSFORMS, Attention
from numtrace.evaluate.op import Op
from numtrace.evaluate.typed.arithmetic import (
    computed,
    of_quotient,
    of_sum,
    values_of,
    working,
)
from numtrace.evaluate.typed.functions import between_ends, in_doubt, measured, measurement
from numtrace.evaluate.typed.registry import carries
from numtrace.evaluate.typed.rounding import round_to, smallest, unit
from numtrace.evaluate.typed.value import Typed, bounded, element_of, lift, together
from numtrace.evaluate.types import tensor_type


@carries("linalg.fill")
def fill(op: Op, machine, value: Any, out: Any) -> Typed:
    element = element_of(op)
    given, shape = lift(value, op.operand_types[0]), lift(out, op.operand_types[1]).exact.shape
    typed = round_to(given.typed, element) if given.typed.is_floating_point() else given.typed
    return Typed(given.exact, typed, given.bound, given.same).map(lambda lane: lane.expand(shape))


@carries("linalg.softmax")
def softmax(op: Op, machine, value: Any, out: Any) -> Typed:
    given, dim, element = lift(value, op.operand_types[0]), op.integer("dimension"), element_of(op)
    weights = _exponentials(given, [dim], element)
    total = _total(machine, weights, [dim], element, terms=given.exact.shape[dim] + 1)
    quotient = _divided(weights, total, element)
    return Typed(torch.softmax(given.exact, dim), quotient.typed, quotient.bound, False)


def _exponentials(given: Typed, dims: list[int], element: str, base_two: bool = False) -> Typed:
    """exp(x - max x); ``base_two``: the code has x·log2(e) and takes 2^x."""
    top = given.map(lambda lane: lane.amax(dim=dims, keepdim=True))
    values = [given, top]
    shifted = computed(
        given.exact - top.exact,
        working(given.typed) - working(top.typed),
        of_sum(values, given.typed).float() if bounded(values) else None,
        element,
    )
    assert shifted.bound is not None
    found = measurement("math.exp2" if base_two else "math.exp", element)
    # Its argument is rounded by so much of it, whatever the base.
    doubtful = in_doubt(shifted, found)
    at = Typed(shifted.exact, shifted.wide / math.log(2), None, False) if base_two else shifted
    raw = torch.exp(shifted.wide)
    # Of exp(-inf) there is no doubt where there is none of the infinity.
    sure = (shifted.typed == -torch.inf) & torch.isfinite(shifted.bound)
    inherited = torch.where(sure, 0.0, between_ends(torch.exp, doubtful))
    return measured(found, at, torch.exp(shifted.exact), raw, inherited, element)


def _total(machine, value: Typed, dims: list[int], element: str, terms: int) -> Typed:
    exact = value.exact.sum(dim=dims, keepdim=True)
    raw = value.wide.sum(dim=dims, keepdim=True)
    sizes = value.wide.abs().sum(dim=dims, keepdim=True).float()
    errors = value.error.sum(dim=dims, keepdim=True)
    bound = (sizes + errors) * machine.summation(terms, exact.numel(), element).growth
    bound += errors + raw.abs().float() * unit(element) + terms * smallest(element)
    return Typed(exact, round_to(raw, element), bound, False)


def _divided(a: Typed, b: Typed, element: str) -> Typed:
    raw = working(a.typed) / working(b.typed)
    inherited = of_quotient([a, b], raw).float()
    # The code may multiply with the reciprocal: one rounding more.
    return computed(a.exact / b.exact, raw, inherited, element, roundings=2.0)


@carries(*TRANSFORMS)
def winograd(op: Op, machine, value: Any, out: Any) -> Typed:
    """Two products with matrices of at most 8 columns, whose entries are rounded to the element type as well."""
    transform, matrix = TRANSFORMS[op.name]
    given, target = values_of(op, (value, out))
    element = element_of(op)
    exact = transform(op, given.exact, target.exact, matrix)
    raw = exact if given.same else transform(op, given.wide, target.exact, matrix)
    size = matrix.abs().float()
    sizes = transform(op, given.typed.float().abs(), target.exact, size)
    products, entries = matrix.shape[1] + 1, 2 * unit(element)
    growth = 2 * machine.summation(products, raw.numel(), element).growth + entries
    typed = round_to(raw, element)
    # What is lost below the normal range in the first product is multiplied in the second.
    lost = products * (1 + float(size.sum(dim=1).max())) * smallest(element)
    bound = sizes * (growth * (1 + growth)) + typed.float().abs() * unit(element) + lost
    if given.bound is not None:
        bound += transform(op, given.bound, target.exact, size) * (1 + growth) ** 2
    return Typed(exact, typed, bound, False)


@carries("iree_linalg_ext.attention")
def attention(op: Op, machine, *operands: Any) -> Typed:
    """Raises UncoveredOp where the exact evaluation does, or the region has an op without a bound."""
    query, key, value, scale, *mask, out = values_of(op, operands)
    at = Attention(op, [tuple(given.exact.shape) for given in (query, key, value, *mask, out)])
    scaled = _scaled(query, scale, tensor_type(op.operand_types[0])[1])
    scores = _product(machine, (scaled, at.query), (key, at.key), (at.extents, at.scores), at.whole)
    (yielded,) = machine.run(op.regions[0], [scores])
    scores = lift(yielded, op.regions[0].ops[-1].operand_types[0])
    if mask:
        scores = _masked(scores, mask[0], at.mask[0], at.whole, at.loops)
    weights = _exponentials(scores, at.keys, "f32", base_two=True)
    # Tiles of keys are rescaled to the running maximum: three more roundings for each, at most one tile a key.
    count = 3 * max(1, math.prod(at.extents[position] for position in at.keys)) + 1
    total = _total(machine, weights, at.keys, "f32", terms=count)
    held = _held(weights, tensor_type(op.operand_types[2])[1])
    shape = list(out.exact.shape)
    joined = _product(machine, (held, at.scores), (value, at.value), (shape, at.out), at.whole, terms=count)
    divisor = total.map(lambda lane: _onto(lane, at.loops, at.out, at.whole))
    return _divided(joined, divisor, element_of(op))


def _scaled(query: Typed, scale: Typed, element: str) -> Typed:
    """The query times the scale, which code multiplies by log2(e) times the scale: both constants, their product and
    the result are rounded to ``element``."""
    typed = query.wide * scale.wide
    size = typed.abs()
    error = size * (4 * unit(element)) + 2 * smallest(element)
    if query.bound is not None:
        error += query.bound * scale.wide.abs() * (1 + 4 * unit(element))
    reached = (size + error) * math.log2(math.e)
    error = torch.where(reached >= float_format(element).max_finite, torch.inf, error)
    return Typed(query.exact * scale.exact, typed.float(), error.float(), False)


def _held(weights: Typed, element: str) -> Typed:
    """The weights in the type of V. At another scale they round otherwise: u of each is in doubt twice."""
    if element in ("f32", "f64"):
        return weights
    typed = round_to(weights.typed, element).float()
    error = weights.error * (1 + unit(element)) + typed.abs() * (2 * unit(element)) + 2 * smallest(element)
    return Typed(weights.exact, typed, error, False)


def _product(machine, a, b, out, domain: Domain, terms: int | None = None) -> Typed:
    """A·B in f32 with its bound; ``a`` and ``b`` are values with their maps, ``out`` a shape and a map."""
    (left, left_map), (right, right_map), (shape, out_map) = a, b, out

    def summed(x: Tensor, y: Tensor) -> Tensor:
        nothing = torch.zeros((), dtype=x.dtype).expand(shape)
        return contract((x, left_map), (y, right_map), (nothing, out_map), domain)

    exact = summed(left.exact, right.exact)
    raw = exact if together((left, right)) else summed(left.wide, right.wide)
    contracted = (loops_of(left_map) | loops_of(right_map)) - loops_of(out_map)
    terms = terms or math.prod(domain.sizes[loop] for loop in contracted) + 1
    size_a, size_b = left.typed.float().abs(), right.typed.float().abs()
    growth = machine.summation(terms, raw.numel(), "f32").growth
    bound = summed(size_a, size_b) * growth
    bound += raw.abs().float() * unit("f32") + terms * smallest("f32")
    if left.bound is not None:
        bound += summed(left.bound, size_b + right.error) * (1 + growth)
    if right.bound is not None:
        bound += summed(size_a, right.bound) * (1 + growth)
    return Typed(exact, raw.float(), bound, False)


def _masked(scores: Typed, mask: Typed, forms, whole: Domain, loops: list[int]) -> Typed:
    view = mask.map(lambda lane: align(*loop_view(lane, forms, whole), loops))
    if view.exact.dtype == torch.bool:
        bound = torch.where(view.exact, scores.error, 0.0)
        return Typed(
            torch.where(view.exact, scores.exact, -torch.inf),
            torch.where(view.exact, scores.typed, -torch.inf),
            bound,
            False,
        )
    added = view.typed.float()
    error = scores.error + view.error + added.abs() * (2 * unit("f32"))  # log2(e), and the product with it
    return computed(scores.exact + view.exact, scores.typed + added, error, "f32")


def _onto(lane: Tensor, loops: list[int], out_map, whole: Domain) -> Tensor:
    """The sums over keys (one dimension per loop, those of the keys 1) broadcast over the output."""
    order = [form.coefficients[0][0] for form in out_map]
    kept = [loop for loop in loops if loop in order]
    squeezed = (
        lane.squeeze([i for i, loop in enumerate(loops) if loop not in order])
        if len(kept) < len(loops)
        else lane
    )
    positions = [kept.index(loop) if loop in kept else None for loop in order]
    view = squeezed.permute([p for p in positions if p is not None])
    for i, position in enumerate(positions):
        if position is None:
            view = view.unsqueeze(i)
    return view.expand([whole.sizes[loop] for loop in order])
