"""``tensor``: shapes, slices and padding. Values move, nothing is computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor

from numtrace.errors import UncoveredOp, UndefinedResult
from numtrace.evaluate.op import Op, reads
from numtrace.evaluate.registry import evaluates
from numtrace.evaluate.types import exact_dtype, static_shape, tensor_type, widen

_DYNAMIC = -(1 << 63)


def resolve(static: Sequence[int], dynamic: Sequence[Any]) -> list[int]:
    """A mixed list of static and dynamic sizes: ``static`` with its placeholders replaced in order."""
    values = iter(dynamic)
    return [int(next(values)) if size == _DYNAMIC else size for size in static]


def result_shape(op: Op, sizes: Sequence[Any], index: int = 0) -> list[int]:
    """The shape of a result: its type's, with the dynamic sizes replaced by ``sizes`` in order."""
    values = iter(sizes)
    return [int(next(values)) if size is None else size for size in op.static_shape(index)]


def split(op: Op, operands: Sequence[Any]) -> list[list[Any]]:
    """Operand values by ``operandSegmentSizes``."""
    parts, at = [], 0
    for size in op.integers("operandSegmentSizes"):
        parts.append(list(operands[at : at + size]))
        at += size
    return parts


def window(value: Tensor, offsets: list[int], sizes: list[int], strides: list[int]) -> Tensor:
    """The slice of ``value`` as a view.

    Raises:
        UndefinedResult: the slice leaves the tensor.
    """
    index = []
    for offset, size, stride, extent in zip(offsets, sizes, strides, value.shape, strict=True):
        last = offset + (size - 1) * stride
        if size and (offset < 0 or last >= extent):
            raise UndefinedResult(
                "slice", f"takes elements {offset} to {last} of a dimension of size {extent}"
            )
        index.append(slice(offset, last + 1, stride) if size else slice(0, 0))
    return value[tuple(index)]


def mixed_window(op: Op, value: Tensor, offsets: list, sizes: list, strides: list) -> Tensor:
    return window(
        value,
        resolve(op.integers("static_offsets"), offsets),
        resolve(op.integers("static_sizes"), sizes),
        resolve(op.integers("static_strides"), strides),
    )


#: The bits of the NaN that stands for an undefined element. Moves and arithmetic keep a NaN's payload, so
#: what depends on an undefined element is seen to.
_UNDEFINED = 0x7FF8_DEAD_BEEF_0001


#: What a tensor without NaN has its mask of defined elements under.
_MASK = "numtrace_defined"


