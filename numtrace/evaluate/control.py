"""``scf``, ``cf`` and ``affine``: loops, branches and asserts on scalars, and arithmetic on indices."""

from __future__ import annotations

from typing import Any

import torch
from iree.compiler import ir
from torch import Tensor

from numtrace.errors import UncoveredOp, UndefinedResult
from numtrace.evaluate.affine import value_at
from numtrace.evaluate.program import Op
from numtrace.evaluate.registry import evaluates


@evaluates("scf.for")
def for_(op: Op, machine, first: Tensor, end: Tensor, step: Tensor, *values: Any) -> tuple[Any, ...]:
    for at in range(int(first), int(end), int(step)):
        index = torch.tensor(at, dtype=first.dtype)
        values = tuple(machine.run(op.regions[0], [index, *values]))
    return values


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
