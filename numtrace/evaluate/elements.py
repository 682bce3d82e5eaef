"""Single elements that are put into tensors, and what a function signals when its result is there."""

from __future__ import annotations

from torch import Tensor

from numtrace.errors import UndefinedResult
from numtrace.evaluate.op import Op
from numtrace.evaluate.registry import evaluates
from numtrace.evaluate.tensors import copied, split, write
from numtrace.evaluate.types import widen


@evaluates("tensor.insert")
def insert(op: Op, machine, value: Tensor, target: Tensor, *indices: Tensor) -> Tensor:
    return _put(op, value, target, indices)


@evaluates("flow.tensor.store")
def store(op: Op, machine, *operands: Tensor) -> Tensor:
    (value,), (target,), _, indices = split(op, operands)
    return _put(op, value, target, indices)


def _put(op: Op, value: Tensor, target: Tensor, indices) -> Tensor:
    """``target`` with one element replaced.

    Raises:
        UndefinedResult: there is no such element.
    """
    at = tuple(int(index) for index in indices)
    for index, size in zip(at, target.shape, strict=True):
        if not 0 <= index < size:
            raise UndefinedResult(op.name, f"writes index {index} of a dimension of size {size}")
    result = copied(widen(target))
    write(result, value.to(result.dtype), lambda lane: lane[at])
    return result


@evaluates("hal.fence.signal")
def signal(op: Op, machine, fence: None) -> None:
    """All is computed in order here: nobody waits."""
