"""Axes that are taken together."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from numtrace.evaluate.extremes import amax, amin
from numtrace.evaluate.onnx_ops.registry import ARITHMETIC, FLOATS, evaluates_onnx, given
from numtrace.evaluate.op import Op

Reduce = Callable[[Tensor, list[int]], Tensor]


def _sum(x: Tensor, dims: list[int]) -> Tensor:
    return torch.sum(x, dims, keepdim=True, dtype=x.dtype) if dims else x


def _mean(x: Tensor, dims: list[int]) -> Tensor:
    if x.is_floating_point():
        return torch.mean(x, dims, keepdim=True) if dims else x
    count = torch.tensor([x.shape[dim] for dim in dims]).prod()
    return torch.div(_sum(x.to(torch.int64), dims), count, rounding_mode="trunc").to(x.dtype)


def _prod(x: Tensor, dims: list[int]) -> Tensor:
    for dim in dims:
        x = torch.prod(x, dim, keepdim=True, dtype=x.dtype)
    return x


def _extreme(find: Reduce, empty: float) -> Reduce:
    def evaluate(x: Tensor, dims: list[int]) -> Tensor:
        sizes = [1 if dim in dims else size for dim, size in enumerate(x.shape)]
        if not dims:
            return x
        if x.dtype == torch.bool:
            return evaluate(x.to(torch.uint8), dims) > 0  # the greatest byte is true as well
        if x.numel():
            return find(x, dims).reshape(sizes)
        if x.is_floating_point():
            return torch.full(sizes, empty, dtype=x.dtype)
        limits = torch.iinfo(x.dtype)
        return torch.full(sizes, limits.min if empty < 0 else limits.max, dtype=x.dtype)

    return evaluate


def _log_sum_exp(x: Tensor, dims: list[int]) -> Tensor:
    return torch.logsumexp(x, dims, keepdim=True) if dims else x


_REDUCTIONS: dict[str, Reduce] = {
    "ReduceSum": _sum,
    "ReduceMean": _mean,
    "ReduceProd": _prod,
    "ReduceMax": _extreme(amax, -torch.inf),
    "ReduceMin": _extreme(amin, torch.inf),
    "ReduceL1": lambda x, dims: _sum(x.abs(), dims),
    "ReduceSumSquare": lambda x, dims: _sum(x * x, dims),
    "ReduceL2": lambda x, dims: torch.sqrt(_sum(x * x, dims)),
    "ReduceLogSum": lambda x, dims: torch.log(_sum(x, dims)),
    "ReduceLogSumExp": _log_sum_exp,
}


def _reduction(reduce: Reduce) -> Callable[..., Tensor]:
    def evaluate(op: Op, x: Tensor, axes: Tensor | None = None) -> Tensor:
        """The axes are an operand, or, before opset 18, an attribute; none are all, or none at all."""
        named = given(op, "axes", []) if axes is None else axes.tolist()
        if not x.dim():
            return reduce(x.reshape(1), [0]).reshape(())
        everything = [] if given(op, "noop_with_empty_axes", 0) else range(x.dim())
        dims = sorted({axis % x.dim() for axis in named or everything})
        made = reduce(x, dims)  # without axes too: what is done to each element still is
        return made if given(op, "keepdims", 1) else made.squeeze(dims)

    return evaluate


#: What ONNX leaves open of whole numbers: how their roots and logarithms are made whole.
_OF_FLOATS = ("ReduceL2", "ReduceLogSum", "ReduceLogSumExp")
for _name, _reduce in _REDUCTIONS.items():
    evaluates_onnx(
        _name,
        reads=("axes", "keepdims", "noop_with_empty_axes"),
        since=1,
        types=FLOATS | {"si64"} if _name in _OF_FLOATS else ARITHMETIC,
    )(_reduction(_reduce))
