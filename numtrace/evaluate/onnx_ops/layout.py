"""Elements that change places, and tensors that change shapes."""

from __future__ import annotations

import torch
from torch import Tensor

from numtrace.errors import UncoveredOp
from numtrace.evaluate.onnx_ops.registry import ALL, evaluates_onnx, given
from numtrace.evaluate.op import Op


@evaluates_onnx("Shape", reads=("start", "end"), since=1, types=ALL)
def shape(op: Op, x: Tensor) -> Tensor:
    return torch.tensor(x.shape[given(op, "start", 0) : given(op, "end", x.dim())], dtype=torch.int64)


@evaluates_onnx("Size", since=1, types=ALL)
def size(op: Op, x: Tensor) -> Tensor:
    return torch.tensor(x.numel())


@evaluates_onnx("Reshape", reads=("allowzero",), since=5, types=ALL)
def reshape(op: Op, x: Tensor, sizes: Tensor) -> Tensor:
    """A size of 0 is the old one, unless ``allowzero``."""
    wanted = sizes.tolist()
    if not given(op, "allowzero", 0):
        wanted = [x.shape[dim] if size == 0 else size for dim, size in enumerate(wanted)]
    return x.reshape(wanted)


@evaluates_onnx("Flatten", reads=("axis",), since=1, types=ALL)
def flatten(op: Op, x: Tensor) -> Tensor:
    axis = given(op, "axis", 1)
    axis += x.dim() if axis < 0 else 0
    return x.reshape(x.shape[:axis].numel(), x.shape[axis:].numel())


@evaluates_onnx("Squeeze", reads=("axes",), since=1, types=ALL)
def squeeze(op: Op, x: Tensor, axes: Tensor | None = None) -> Tensor:
    """The axes are an attribute before opset 13."""
    named = given(op, "axes") if axes is None else axes.tolist()
    return x.squeeze([dim for dim, size in enumerate(x.shape) if size == 1] if named is None else named)


@evaluates_onnx("Unsqueeze", reads=("axes",), since=1, types=ALL)
def unsqueeze(op: Op, x: Tensor, axes: Tensor | None = None) -> Tensor:
    """The axes are an attribute before opset 13."""
    named = given(op, "axes") if axes is None else axes.tolist()
    rank = x.dim() + len(named)
    for axis in sorted(axis % rank for axis in named):
        x = x.unsqueeze(axis)
    return x


@evaluates_onnx("Expand", since=8, types=ALL)
def expand(op: Op, x: Tensor, sizes: Tensor) -> Tensor:
    return x.expand(torch.broadcast_shapes(x.shape, sizes.tolist()))


@evaluates_onnx("Tile", since=6, types=ALL)
def tile(op: Op, x: Tensor, repeats: Tensor) -> Tensor:
    return x.repeat(repeats.tolist())


@evaluates_onnx("Transpose", reads=("perm",), since=1, types=ALL)
def transpose(op: Op, x: Tensor) -> Tensor:
    return x.permute(given(op, "perm", [*reversed(range(x.dim()))]))


@evaluates_onnx("Concat", reads=("axis",), since=4, types=ALL)
def concat(op: Op, *parts: Tensor) -> Tensor:
    return torch.cat(parts, given(op, "axis"))


