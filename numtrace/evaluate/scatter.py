"""``iree_linalg_ext`` ops that go along a dimension or by indices: scan, scatter and gather."""

from __future__ import annotations

from math import prod

import torch
from torch import Tensor

from numtrace.errors import UncoveredOp, UndefinedResult
from numtrace.evaluate.op import Op
from numtrace.evaluate.registry import evaluates

_CUMULATIVE = {
    "arith.addf": torch.cumsum,
    "arith.addi": torch.cumsum,
    "arith.mulf": torch.cumprod,
    "arith.muli": torch.cumprod,
}


@evaluates("iree_linalg_ext.scan")
def scan(op: Op, machine, value: Tensor, out: Tensor, start: Tensor) -> tuple[Tensor, Tensor]:
    """Prefixes along the dimension, from the first element on; of an exclusive scan from ``start`` on."""
    dim, inclusive = op.integer("dimension"), bool(op.attributes["inclusive"].value)
    cumulative = _CUMULATIVE.get(_whole_region(op) or "")
    if inclusive and cumulative is not None and value.dtype != torch.bool:
        prefixes = cumulative(value, dim=dim, dtype=value.dtype)
        return prefixes, prefixes.select(dim, -1)
    elements = list(value.unbind(dim))
    done = [elements[0] if inclusive else start]
    for element in elements[1:] if inclusive else elements[:-1]:
        done += machine.run(op.regions[0], [done[-1], element])
    return torch.stack(done, dim), done[-1]


def _whole_region(op: Op) -> str | None:
    """The op that the region is, of its two arguments in any order; None when it is more."""
    block = op.regions[0]
    only, *rest = block.ops
    if len(rest) == 1 and rest[0].operands == only.results and set(only.operands) == set(block.arguments):
        return only.name
    return None


@evaluates("iree_linalg_ext.scatter")
def scatter(op: Op, machine, updates: Tensor, indices: Tensor, original: Tensor) -> Tensor:
    """``original`` with every update joined in by the region, in the order of the updates.

    Raises:
        UndefinedResult: there is not one index for each update, or it is out of range.
    """
    dims = op.integers("dimension_map")
    rows, slices = _rows(op, indices, dims, original)
    batch = updates.dim() - len(slices)
    if tuple(updates.shape[batch:]) != slices:
        raise UncoveredOp(op.name, "updates of a part of a slice")
    target = torch.movedim(original, dims, tuple(range(len(dims)))).contiguous().clone()
    flat, new = target.view(-1, *slices), updates.reshape(prod(updates.shape[:batch]), *slices)
    if len(new) != len(rows):  # dynamic sizes need not fit
        raise UndefinedResult(op.name, f"has {len(rows)} indices for {len(new)} updates")
    block = op.regions[0]
    if len(block.ops) == 1 and block.ops[0].operands == block.arguments[:1]:
        last = torch.full((flat.shape[0],), -1).scatter_reduce_(0, rows, torch.arange(len(rows)), "amax")
        flat[last >= 0] = new[last[last >= 0]].to(flat.dtype)
    elif _whole_region(op) in ("arith.addf", "arith.addi") and flat.dtype != torch.bool:
        flat.index_add_(0, rows, new.to(flat.dtype))
    else:
        for row, update in zip(rows.tolist(), new, strict=True):
            (flat[row],) = machine.run(block, [update, flat[row].clone()])
    return torch.movedim(target, tuple(range(len(dims))), dims)


@evaluates("iree_linalg_ext.gather")
def gather(op: Op, machine, source: Tensor, indices: Tensor, out: Tensor) -> Tensor:
    """The slices of ``source`` at ``indices``."""
    dims = op.integers("dimension_map")
    rows, slices = _rows(op, indices, dims, source)
    flat = torch.movedim(source, dims, tuple(range(len(dims)))).reshape(-1, *slices)
    if prod(out.shape) != len(rows) * prod(slices):
        raise UncoveredOp(op.name, "a part of a slice")
    return flat[rows].reshape(out.shape)


def _rows(op: Op, indices: Tensor, dims: list[int], value: Tensor) -> tuple[Tensor, tuple[int, ...]]:
    """For each index the position in the dimensions ``dims`` of ``value``, flattened; and the other dimensions.

    An index of depth 1 may have no dimension of its own for its depth.

    Raises:
        UndefinedResult: an index is out of range.
    """
    extents = [value.shape[dim] for dim in dims]
    points = indices.to(torch.int64).reshape(-1, len(dims))
    for column, (dim, extent) in enumerate(zip(dims, extents, strict=True)):
        outside = points[:, column][(points[:, column] < 0) | (points[:, column] >= extent)]
        if len(outside):
            raise UndefinedResult(
                op.name, f"uses index {int(outside[0])} of dimension {dim}, of size {extent}"
            )
    rows = torch.zeros(len(points), dtype=torch.int64)
    for column, extent in enumerate(extents):
        rows = rows * extent + points[:, column]
    return rows, tuple(size for dim, size in enumerate(value.shape) if dim not in dims)
