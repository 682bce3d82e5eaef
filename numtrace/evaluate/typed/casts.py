"""Casts between float types and to and from integers, with what a rounding that code leaves out may cost."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from numtrace.evaluate.formats import float_format
from numtrace.evaluate.op import Op
from numtrace.evaluate.registry import lookup
from numtrace.evaluate.typed.registry import carries
from numtrace.evaluate.typed.rounding import round_to, smallest, unit
from numtrace.evaluate.typed.value import Typed, element_of, lift
from numtrace.evaluate.types import NATIVE

#: Types that code need not round to before a value is stored: IREE keeps what it computes in bf16 in f32, and takes
#: a cast to bf16 that is cast back at once for no operation. Source: IREE, ``ConvertBf16ArithToF32Pass``.
LEFT_OUT = frozenset(("bf16",))


@carries("arith.extf")
def extend(op: Op, machine, a: Any) -> Typed:
    value = lift(a, op.operand_types[0])
    return Typed(value.exact, value.typed.to(NATIVE[element_of(op)]), value.bound, value.same)


@carries("arith.truncf")
def truncate(op: Op, machine, a: Any) -> Typed:
    return narrowed(lift(a, op.operand_types[0]), element_of(op))


def narrowed(value: Typed, element: str) -> Typed:
    """A cast to a narrower type. Rounding is monotone: the result lies between those of both ends."""
    if value.typed.dtype == NATIVE[element]:
        return value
    typed = round_to(value.typed, element)
    bound = None
    if value.bound is not None:
        at, error = typed.double(), value.bound.double()
        ends = [value.wide - error, value.wide + error]
        reached = [round_to(end, element).double() for end in ends]
        low, high = (_apart(end, at) for end in reached)
        bound = torch.maximum(low, high)
        if element in LEFT_OUT:
            low, high = (_apart(end, at) for end in ends)
            bound = torch.maximum(bound, torch.maximum(low, high))
        bound = bound.float()
        if not math.isfinite(float(value.bound.sum())):
            bound = torch.where(torch.isfinite(value.bound), bound, torch.inf)
    elif element in LEFT_OUT:
        bound = _apart(value.typed, typed.to(value.typed.dtype)).float()  # exact: neighbours
    bound = or_zero(typed, bound)
    if element.startswith("f8"):
        # Beyond the largest number hardware and libraries differ: NaN, infinity, or the largest number.
        beyond = value.wide.abs() + value.error > float_format(element).max_finite
        bound = torch.where(beyond, torch.inf, 0.0 if bound is None else bound).float()
    return Typed(value.exact, typed, bound, False)


def or_zero(typed: Tensor, bound: Tensor | None) -> Tensor | None:
    """The bound of a value that was computed or cast without a rounding error: of f16, a result below the normal
    range may be zero instead. (Of f32 and bf16 whatever is below it is in doubt to begin with.)"""
    if typed.dtype != torch.float16:
        return bound
    size = typed.abs().float()
    error = torch.zeros((), dtype=torch.float32).expand(size.shape) if bound is None else bound
    low = (size - error < smallest("f16")) & (size > 0)
    if not bool(low.any()):
        return bound
    return torch.where(low, size.clamp(max=smallest("f16")) + error, error)


def either_zero(typed: Tensor, bound: Tensor) -> Tensor:
    """The bound of the larger or smaller of several values, where they may all be zero and any may be taken."""
    return torch.where(typed.float().abs() <= bound, 2 * bound, bound)


def _apart(a: Tensor, b: Tensor) -> Tensor:
    """|a - b|, where equal infinities are not apart, nor NaN from NaN."""
    gap = torch.sub(a, b).abs_()
    if math.isfinite(float(gap.sum())):
        return gap
    return torch.where((a == b) | (torch.isnan(a) & torch.isnan(b)), 0.0, gap)


@carries("arith.sitofp", "arith.uitofp")
def from_integer(op: Op, machine, a: Any) -> Typed:
    value = lift(a, op.operand_types[0])
    exact = lookup(op.name)(op, machine, value.exact)
    raw = exact if value.same else lookup(op.name)(op, machine, value.typed)
    return Typed(exact, round_to(raw, element_of(op)), _with_rounding(value.bound, raw, op), False)


def _with_rounding(bound: Tensor | None, raw: Tensor, op: Op) -> Tensor | None:
    element = element_of(op)
    if bound is None and element not in LEFT_OUT:
        return None
    # Left out, or done twice (to f32 first): off by one unit in the last place at most.
    own = raw.abs().float() * (2 * unit(element))
    if bound is None:
        return torch.where(round_to(raw, element).to(raw.dtype) == raw, 0.0, own)
    return bound + own


@carries("arith.fptosi", "arith.fptoui")
def to_integer(op: Op, machine, a: Any) -> Typed:
    value = lift(a, op.operand_types[0])
    fn = lookup(op.name)
    exact = fn(op, machine, value.exact)
    typed = exact if value.same else fn(op, machine, value.wide)
    bound = None
    low = high = middle = torch.trunc(value.wide)
    if value.bound is not None:
        low, high = (torch.trunc(value.wide + sign * value.bound.double()) for sign in (-1, 1))
        bound = torch.maximum(high - middle, middle - low).float()
    least, beyond = _integers(op)
    undefined = ~((low >= least) & (high < beyond))
    if bool(undefined.any()):
        bound = torch.where(undefined, torch.inf, 0.0 if bound is None else bound).float()
    return Typed(exact, typed, bound, value.same and bound is None)


def _integers(op: Op) -> tuple[float, float]:
    """The least integer of the result's type, and the first one beyond it, which a float64 holds.

    Out of the range, and of NaN, a cast is undefined, and nobody's fault.
    """
    bits = 1 if op.dtype == torch.bool else torch.iinfo(op.dtype).bits
    return (0.0, 2.0**bits) if op.name.endswith("ui") else (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1))


@carries("arith.bitcast")
def bitcast(op: Op, machine, a: Any) -> Typed:
    value = lift(a, op.operand_types[0])
    exact = lookup(op.name)(op, machine, value.exact)
    typed = value.typed.view(NATIVE[element_of(op)])
    bound = None if value.bound is None else torch.where(value.bound != 0, torch.inf, 0.0).float()
    return Typed(exact, typed, bound, value.same)