@evaluates_onnx("Split", reads=("axis", "num_outputs", "split"), since=2, types=ALL)
def split(op: Op, x: Tensor, sizes: Tensor | None = None) -> tuple[Tensor, ...]:
    """Equal parts, but for the last, where no sizes are given. They are an attribute before opset 13."""
    axis = given(op, "axis", 0)
    named = given(op, "split") if sizes is None else sizes.tolist()
    return torch.split(x, named or -(-x.shape[axis] // len(op.results)), axis)


@evaluates_onnx("Slice", since=10, types=ALL)
def slice_(
    op: Op, x: Tensor, starts: Tensor, ends: Tensor, axes: Tensor | None = None, steps: Tensor | None = None
) -> Tensor:
    """As in Python, with negative steps too, which torch does not have."""
    count = starts.numel()
    along = range(count) if axes is None else axes.tolist()
    by = [1] * count if steps is None else steps.tolist()
    for start, end, axis, step in zip(starts.tolist(), ends.tolist(), along, by, strict=True):
        # Python takes -1 for the last element; an end before the first one is one that ONNX has clamped to it.
        places = range(*slice(start, end, step).indices(x.shape[axis]))
        x = x.index_select(axis, torch.tensor(places, dtype=torch.int64))
    return x


@evaluates_onnx("Pad", reads=("mode",), since=11)
def pad(op: Op, x: Tensor, pads: Tensor, value: Tensor | None = None, axes: Tensor | None = None) -> Tensor:
    """Negative pads take away. Each axis by itself, as the modes are defined."""
    along = range(x.dim()) if axes is None else axes.tolist()
    ends = pads.tolist()
    mode = given(op, "mode", "constant")
    for number, axis in enumerate(along):
        low, high = ends[number], ends[number + len(ends) // 2]
        size = x.shape[axis]
        at = torch.arange(-low, size + high)
        inside = (at >= 0) & (at < size)
        if mode == "constant":
            shape = [-1 if dim == axis % x.dim() else 1 for dim in range(x.dim())]
            outside = torch.zeros((), dtype=x.dtype) if value is None else value.reshape(())
            if not size:
                x = outside.expand([len(at) if dim == axis % x.dim() else n for dim, n in enumerate(x.shape)])
                continue
            x = torch.where(inside.reshape(shape), x.index_select(axis, at.clamp(0, size - 1)), outside)
            continue
        match mode:
            case "edge":
                at = at.clamp(0, size - 1)
            case "wrap":
                at = at % size
            case "reflect":
                period = max(2 * size - 2, 1)
                at = (at % period).minimum(period - at % period) if size > 1 else torch.zeros_like(at)
            case other:
                raise UncoveredOp("onnx.Pad", f"mode {other}")
        x = x.index_select(axis, at)
    return x


@evaluates_onnx("Trilu", reads=("upper",), since=14)
def trilu(op: Op, x: Tensor, k: Tensor | None = None) -> Tensor:
    diagonal = 0 if k is None else int(k)
    return torch.triu(x, diagonal) if given(op, "upper", 1) else torch.tril(x, diagonal)


@evaluates_onnx("ReverseSequence", reads=("batch_axis", "time_axis"), since=10)
def reverse_sequence(op: Op, x: Tensor, lengths: Tensor) -> Tensor:
    batch, time = given(op, "batch_axis", 1), given(op, "time_axis", 0)
    x = x.movedim((batch, time), (0, 1)).clone()
    for row, length in enumerate(lengths.tolist()):
        x[row, :length] = x[row, :length].flip(0)
    return x.movedim((0, 1), (batch, time))


@evaluates_onnx("SpaceToDepth", reads=("blocksize", "mode"), since=1)
def space_to_depth(op: Op, x: Tensor) -> Tensor:
    """(n, c, h·b, w·b) to (n, b·b·c, h, w); with mode CRD the channel, not the place in the block, counts most."""
    n, c, height, width = x.shape
    b = given(op, "blocksize")
    blocks = x.reshape(n, c, height // b, b, width // b, b)
    order = (0, 1, 3, 5, 2, 4) if given(op, "mode", "DCR") == "CRD" else (0, 3, 5, 1, 2, 4)
    return blocks.permute(order).reshape(n, b * b * c, height // b, width // b)


@evaluates_onnx("DepthToSpace", reads=("blocksize", "mode"), since=11)
def depth_to_space(op: Op, x: Tensor) -> Tensor:
    """(n, b·b·c, h, w) to (n, c, h·b, w·b)."""
    n, deep, height, width = x.shape
    b = given(op, "blocksize")
    c = deep // (b * b)
    if given(op, "mode", "DCR") == "CRD":
        blocks = x.reshape(n, c, b, b, height, width).permute(0, 1, 4, 2, 5, 3)
    else:
        blocks = x.reshape(n, b, b, c, height, width).permute(0, 3, 4, 1, 5, 2)
    return blocks.reshape(n, c, height * b, width * b)