def empty(shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    """A tensor without defined contents: marked NaN in floats and complex numbers; else zeros with a mask.

    It is one element expanded, so it takes no memory, and is not to be written to.
    """
    if dtype == torch.float64:
        return torch.tensor(_UNDEFINED, dtype=torch.int64).view(torch.float64).expand(tuple(shape))
    if dtype == torch.complex128:
        parts = torch.tensor([_UNDEFINED] * 2, dtype=torch.int64).view(torch.float64)
        return torch.view_as_complex(parts).expand(tuple(shape))
    value = torch.zeros((), dtype=dtype).expand(tuple(shape))
    return _with_mask(value, torch.zeros((), dtype=torch.bool).expand(tuple(shape)))


def defined(value: Tensor) -> Tensor | None:
    """A mask of the defined elements of an exact value; None when all are."""
    if value.dtype != torch.float64:
        mask = getattr(value, _MASK, None)
        return None if mask is None or bool(mask.all()) else mask
    if not bool(torch.isnan(value.sum())):
        return None
    mask = value.contiguous().view(torch.int64).bitwise_and(0x7FFF_FFFF_FFFF_FFFF) != _UNDEFINED
    return None if bool(mask.all()) else mask


def _with_mask(value: Tensor, mask: Tensor) -> Tensor:
    # The mask is the tensor's own: no result of torch has it, so whoever moves elements moves them with `viewed`.
    setattr(value, _MASK, mask)
    return value


def viewed(value: Tensor, view: Callable[[Tensor], Tensor]) -> Tensor:
    """``view(value)``, its undefined elements with it; ``view`` must not compute."""
    mask = getattr(value, _MASK, None)
    return view(value) if mask is None else _with_mask(view(value), view(mask))


def write(target: Tensor, piece: Tensor, part: Callable[[Tensor], Tensor]) -> None:
    """Copies ``piece`` into the view ``part(target)``, undefined elements too; ``target`` must be nobody else's."""
    view = part(target)
    view.copy_(piece.reshape(view.shape))
    mask, of_piece = (getattr(value, _MASK, None) for value in (target, piece))
    if mask is None and of_piece is None:
        return
    mask = torch.ones(target.shape, dtype=torch.bool) if mask is None else mask.clone()
    view = part(mask)
    view.copy_(torch.ones(()) if of_piece is None else of_piece.reshape(view.shape))
    _with_mask(target, mask)


def copied(value: Tensor) -> Tensor:
    """The value as a tensor that may be written to."""
    return viewed(value, lambda lane: lane.clone(memory_format=torch.contiguous_format))


@evaluates("ub.poison")
def poison(op: Op, machine) -> Tensor:
    return empty(static_shape(op.result_types[0]), exact_dtype(tensor_type(op.result_types[0])[1]))


@evaluates("tensor.empty")
def tensor_empty(op: Op, machine, *sizes) -> Tensor:
    return empty(result_shape(op, sizes), exact_dtype(tensor_type(op.result_types[0])[1]))


@evaluates("tensor.dim")
def dim(op: Op, machine, value: Tensor, index: Tensor) -> Tensor:
    return torch.tensor(value.shape[int(index)], dtype=torch.int64)


@evaluates("tensor.cast")
def cast(op: Op, machine, value: Tensor) -> Tensor:
    return value


@evaluates("tensor.collapse_shape")
def collapse_shape(op: Op, machine, value: Tensor) -> Tensor:
    groups = [[int(dim.value) for dim in group] for group in op.attributes["reassociation"]]
    shape = [prod(value.shape[dim] for dim in group) for group in groups]
    return viewed(value, lambda lane: lane.reshape(shape))


@evaluates("tensor.expand_shape")
def expand_shape(op: Op, machine, value: Tensor, *sizes) -> Tensor:
    shape = resolve(op.integers("static_output_shape"), sizes)
    return viewed(value, lambda lane: lane.reshape(shape))


@evaluates("tensor.extract_slice")
def extract_slice(op: Op, machine, *operands) -> Tensor:
    (value,), offsets, sizes, strides = split(op, operands)
    shape = result_shape(op, sizes)
    return viewed(value, lambda lane: mixed_window(op, lane, offsets, sizes, strides).reshape(shape))


@evaluates("tensor.insert_slice")
def insert_slice(op: Op, machine, *operands) -> Tensor:
    (source,), (target,), offsets, sizes, strides = split(op, operands)
    result = copied(widen(target))
    write(result, source, lambda lane: mixed_window(op, lane, offsets, sizes, strides))
    return result


@evaluates("tensor.extract")
def extract(op: Op, machine, value: Tensor, *indices: Tensor) -> Tensor:
    """An element, or (inside a region) one element per point of the loops."""
    for dimension, index in enumerate(indices):
        low, high = int(index.min()), int(index.max())
        if low < 0 or high >= value.shape[dimension]:
            outside = low if low < 0 else high
            size = value.shape[dimension]
            raise UndefinedResult(op.name, f"reads index {outside} of a dimension of size {size}")
    return value[tuple(indices)] if indices else value


@evaluates("tensor.pad")
def pad(op: Op, machine, *operands) -> Tensor:
    (source,), low, high = split(op, operands)
    source = widen(source)
    low = resolve(op.integers("static_low"), low)
    high = resolve(op.integers("static_high"), high)
    if min([*low, *high], default=0) < 0:
        raise UncoveredOp("tensor.pad", "negative padding")
    block = op.regions[0]
    if any(slot in block.arguments for inner in block.ops for slot in reads(inner)):
        raise UncoveredOp("tensor.pad", "padding that depends on the position")
    (fill,) = machine.run(block, [None] * len(block.arguments))
    shape = [before + size + after for before, size, after in zip(low, source.shape, high, strict=True)]
    result = fill.to(source.dtype).expand(shape).clone(memory_format=torch.contiguous_format)
    window(result, low, list(source.shape), [1] * len(shape)).copy_(source)
    return result


@evaluates("tensor.splat")
def splat(op: Op, machine, value: Tensor, *sizes) -> Tensor:
    return value.to(exact_dtype(tensor_type(op.result_types[0])[1])).expand(result_shape(op, sizes))


@evaluates("tensor.reshape")
def reshape(op: Op, machine, value: Tensor, shape: Tensor) -> Tensor:
    return value.reshape([int(size) for size in shape])


@evaluates("tensor.generate")
def generate(op: Op, machine, *sizes) -> Tensor:
    """The region once, with its indices as tensors along their dimensions."""
    shape = result_shape(op, sizes)
    indices = [
        torch.arange(size).reshape([-1 if other == dim else 1 for other in range(len(shape))])
        for dim, size in enumerate(shape)
    ]
    (value,) = machine.run(op.regions[0], indices)
    return widen(value).expand(shape)


@evaluates("tensor.from_elements")
def from_elements(op: Op, machine, *values: Tensor) -> Tensor:
    return torch.stack([widen(value) for value in values]).reshape(static_shape(op.result_types[0]))


@evaluates("tensor.concat")
def concat(op: Op, machine, *values: Tensor) -> Tensor:
    return torch.cat([widen(value) for value in values], dim=op.integer("dim"))
