"""``iree_linalg_ext.im2col``: the windows of a convolution side by side. Values move, nothing is computed."""

from __future__ import annotations

from itertools import accumulate
from operator import mul

import torch
from torch import Tensor

from numtrace.errors import UncoveredOp, UndefinedResult
from numtrace.evaluate.op import Op
from numtrace.evaluate.registry import evaluates


@evaluates("iree_linalg_ext.im2col")
def im2col(op: Op, machine, value: Tensor, out: Tensor, *dynamic: Tensor) -> Tensor:
    """Each element of the result is read from the image at the place that its coordinates stand for.

    The result's dimensions are, in the order that ``output_perm`` undoes: batches, places of the window (M), and
    what is inside it (K). A dimension is one number for several coordinates, row-major of ``output_sizes``. M's
    coordinates are those of ``m_pos``; K's, taken in the order of the inverse of ``input_k_perm``, are for each
    dimension of the image that is no batch the place in the window, or the channel. As IREE's own
    ``iree-linalg-ext-decompose-im2col`` reads it.
    """
    if dynamic or op.integers("static_input_pad_low") or op.integers("static_output_pad_low"):
        raise UncoveredOp(op.name, "with padding, or with sizes that are not known")
    batches, places, channels = (op.integers(name) for name in ("batch_pos", "m_pos", "k_pos"))
    sizes = [[int(size) for size in inner] for inner in op.attributes["static_output_sizes"]]
    permutation = op.integers("output_perm")
    split = []
    for dimension, (start, inner) in enumerate(zip(op.integers("static_offsets"), sizes, strict=True)):
        actual = permutation.index(dimension)
        shape = [-1 if at == actual else 1 for at in range(out.dim())]
        split.append(_coordinates((start + torch.arange(out.shape[actual])).reshape(shape), inner))
    batch = [coordinates[0] for coordinates in split[: len(batches)]]
    rest = [coordinate for coordinates in split[len(batches) :] for coordinate in coordinates]
    corner, inside = rest[: len(places)], rest[len(places) :]
    order = op.integers("input_k_perm")
    if len(inside) != len(order) or len(order) != len(places) + len(channels):
        raise UncoveredOp(op.name, f"{len(inside)} coordinates inside a window, input_k_perm = {order}")
    dimensions = sorted([*places, *channels])
    within = {dimension: inside[order.index(number)] for number, dimension in enumerate(dimensions)}
    at: dict[int, Tensor] = dict(zip(batches, batch, strict=True)) | {k: within[k] for k in channels}
    strides, dilations = op.integers("strides"), op.integers("dilations")
    for place, first, stride, dilation in zip(places, corner, strides, dilations, strict=True):
        at[place] = first * stride + within[place] * dilation
    for dimension, index in at.items():
        if int(index.max()) >= value.shape[dimension]:
            raise UndefinedResult(op.name, f"reads element {int(index.max())} of {value.shape[dimension]}")
    return value[tuple(at[dimension] for dimension in range(value.dim()))]


def _coordinates(index: Tensor, sizes: list[int]) -> list[Tensor]:
    """Row-major coordinates in ``sizes`` of each index."""
    below = [*accumulate(reversed(sizes[1:]), mul, initial=1)]
    return [index // step % size for step, size in zip(reversed(below), sizes, strict=True)]
