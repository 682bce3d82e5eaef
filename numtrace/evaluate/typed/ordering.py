"""What is ordered by one comparison: sort and topk.

Sorting moves no value further than the values are moved themselves: with keys off by ε at most along the dimension, so
is each that has been put in order. What goes along with a key is certain where no other key is within 2ε of it; of
equal keys code may put any first.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from numtrace.errors import UncoveredOp
from numtrace.evaluate.op import Op
from numtrace.evaluate.ordering import order_key
from numtrace.evaluate.registry import lookup
from numtrace.evaluate.typed.arithmetic import values_of
from numtrace.evaluate.typed.registry import carries
from numtrace.evaluate.typed.value import Typed, bounded, together


def _key(op: Op) -> tuple[int, bool]:
    key = order_key(op)
    if key is None:
        raise UncoveredOp(op.name, "no error bound is known of an order that is more than one comparison")
    return key


def _doubtful(ordered: Tensor, error: Tensor, dim: int) -> Tensor:
    """Which elements may have the place of one beside them, or are equal to it."""
    count = ordered.shape[dim] - 1
    before, after = ordered.narrow(dim, 0, count), ordered.narrow(dim, 1, count)
    close = (before == after) | ((before - after).abs() <= 2 * error)
    edge = torch.zeros_like(ordered.narrow(dim, 0, 1), dtype=torch.bool)
    return torch.cat([edge, close], dim) | torch.cat([close, edge], dim)


@carries("iree_linalg_ext.sort")
def sort(op: Op, machine, *operands: Any) -> tuple[Typed, ...]:
    number, descending = _key(op)
    values, dim, fn = values_of(op, operands), op.integer("dimension"), lookup(op.name)
    exact, typed = (
        fn(op, machine, *(getattr(value, lane) for value in values)) for lane in ("exact", "typed")
    )
    keys = values[number]
    if keys.shape[dim] == 0:
        return tuple(Typed(*lanes) for lanes in zip(exact, typed, strict=True))
    error = keys.error.amax(dim, keepdim=True)
    doubt = _doubtful(typed[number].double(), error.double(), dim)
    order = torch.sort(keys.typed, dim=dim, descending=descending, stable=True).indices
    results = []
    for index, value in enumerate(values):
        if index == number:
            bound = None if value.bound is None else error.expand(value.shape)
        else:
            bound = torch.where(doubt, torch.inf, value.error.gather(dim, order))
        results.append(Typed(exact[index], typed[index], bound, together(values)))
    return tuple(results)


@carries("iree_linalg_ext.topk", "iree_linalg_ext.topk_v2")
def topk(op: Op, machine, *operands: Any) -> tuple[Typed, Typed]:
    _, descending = _key(op)
    values, dim, fn = values_of(op, operands), op.integer("dimension"), lookup(op.name)
    exact, typed = (
        fn(op, machine, *(getattr(value, lane) for value in values)) for lane in ("exact", "typed")
    )
    best, value = values[-2], values[0]
    if bounded(other for other in values if other is not best and other is not value):
        raise UncoveredOp(op.name, "an index hangs on rounding")
    error = torch.cat([best.error, value.error], dim).amax(dim, keepdim=True)
    ordered = torch.cat([best.wide, value.wide], dim).sort(dim=dim, descending=descending).values
    doubt = _doubtful(ordered.double(), error.double(), dim).narrow(dim, 0, typed[0].shape[dim])
    kept = error.expand(typed[0].shape) if bounded((best, value)) else None
    return (
        Typed(exact[0], typed[0], kept, together(values)),
        Typed(exact[1], typed[1], torch.where(doubt, torch.inf, 0.0), together(values)),
    )
