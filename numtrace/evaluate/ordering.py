"""``iree_linalg_ext`` ops that choose by a comparison in their region: sort, topk and arg_compare."""

from __future__ import annotations

import torch
from torch import Tensor

from numtrace.errors import UncoveredOp
from numtrace.evaluate.op import Op
from numtrace.evaluate.registry import evaluates

#: arith.cmpf and arith.cmpi by their predicates, as numbered by MLIR: whether what they put first descends.
_DESCENDS = {
    "arith.cmpf": {2: True, 3: True, 4: False, 5: False, 9: True, 10: True, 11: False, 12: False},
    "arith.cmpi": {2: False, 3: False, 4: True, 5: True},
}
#: Elements along the dimension up to which an order of another form is made by comparing neighbours.
_LONGEST_BUBBLE = 256


@evaluates("iree_linalg_ext.sort")
def sort(op: Op, machine, *values: Tensor) -> tuple[Tensor, ...]:
    """All operands in the order in which the region holds for neighbours; equal ones stay as they were."""
    dim = op.integer("dimension")
    key = order_key(op)
    if key is None:
        return _bubble(op, machine, values, dim)
    number, descending = key
    _check_ordered(op, values[number])
    order = torch.sort(values[number], dim=dim, descending=descending, stable=True).indices
    return tuple(torch.gather(value, dim, order) for value in values)


@evaluates("iree_linalg_ext.topk", "iree_linalg_ext.topk_v2")
def topk(op: Op, machine, *operands: Tensor) -> tuple[Tensor, ...]:
    """The first along the dimension in the region's order, of the outs' elements and the input's.

    Of equal ones the lower index comes first. Without indices of its own an element has its place.
    """
    results = len(op.results)
    outs, (value, *more) = operands[-results:], operands[:-results]
    key, dim = order_key(op), op.integer("dimension")
    if results != 2 or key is None:
        raise UncoveredOp(op.name, "an order that is more than one comparison, or other results than two")
    places = torch.arange(value.shape[dim], dtype=outs[1].dtype)
    shape = [-1 if d == dim % value.dim() else 1 for d in range(value.dim())]
    index = more[0] if more else places.reshape(shape).expand(value.shape)
    found, indices = torch.cat([outs[0], value], dim), torch.cat([outs[1], index], dim)
    _check_ordered(op, found)
    for by, descending in ((1, False), (0, key[1])):
        order = torch.sort((found, indices)[by], dim=dim, descending=descending, stable=True).indices
        found, indices = (torch.gather(each, dim, order) for each in (found, indices))
    count = outs[0].shape[dim]
    return found.narrow(dim, 0, count), indices.narrow(dim, 0, count)


def _check_ordered(op: Op, value: Tensor) -> None:
    if value.is_floating_point() and bool(torch.isnan(value).any()):
        raise UncoveredOp(op.name, "a NaN has no place in this order")


def order_key(op: Op) -> tuple[int, bool] | None:
    """The operand that alone decides, and whether it descends; None when the region is not one comparison."""
    block = op.regions[0]
    compare, *rest = block.ops
    if len(rest) != 1 or compare.name not in _DESCENDS or rest[0].operands != compare.results:
        return None
    descends = _DESCENDS[compare.name].get(compare.integer("predicate"))
    places = [block.arguments.index(slot) if slot in block.arguments else -1 for slot in compare.operands]
    number = min(places) // 2
    if descends is None or min(places) < 0 or sorted(places) != [2 * number, 2 * number + 1]:
        return None
    return number, descends == (places[0] < places[1])


def _bubble(op: Op, machine, values: tuple[Tensor, ...], dim: int) -> tuple[Tensor, ...]:
    count = values[0].shape[dim]
    if count > _LONGEST_BUBBLE:
        raise UncoveredOp(op.name, f"{count} elements in an order that is more than one comparison")
    lanes = [list(value.unbind(dim)) for value in values]
    for _ in range(count):
        for at in range(count - 1):
            pairs = [side for lane in lanes for side in (lane[at], lane[at + 1])]
            (keep,) = machine.run(op.regions[0], pairs)
            for lane in lanes:
                first, second = lane[at], lane[at + 1]
                lane[at], lane[at + 1] = torch.where(keep, first, second), torch.where(keep, second, first)
    return tuple(torch.stack(lane, dim) for lane in lanes)


@evaluates("iree_linalg_ext.arg_compare")
def arg_compare(op: Op, machine, *operands: Tensor) -> tuple[Tensor, Tensor]:
    """The first element that the region prefers to all before it, and its index; the outs are the start."""
    results = len(op.results)
    outs, (value, *more) = operands[-results:], operands[:-results]
    if results != 2 or any(extra.dim() == value.dim() for extra in more):
        raise UncoveredOp(op.name, "with explicit indices")
    dim = op.integer("dimension")
    base = int(more[0]) if more else 0
    best, index = outs
    for at, element in enumerate(value.unbind(dim)):
        (better,) = machine.run(op.regions[0], [element, best])
        best = torch.where(better, element, best)
        index = torch.where(better, torch.tensor(base + at, dtype=index.dtype), index)
    return best, index
