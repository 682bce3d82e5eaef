"""A ``flow.dispatch``: the function of its executable, on the tensors that it is given."""

from __future__ import annotations

from typing import Any

import torch
from iree.compiler import ir
from torch import Tensor

from numtrace.evaluate.machine import Machine
from numtrace.evaluate.op import Op
from numtrace.evaluate.registry import evaluates
from numtrace.evaluate.tensors import copied, empty, mixed_window, result_shape, split, viewed, write
from numtrace.evaluate.types import exact_dtype, tensor_type, widen


class Buffer:
    """What a dispatch writes to; ``value`` is the tensor of its last state, which may be shared."""

    __slots__ = ("_own", "value")

    def __init__(self, value: Tensor):
        self.value = value
        self._own = False

    def read(self) -> Tensor:
        self._own = False  # whoever reads may keep a view
        return self.value

    def replace(self, value: Tensor) -> None:
        self.value = value
        self._own = False

    def writable(self) -> Tensor:
        """The value as a tensor that nobody else sees."""
        if not self._own:
            self.value = copied(self.value)
            self._own = True
        return self.value


def entry_point(op: Op) -> str:
    """``executable::function`` of a ``flow.dispatch``."""
    (symbol,) = ir.ArrayAttr(op.attributes["entry_points"])
    return "::".join(ir.SymbolRefAttr(symbol).value)


def tied_operands(op: Op) -> list[int]:
    """For each result the index of the argument it overwrites, or -1."""
    if "tied_operands" not in op.attributes:
        return [-1] * len(op.results)
    return [int(ir.IntegerAttr(index).value) for index in ir.ArrayAttr(op.attributes["tied_operands"])]


def evaluate_dispatch(machine: Machine, op: Op, operands: list[Any]) -> list[Tensor]:
    """The results of ``op``, exact, for the values of its operands (workload, arguments, dims).

    The body is the op's own region until it is outlined into an executable.

    Raises:
        UncoveredOp: some op in the body has no evaluation.
    """
    body = (op if op.regions else machine.program.executables[entry_point(op)]).regions[0]
    _, arguments, _, sizes = split(op, operands)
    tied = tied_operands(op)
    values: list[Any] = []
    for i, value in enumerate(arguments):
        value = widen(value) if isinstance(value, Tensor) else value
        values.append(Buffer(value) if i in tied else value)
    results: list[Buffer] = []
    for number, (type_, index) in enumerate(zip(op.result_types, tied, strict=True)):
        shape, element = tensor_type(type_)
        dynamic, sizes = sizes[: shape.count(None)], sizes[shape.count(None) :]
        if index >= 0:
            results.append(values[index])
            continue
        buffer = Buffer(empty(result_shape(op, dynamic, number), exact_dtype(element)))
        values.append(buffer)
        results.append(buffer)
    machine.run(body, values)
    return [viewed(buffer.value, torch.Tensor.contiguous) for buffer in results]


@evaluates("flow.dispatch", "flow.dispatch.workgroups")
def dispatch(op: Op, machine, *operands: Any) -> tuple[Tensor, ...]:
    return tuple(evaluate_dispatch(machine, op, list(operands)))


@evaluates("flow.dispatch.region")
def dispatch_region(op: Op, machine, *sizes: Any) -> tuple[Any, ...]:
    """A dispatch while it is being formed: its region reads what is around it."""
    return tuple(machine.run(op.regions[0], []))


@evaluates("iree_tensor_ext.dispatch.tensor.load")
def tensor_load(op: Op, machine, *operands) -> Tensor:
    (source,), _, offsets, sizes, strides = split(op, operands)
    value = source.read() if isinstance(source, Buffer) else source
    shape = result_shape(op, sizes)
    return viewed(value, lambda lane: mixed_window(op, lane, offsets, sizes, strides).reshape(shape))


@evaluates("iree_tensor_ext.dispatch.tensor.store")
def tensor_store(op: Op, machine, *operands) -> None:
    (value,), (target,), _, offsets, sizes, strides = split(op, operands)
    if value.shape == target.value.shape:
        target.replace(widen(value))  # a store of everything: no copy
        return
    write(target.writable(), value, lambda lane: mixed_window(op, lane, offsets, sizes, strides))


@evaluates("flow.dispatch.tie_shape")
def tie_shape(op: Op, machine, value: Any, *sizes) -> Any:
    return value


@evaluates("iree_tensor_ext.dispatch.workload.ordinal")
def workload_ordinal(op: Op, machine, value: torch.Tensor) -> torch.Tensor:
    return value
