"""A ``flow.dispatch`` in both meanings, on the operands that it really got."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from numtrace.evaluate.complex_numbers import as_parts, of_parts
from numtrace.evaluate.dispatch import entry_point, tied_operands
from numtrace.evaluate.op import Op
from numtrace.evaluate.tensors import empty, mixed_window, result_shape, split
from numtrace.evaluate.typed.machine import TypedMachine
from numtrace.evaluate.typed.moves import written
from numtrace.evaluate.typed.registry import carries
from numtrace.evaluate.typed.rounding import flushable
from numtrace.evaluate.typed.value import Typed, lift
from numtrace.evaluate.types import NATIVE, exact_dtype, is_inexact, tensor_type


class TypedBuffer:
    """What a dispatch writes to, in both meanings."""

    __slots__ = ("value",)

    def __init__(self, value: Typed):
        self.value = value


def typed_dispatch(machine: TypedMachine, op: Op, operands: list[Any]) -> list[Typed]:
    """The results of ``op`` for the values of its operands, in their native types.

    Raises:
        UncoveredOp: some op in the body has no evaluation, or no bound.
    """
    body = machine.program.executables[entry_point(op)].regions[0]
    _, arguments, _, sizes = split(op, operands)
    _, types, _, _ = split(op, op.operand_types)
    tied = tied_operands(op)
    values: list[Any] = []
    for i, (value, type_) in enumerate(zip(arguments, types, strict=True)):
        if isinstance(value, Tensor) and is_inexact(tensor_type(type_)[1]):
            value = _given(value, type_)
        values.append(TypedBuffer(lift(value, type_)) if i in tied else value)
    results: list[TypedBuffer] = []
    for number, (type_, index) in enumerate(zip(op.result_types, tied, strict=True)):
        static, element = tensor_type(type_)
        dynamic, sizes = sizes[: static.count(None)], sizes[static.count(None) :]
        if index >= 0:
            results.append(values[index])
            continue
        shape = result_shape(op, dynamic, number)
        buffer = TypedBuffer(Typed(empty(shape, exact_dtype(element)), empty(shape, NATIVE[element])))
        values.append(buffer)
        results.append(buffer)
    machine.run(body, values)
    return [buffer.value.map(Tensor.contiguous) for buffer in results]


def _given(value: Tensor, type_: Any) -> Typed:
    """An operand; a denormal is in doubt where code may read it as zero."""
    given = lift(value, type_)
    parts = as_parts(given.typed)
    flushed = flushable(parts)
    if flushed is None:
        return given
    bound = torch.where(flushed, parts.float().abs(), 0.0)
    return Typed(given.exact, given.typed, of_parts(bound) if given.typed.is_complex() else bound, True)


@carries("iree_tensor_ext.dispatch.tensor.load")
def tensor_load(op: Op, machine, *operands: Any) -> Any:
    (source,), _, offsets, sizes, strides = split(op, operands)
    shape = result_shape(op, sizes)

    def window(lane: Tensor) -> Tensor:
        return mixed_window(op, lane, offsets, sizes, strides).reshape(shape)

    value = source.value if isinstance(source, TypedBuffer) else source
    return value.map(window) if isinstance(value, Typed) else window(value)


@carries("iree_tensor_ext.dispatch.tensor.store")
def tensor_store(op: Op, machine, *operands: Any) -> None:
    (value,), (target,), _, offsets, sizes, strides = split(op, operands)
    value = lift(value, op.operand_types[0])
    if value.exact.shape == target.value.exact.shape:
        target.value = value
    else:
        target.value = written(op, value, target.value, offsets, sizes, strides)
