"""Elements that are chosen by their places, and places of elements that are chosen."""

from __future__ import annotations

import torch
from torch import Tensor

from numtrace.errors import UncoveredOp, UndefinedResult
from numtrace.evaluate.onnx_ops.registry import ALL, evaluates_onnx, given
from numtrace.evaluate.op import Op

#: What torch calls them.
_REDUCTIONS = {"none": None, "add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


def _within(op: Op, indices: Tensor, sizes: Tensor | int) -> Tensor:
    """Indices from the end, which are negative, as those from the start.

    Raises:
        UndefinedResult: one is beyond. "It is an error if any of the index values are out of bounds", says ONNX.
    """
    indices = indices.to(torch.int64)
    if bool(((indices < -sizes) | (indices >= sizes)).any()):
        name = op.attributes["name"].value
        raise UndefinedResult(
            name, f"has an index beyond the {sizes if isinstance(sizes, int) else 'sizes'} there are"
        )
    return torch.where(indices < 0, indices + sizes, indices)


@evaluates_onnx("Gather", reads=("axis",), since=11, types=ALL)
def gather(op: Op, x: Tensor, indices: Tensor) -> Tensor:
    axis = given(op, "axis", 0) % x.dim()
    places = _within(op, indices, x.shape[axis])
    found = x.index_select(axis, places.reshape(-1))
    return found.reshape((*x.shape[:axis], *places.shape, *x.shape[axis + 1 :]))


@evaluates_onnx("GatherElements", reads=("axis",), since=11, types=ALL)
def gather_elements(op: Op, x: Tensor, indices: Tensor) -> Tensor:
    axis = given(op, "axis", 0)
    return torch.gather(x, axis, _within(op, indices, x.shape[axis]))


@evaluates_onnx("GatherND", reads=("batch_dims",), since=12, types=ALL)
def gather_nd(op: Op, x: Tensor, indices: Tensor) -> Tensor:
    batch, depth = given(op, "batch_dims", 0), indices.shape[-1]
    sizes = torch.tensor(x.shape[batch : batch + depth])
    places = _within(op, indices, sizes)
    whole, rest = x.shape[:batch], x.shape[batch + depth :]
    flat = x.reshape([whole.numel(), int(sizes.prod()), *rest])
    at = (places * _strides(sizes)).sum(-1).reshape(whole.numel(), -1)
    rows = torch.arange(whole.numel()).unsqueeze(1)
    return flat[rows, at].reshape((*indices.shape[:-1], *rest))


def _strides(sizes: Tensor) -> Tensor:
    return torch.tensor([int(sizes[dim + 1 :].prod()) for dim in range(len(sizes))], dtype=torch.int64)


@evaluates_onnx("ScatterElements", reads=("axis", "reduction"), since=11)
def scatter_elements(op: Op, x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    axis = given(op, "axis", 0)
    places = _within(op, indices, x.shape[axis])
    how = _REDUCTIONS[given(op, "reduction", "none")]
    if how is None:
        return x.scatter(axis, places, updates)
    return x.scatter_reduce(axis, places, updates, how)


@evaluates_onnx("ScatterND", reads=("reduction",), since=11)
def scatter_nd(op: Op, x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """In order; of two updates of one place without a reduction the later one stays."""
    depth = indices.shape[-1]
    sizes = torch.tensor(x.shape[:depth])
    at = (_within(op, indices, sizes) * _strides(sizes)).sum(-1).reshape(-1)
    rest = x.shape[depth:].numel()
    made, rows = x.reshape(int(sizes.prod()), rest).clone(), updates.reshape(len(at), rest)
    how = _REDUCTIONS[given(op, "reduction", "none")]
    if how is None:
        for place, row in zip(at.tolist(), rows, strict=True):
            made[place] = row
    else:
        made.scatter_reduce_(0, at.unsqueeze(1).expand(rows.shape), rows, how)
    return made.reshape(x.shape)


@evaluates_onnx("OneHot", reads=("axis",), since=11)
def one_hot(op: Op, indices: Tensor, depth: Tensor, values: Tensor) -> Tensor:
    """Indices beyond the depth have no place."""
    size = int(depth)
    places = indices.to(torch.int64)
    places = torch.where(places < 0, places + size, places)
    hot = places.unsqueeze(-1) == torch.arange(size)
    made = torch.where(hot, values[1], values[0])
    return made.movedim(-1, given(op, "axis", -1))


@evaluates_onnx("NonZero", since=9, types=ALL)
def non_zero(op: Op, x: Tensor) -> Tensor:
    return torch.nonzero(x).T


@evaluates_onnx("Compress", reads=("axis",), since=11)
def compress(op: Op, x: Tensor, condition: Tensor) -> Tensor:
    axis = given(op, "axis")
    x, axis = (x.reshape(-1), 0) if axis is None else (x, axis)
    return x.index_select(axis, torch.nonzero(condition[: x.shape[axis]]).reshape(-1))


@evaluates_onnx("TopK", reads=("axis", "largest", "sorted"), since=11)
def top_k(op: Op, x: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    """Of equal elements the first ones."""
    axis, count = given(op, "axis", -1), int(k)
    if not given(op, "sorted", 1):
        raise UncoveredOp("onnx.TopK", "in no order")
    values, places = torch.sort(x, dim=axis, descending=bool(given(op, "largest", 1)), stable=True)
    return values.narrow(axis, 0, count), places.narrow(axis, 0, count)


@evaluates_onnx("ArgMax", reads=("axis", "keepdims", "select_last_index"), since=1)
def arg_max(op: Op, x: Tensor) -> Tensor:
    return _first(op, x, torch.argmax)


@evaluates_onnx("ArgMin", reads=("axis", "keepdims", "select_last_index"), since=1)
def arg_min(op: Op, x: Tensor) -> Tensor:
    return _first(op, x, torch.argmin)


def _first(op: Op, x: Tensor, find) -> Tensor:
    """Where the extreme is, of several the first; torch leaves open which."""
    axis, keep = given(op, "axis", 0), bool(given(op, "keepdims", 1))
    last = bool(given(op, "select_last_index", 0))
    x = x.flip(axis) if last else x
    extreme = x.gather(axis, find(x, dim=axis, keepdim=True))
    same = (x == extreme) | (x.isnan() & extreme.isnan())  # a NaN is the greatest, and the least
    place = torch.argmax(
        same.to(torch.int8) * torch.arange(x.shape[axis], 0, -1).reshape(_column(x, axis)), axis, keep
    )
    return x.shape[axis] - 1 - place if last else place


def _column(x: Tensor, axis: int) -> list[int]:
    return [-1 if dim == axis % x.dim() else 1 for dim in range(x.dim())]


@evaluates_onnx("CumSum", reads=("exclusive", "reverse"), since=11)
def cum_sum(op: Op, x: Tensor, axis: Tensor) -> Tensor:
    """The sums up to each element, of the elements from the end with ``reverse``, without itself if ``exclusive``."""
    dim = int(axis)
    x = x.flip(dim) if given(op, "reverse", 0) else x
    made = torch.cumsum(x, dim, dtype=x.dtype)
    if given(op, "exclusive", 0):
        made = torch.cat((torch.zeros_like(x.narrow(dim, 0, 1)), made.narrow(dim, 0, x.shape[dim] - 1)), dim)
    return made.flip(dim) if given(op, "reverse", 0) else made
