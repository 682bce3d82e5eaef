"""``linalg.pack`` and ``linalg.unpack``: dimensions cut into tiles, which come last. Values move."""

from __future__ import annotations

import torch
from torch import Tensor

from numtrace.errors import UncoveredOp, UndefinedResult
from numtrace.evaluate.op import Op
from numtrace.evaluate.registry import evaluates
from numtrace.evaluate.tensors import resolve, split
from numtrace.evaluate.types import widen


@evaluates("linalg.pack")
def pack(op: Op, machine, *operands: Tensor) -> Tensor:
    """The tiles of ``inner_dims_pos`` behind the other dimensions, those in the order of ``outer_dims_perm``.

    Raises:
        UndefinedResult: a tile is not full, and there is nothing to fill it with.
    """
    (value,), (out,), padding, sizes = split(op, operands)
    tiled, tiles, order = _tiles(op, sizes, value.dim())
    outer = _outer(out, order)
    for position, tile in zip(tiled, tiles, strict=True):
        missing = outer[position] * tile - value.shape[position]
        if missing > 0 and not padding:
            raise UndefinedResult(op.name, f"leaves {missing} places of a tile unwritten")
        if missing > 0:
            shape = list(value.shape)
            shape[position] = missing
            filling = widen(padding[0]) if value.dtype == torch.float64 else padding[0]
            value = torch.cat([value, filling.to(value.dtype).expand(shape)], dim=position)
        elif missing < 0:
            raise UncoveredOp(op.name, "of a part of its source")
    cut: list[int] = []
    places: dict[int, int] = {}
    for dimension, size in enumerate(outer):
        places[dimension] = len(cut)
        cut.append(size)
        if dimension in tiled:
            cut.append(tiles[tiled.index(dimension)])
    permutation = [places[dimension] for dimension in order] + [places[dimension] + 1 for dimension in tiled]
    return value.reshape(cut).permute(permutation)


@evaluates("linalg.unpack")
def unpack(op: Op, machine, value: Tensor, out: Tensor, *sizes: Tensor) -> Tensor:
    """What :func:`pack` packed, without its padding."""
    tiled, tiles, order = _tiles(op, sizes, out.dim())
    permutation: list[int] = []
    shape: list[int] = []
    for dimension in range(out.dim()):
        at = order.index(dimension)
        permutation.append(at)
        size = value.shape[at]
        if dimension in tiled:
            permutation.append(out.dim() + tiled.index(dimension))
            size *= tiles[tiled.index(dimension)]
        shape.append(size)
    whole = value.permute(permutation).reshape(shape)
    return whole[tuple(slice(size) for size in out.shape)]


def _tiles(op: Op, sizes, rank: int) -> tuple[list[int], list[int], list[int]]:
    """The tiled dimensions, their tiles, and the dimensions in the order in which they come before the tiles."""
    order = op.integers("outer_dims_perm") or list(range(rank))
    return op.integers("inner_dims_pos"), resolve(op.integers("static_inner_tiles"), sizes), order


def _outer(packed: Tensor, order: list[int]) -> list[int]:
    """How many tiles there are along each dimension of the source."""
    return [packed.shape[order.index(dimension)] for dimension in range(len(order))]
