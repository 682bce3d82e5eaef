"""``scf``, ``cf`` and ``affine``: loops, branches and asserts on scalars, and arithmetic on indices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice, product
from typing import Any

import torch
from iree.compiler import ir
from torch import Tensor

from numtrace.errors import UncoveredOp, UndefinedResult
from numtrace.evaluate.affine import value_at
from numtrace.evaluate.op import Op
from numtrace.evaluate.registry import evaluates
from numtrace.evaluate.tensors import insert_slice, resolve, split


@evaluates("scf.for")
def for_(op: Op, machine, first: Tensor, end: Tensor, step: Tensor, *values: Any) -> tuple[Any, ...]:
    for at in range(int(first), int(end), int(step)):
        index = torch.tensor(at, dtype=first.dtype)
        values = tuple(machine.run(op.regions[0], [index, *values]))
    return values


@evaluates("scf.forall")
def forall(op: Op, machine, *operands: Any) -> tuple[Any, ...]:
    return in_parallel(op, machine, operands, insert_slice)


def in_parallel(op: Op, machine, operands: Sequence[Any], insert: Callable) -> tuple[Any, ...]:
    """Every point of a ``scf.forall``: each reads its outputs as they were before all, and ``insert`` puts what it
    makes into what the others left. Points that write to the same element have no order, and no result.
    """
    *given, outs = split(op, operands)
    bounds = zip(("staticLowerBound", "staticUpperBound", "staticStep"), given, strict=True)
    lows, ends, steps = (resolve(op.integers(name), dynamic) for name, dynamic in bounds)
    block, results = op.regions[0], [*outs]
    *body, end = block.ops
    inserts = end.regions[0].ops
    wanted = [slot for inner in inserts for slot in inner.operands]
    for point in product(*map(range, lows, ends, steps)):
        indices = [torch.tensor(at, dtype=torch.int64) for at in point]
        values = iter(machine.run_part(block, [*indices, *outs], body, wanted))
        for inner in inserts:
            source, _, *window = islice(values, len(inner.operands))
            output = block.arguments.index(inner.operands[1]) - len(point)
            results[output] = insert(inner, machine, source, results[output], *window)
    return tuple(results)


@evaluates("scf.if")
def if_(op: Op, machine, condition: Tensor) -> tuple[Any, ...]:
    """One branch, where the condition is one: in a region that is evaluated for all points at once it is many."""
    if condition.numel() != 1:
        raise UncoveredOp(op.name, "a branch that is another for each point")
    if bool(condition):
        return tuple(machine.run(op.regions[0], []))
    return tuple(machine.run(op.regions[1], [])) if len(op.regions) > 1 else ()


@evaluates("scf.while")
def while_(op: Op, machine, *values: Any) -> tuple[Any, ...]:
    while True:
        condition, *values = machine.run(op.regions[0], values)
        if not bool(condition):
            return tuple(values)
        values = machine.run(op.regions[1], values)


@evaluates("cf.assert", "torch.runtime.assert")
def assert_(op: Op, machine, condition: Tensor | bool) -> None:
    """In a region that is evaluated for all points at once it must hold at every one."""
    if not bool(torch.as_tensor(condition).all()):
        raise UndefinedResult(op.name, "does not hold")


@evaluates("affine.apply")
def apply(op: Op, machine, *operands: Tensor) -> Tensor:
    return _results(op, operands)[0]


@evaluates("affine.min")
def least(op: Op, machine, *operands: Tensor) -> Tensor:
    return torch.stack(torch.broadcast_tensors(*_results(op, operands))).amin(0)


@evaluates("affine.max")
def greatest(op: Op, machine, *operands: Tensor) -> Tensor:
    return torch.stack(torch.broadcast_tensors(*_results(op, operands))).amax(0)


def _results(op: Op, operands: tuple[Tensor, ...]) -> list[Tensor]:
    affine_map = ir.AffineMapAttr(op.attributes["map"]).value
    dims, symbols = operands[: affine_map.n_dims], operands[affine_map.n_dims :]
    return [value_at(result, dims, symbols) for result in affine_map.results]
