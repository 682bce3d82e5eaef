"""``flow``, ``hal.tensor`` and ``util``: what holds dispatches together. Works on values of any dtype."""

from __future__ import annotations

from math import prod

import torch
from iree.compiler import ir
from torch import Tensor

from numtrace.errors import UncoveredOp
from numtrace.evaluate.complex_numbers import as_parts, of_parts, part_type
from numtrace.evaluate.constants import constant_value
from numtrace.evaluate.op import Op
from numtrace.evaluate.registry import evaluates
from numtrace.evaluate.tensors import copied, empty, result_shape, split, viewed, window, write
from numtrace.evaluate.types import exact_dtype, tensor_type, widen


@evaluates("flow.tensor.bitcast")
def bitcast(op: Op, machine, *operands) -> Tensor:
    """Complex numbers of pairs of floats, or the other way round; otherwise a reshape."""
    source, target = (tensor_type(types[0])[1] for types in (op.operand_types, op.result_types))
    (value,), _, sizes = split(op, operands)
    if part_type(target) == source != target:
        return of_parts(value.reshape([*result_shape(op, sizes), 2]))
    if part_type(source) == target != source:
        return as_parts(value).reshape(result_shape(op, sizes))
    return reshape(op, machine, *operands)


@evaluates("flow.tensor.reshape")
def reshape(op: Op, machine, *operands) -> Tensor:
    """The same elements under another shape.

    Dynamic sizes need not fit. IREE then reads the start of the buffer, or beyond its end, where nothing is
    defined.
    """
    (value,), _, sizes = split(op, operands)
    if tensor_type(op.operand_types[0])[1] != tensor_type(op.result_types[0])[1]:
        raise UncoveredOp(op.name, "a change of the element type")
    shape = result_shape(op, sizes)
    if value.numel() == prod(shape):
        return viewed(value, lambda lane: lane.reshape(shape))
    if machine.watch is not None:
        machine.watch.misfits[op.stamps] = (prod(shape), value.numel())
    flat = widen(value).reshape(-1)[: prod(shape)]
    beyond = empty([prod(shape) - flat.numel()], flat.dtype)
    return torch.cat([flat, beyond]).reshape(shape)


@evaluates("flow.tensor.splat")
def splat(op: Op, machine, value: Tensor, *sizes) -> Tensor:
    dtype = exact_dtype(tensor_type(op.result_types[0])[1])
    return value.to(dtype).expand(result_shape(op, sizes))


@evaluates("flow.tensor.empty", "flow.tensor.alloca")
def flow_empty(op: Op, machine, *sizes) -> Tensor:
    return empty(result_shape(op, sizes), exact_dtype(tensor_type(op.result_types[0])[1]))


@evaluates("flow.tensor.constant")
def tensor_constant(op: Op, machine) -> Tensor:
    attribute = op.attributes["value"]
    parameter = parameter_key(attribute)
    return machine.globals[parameter] if parameter else constant_value(attribute, op.dtype)


@evaluates("flow.tensor.slice")
def slice_(op: Op, machine, *operands) -> Tensor:
    (source,), _, start, length, _ = split(op, operands)
    offsets, sizes = [int(value) for value in start], [int(value) for value in length]
    return viewed(source, lambda lane: window(lane, offsets, sizes, [1] * len(sizes)))


@evaluates("flow.tensor.update")
def update(op: Op, machine, *operands) -> Tensor:
    (target,), _, start, (piece,), _ = split(op, operands)
    result, offsets = copied(widen(target)), [int(value) for value in start]
    write(result, piece, lambda lane: window(lane, offsets, list(piece.shape), [1] * piece.dim()))
    return result


@evaluates("flow.tensor.load")
def load(op: Op, machine, value: Tensor, *operands) -> Tensor:
    return value[tuple(int(index) for index in operands)] if operands else value


@evaluates(
    "flow.tensor.encode",
    "flow.tensor.clone",
    "flow.tensor.barrier",
    "flow.tensor.transfer",
    "iree_encoding.set_encoding",
    "iree_encoding.unset_encoding",
    "util.optimization_barrier",
    "util.numeric.optional_narrow",
    "iree_tensor_ext.compute_barrier.start",
    "iree_tensor_ext.compute_barrier.end",
)
def same_value(op: Op, machine, value: Tensor, *_) -> Tensor:
    # An encoding changes where elements lie in memory, not their values; narrowing is allowed, not done.
    return value


@evaluates("util.assume.int")
def assume(op: Op, machine, *values: Tensor) -> tuple[Tensor, ...]:
    return values


@evaluates("hal.buffer_view.dim")
def buffer_view_dim(op: Op, machine, value: Tensor) -> Tensor:
    return torch.tensor(value.shape[op.integer("index")], dtype=torch.int64)


@evaluates("hal.tensor.import")
def tensor_import(op: Op, machine, value, *_) -> Tensor:
    return value


@evaluates("hal.tensor.export", "hal.tensor.barrier")
def tensor_export(op: Op, machine, *values):
    return values[: len(op.results)]


@evaluates("util.global.load")
def global_load(op: Op, machine) -> Tensor:
    return machine.globals[ir.FlatSymbolRefAttr(op.attributes["global"]).value]


@evaluates("util.global.store")
def global_store(op: Op, machine, value: Tensor) -> None:
    machine.globals[ir.FlatSymbolRefAttr(op.attributes["global"]).value] = value


def parameter_key(attribute: ir.Attribute) -> tuple[str, str] | None:
    """Scope and key of ``#flow.parameter.named<"scope"::"key"> : type``; None for other attributes."""
    prefix, text = '#flow.parameter.named<"', str(attribute)
    if not text.startswith(prefix):
        return None
    # IREE prints both as they are, without escapes.
    scope, separator, key = text[len(prefix) : text.rindex('"> : ')].partition('"::"')
    return (scope, key) if separator else ("", scope)
