"""Ops that only move values: their own evaluation, on each meaning and on the bound."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from numtrace.errors import UncoveredOp
from numtrace.evaluate.complex_numbers import of_parts
from numtrace.evaluate.op import Op, reads
from numtrace.evaluate.registry import lookup
from numtrace.evaluate.tensors import copied, mixed_window, resolve, split, window, write
from numtrace.evaluate.typed.registry import carries
from numtrace.evaluate.typed.value import Typed, bound_dtype, bounded, lift, together
from numtrace.evaluate.types import is_inexact, tensor_type


def moved(op: Op, machine, operands: list[Any]) -> Any:
    """The results of ``op`` on each meaning; sizes and offsets stay plain.

    Raises:
        UncoveredOp: an index is itself in doubt.
    """
    fn = lookup(op.name)
    if not any(isinstance(value, Typed) for value in operands):
        return fn(op, machine, *operands)
    values = [
        lift(value, type_) if isinstance(value, Typed) or _is_inexact(value) else value
        for value, type_ in zip(operands, op.operand_types, strict=True)
    ]
    carried = [value for value in values if isinstance(value, Typed)]
    same = together(carried)
    for value, type_ in zip(values, op.operand_types, strict=True):
        if isinstance(value, Typed) and not is_inexact(tensor_type(type_)[1]) and value.bound is not None:
            raise UncoveredOp(op.name, "an index or condition hangs on rounding")
    exact = fn(op, machine, *_lane(values, "exact"))
    typed = fn(op, machine, *_lane(values, "typed"))
    bound = fn(op, machine, *_lane(values, "error")) if bounded(carried) else None
    if not isinstance(exact, tuple):
        exact, typed, bound = (exact,), (typed,), None if bound is None else (bound,)
    results = tuple(
        Typed(e, _native(t, carried), None if bound is None else bound[i].to(bound_dtype(e)), same)
        for i, (e, t) in enumerate(zip(exact, typed, strict=True))
    )
    return results if len(results) != 1 else results[0]


def _is_inexact(value: Any) -> bool:
    return isinstance(value, Tensor) and (value.is_floating_point() or value.is_complex())


def _lane(values: list[Any], lane: str) -> list[Any]:
    return [getattr(value, lane) if isinstance(value, Typed) else value for value in values]


def _native(value: Tensor, carried: list[Typed]) -> Tensor:
    """Some moves widen what they copy: back to the type that it came in."""
    return value.to(carried[0].typed.dtype)


@carries("tensor.pad")
def pad(op: Op, machine, *operands: Any) -> Typed:
    (source,), low, high = split(op, operands)
    source = lift(source, op.operand_types[0])
    low = resolve(op.integers("static_low"), low)
    high = resolve(op.integers("static_high"), high)
    if min([*low, *high], default=0) < 0:
        raise UncoveredOp(op.name, "negative padding")
    block = op.regions[0]
    if any(slot in block.arguments for inner in block.ops for slot in reads(inner)):
        raise UncoveredOp(op.name, "padding that depends on the position")
    (fill,) = machine.run(block, [None] * len(block.arguments))
    fill = lift(fill, op.operand_types[0])
    shape = [a + size + b for a, size, b in zip(low, source.exact.shape, high, strict=True)]

    def padded(value: Tensor, by: Tensor) -> Tensor:
        result = by.to(value.dtype).expand(shape).clone(memory_format=torch.contiguous_format)
        window(result, low, list(value.shape), [1] * len(shape)).copy_(value)
        return result

    bound = None
    if bounded((source, fill)):
        bound = padded(source.error, fill.error)
    return Typed(
        padded(source.exact, fill.exact), padded(source.typed, fill.typed), bound, together((source, fill))
    )


@carries("tensor.insert_slice")
def insert_slice(op: Op, machine, *operands: Any) -> Typed:
    (source,), (target,), offsets, sizes, strides = split(op, operands)
    source, target = lift(source, op.operand_types[0]), lift(target, op.operand_types[1])
    return written(op, source, target, offsets, sizes, strides)


def written(op: Op, source: Typed, target: Typed, offsets: list, sizes: list, strides: list) -> Typed:
    """``target`` with a window of it replaced by ``source``."""

    def put(into: Tensor, value: Tensor) -> Tensor:
        result = copied(into)
        write(result, value, lambda lane: mixed_window(op, lane, offsets, sizes, strides))
        return result

    bound = put(target.error, source.error) if bounded((source, target)) else None
    return Typed(
        put(target.exact, source.exact), put(target.typed, source.typed), bound, together((source, target))
    )


@carries("tensor.extract")
def extract(op: Op, machine, value: Any, *indices: Any) -> Any:
    """Where an index is in doubt, anything may be read."""
    value, fn = lift(value, op.operand_types[0]), lookup(op.name)
    carried = [index for index in indices if isinstance(index, Typed)]
    exact_at, typed_at = (_lane([*indices], lane) for lane in ("exact", "typed"))
    if together(carried) and not bounded(carried):
        return value.map(lambda lane: fn(op, machine, lane, *typed_at))
    exact, typed = fn(op, machine, value.exact, *exact_at), fn(op, machine, value.typed, *typed_at)
    bound = fn(op, machine, value.error, *typed_at)
    anything = of_parts(torch.full((2,), torch.inf)) if bound.is_complex() else torch.inf
    for index in carried:
        bound = torch.where(index.error != 0, anything, bound)
    return Typed(exact, typed, bound, False)
