"""``iree_linalg_ext``: attention and the Winograd transforms."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil

import torch
from torch import Tensor

from numtrace.errors import UncoveredOp
from numtrace.evaluate.affine import Domain, Linear, align, linear_map, loop_sizes, loop_view, loops_of
from numtrace.evaluate.contraction import contract
from numtrace.evaluate.op import Op
from numtrace.evaluate.registry import evaluates

# The matrices of F(6x6, 3x3) for the points 0, ±1, ±2, ±1/2, ∞: Lavin and Gray, "Fast Algorithms for
# Convolutional Neural Networks" (2015), in the scaling of wincnn, with exact fractions.
_INPUT = torch.tensor(
    [
        [1, 0, -21 / 4, 0, 21 / 4, 0, -1, 0],
        [0, 1, 1, -17 / 4, -17 / 4, 1, 1, 0],
        [0, -1, 1, 17 / 4, -17 / 4, -1, 1, 0],
        [0, 1 / 2, 1 / 4, -5 / 2, -5 / 4, 2, 1, 0],
        [0, -1 / 2, 1 / 4, 5 / 2, -5 / 4, -2, 1, 0],
        [0, 2, 4, -5 / 2, -5, 1 / 2, 1, 0],
        [0, -2, 4, 5 / 2, -5, -1 / 2, 1, 0],
        [0, -1, 0, 21 / 4, 0, -21 / 4, 0, 1],
    ],
    dtype=torch.float64,
)
_FILTER = torch.tensor(
    [
        [1, 0, 0],
        [-2 / 9, -2 / 9, -2 / 9],
        [-2 / 9, 2 / 9, -2 / 9],
        [1 / 90, 1 / 45, 2 / 45],
        [1 / 90, -1 / 45, 2 / 45],
        [32 / 45, 16 / 45, 8 / 45],
        [32 / 45, -16 / 45, 8 / 45],
        [0, 0, 1],
    ],
    dtype=torch.float64,
)
_OUTPUT = torch.tensor(
    [
        [1, 1, 1, 1, 1, 1, 1, 0],
        [0, 1, -1, 2, -2, 1 / 2, -1 / 2, 0],
        [0, 1, 1, 4, 4, 1 / 4, 1 / 4, 0],
        [0, 1, -1, 8, -8, 1 / 8, -1 / 8, 0],
        [0, 1, 1, 16, 16, 1 / 16, 1 / 16, 0],
        [0, 1, -1, 32, -32, 1 / 32, -1 / 32, 1],
    ],
    dtype=torch.float64,
)
_TILE, _KERNEL, _POINTS = 6, 3, 8


def _check_sizes(op: Op) -> None:
    if (op.integer("output_tile_size"), op.integer("kernel_size")) != (_TILE, _KERNEL):
        given = f"F({op.integer('output_tile_size')}, {op.integer('kernel_size')})"
        raise UncoveredOp(op.name, f"{given}, only F(6, 3) is known")


def _image_last(op: Op, name: str) -> bool:
    """Whether the two image (or kernel) dimensions come last: NCHW and FCHW, not NHWC and HWCF.

    Raises:
        UncoveredOp: they are elsewhere.
    """
    dims = op.integers(name)
    if dims == [2, 3]:
        return True
    if dims == ([1, 2] if name == "image_dimensions" else [0, 1]):
        return False
    raise UncoveredOp(op.name, f"{name} = {dims}")


def _both_sides(matrix: Tensor, tiles: Tensor) -> Tensor:
    """``M T Mᵀ`` over the first two dimensions of ``tiles``."""
    rows, *rest = tiles.shape
    matrix = matrix.to(tiles.device)
    half = matrix @ tiles.reshape(rows, -1)
    return (matrix @ half.reshape(len(matrix), rest[0], -1)).reshape(len(matrix), len(matrix), *rest[1:])


def transform_input(op: Op, value: Tensor, out: Tensor, matrix: Tensor) -> Tensor:
    """``BᵀdB`` of every 8x8 tile, tiles 6 apart, zeros beyond the image: (8, 8, N, TH, TW, C)."""
    _check_sizes(op)
    image = value if _image_last(op, "image_dimensions") else value.permute(0, 3, 1, 2)
    height, width = out.shape[3:5]
    need = [(count - 1) * _TILE + _POINTS for count in (height, width)]
    image = torch.nn.functional.pad(image, (0, need[1] - image.shape[3], 0, need[0] - image.shape[2]))
    tiles = image.unfold(2, _POINTS, _TILE).unfold(3, _POINTS, _TILE)
    return _both_sides(matrix, tiles.permute(4, 5, 0, 2, 3, 1))


def transform_filter(op: Op, value: Tensor, out: Tensor, matrix: Tensor) -> Tensor:
    """``GgGᵀ`` of every filter: (8, 8, C, F)."""
    _check_sizes(op)
    return _both_sides(matrix, value.permute(2, 3, 1, 0) if _image_last(op, "kernel_dimensions") else value)


def transform_output(op: Op, value: Tensor, out: Tensor, matrix: Tensor) -> Tensor:
    """``AᵀmA`` of every tile, the 6x6 results laid side by side."""
    _check_sizes(op)
    last = _image_last(op, "image_dimensions")
    rows, columns = out.shape[2:4] if last else out.shape[1:3]
    n, h, w, c = value.shape[2:]
    if (ceil(rows / _TILE), ceil(columns / _TILE)) != (h, w):
        raise UncoveredOp(op.name, f"{h}x{w} tiles for an image of {rows}x{columns}")
    tiles = _both_sides(matrix, value)  # (6, 6, N, TH, TW, C)
    if last:
        image = tiles.permute(2, 5, 3, 0, 4, 1).reshape(n, c, h * _TILE, w * _TILE)
        return image[:, :, :rows, :columns]
    return tiles.permute(2, 3, 0, 4, 1, 5).reshape(n, h * _TILE, w * _TILE, c)[:, :rows, :columns]


#: The Winograd transforms: the function, linear in its value, and its matrix.
TRANSFORMS: dict[str, tuple[Callable[[Op, Tensor, Tensor, Tensor], Tensor], Tensor]] = {
    "iree_linalg_ext.winograd.input_transform": (transform_input, _INPUT),
    "iree_linalg_ext.winograd.filter_transform": (transform_filter, _FILTER),
    "iree_linalg_ext.winograd.output_transform": (transform_output, _OUTPUT),
}


@evaluates(*TRANSFORMS)
def winograd(op: Op, machine, value: Tensor, out: Tensor) -> Tensor:
    if not value.is_floating_point():
        raise UncoveredOp(op.name, "of integers, which the fractions of the transforms have no place among")
    transform, matrix = TRANSFORMS[op.name]
    return transform(op, value, out, matrix)


class Attention:
    """The loops of an attention: maps of its operands, and which loops its scores have.

    ``loops`` are those of the scores and ``extents`` their sizes, ``scores`` the scores' map; ``keys`` are the
    positions in it of the loops over keys.
    """

    def __init__(self, op: Op, shapes: list[tuple[int, ...]], end: int | None = None):
        """``shapes``: of query, key, value, mask (if there is one) and output, whose maps are those before ``end``."""
        attributes = list(op.attributes["indexing_maps"])[:end]
        self.query, self.key, self.value, _, *self.mask, self.out = (
            linear_map(attribute.value) for attribute in attributes
        )
        maps = [self.query, self.key, self.value, *self.mask, self.out]
        sizes = loop_sizes(maps, shapes, attributes[0].value.n_dims)
        self.whole = Domain.whole(sizes)
        kept = loops_of(self.out)
        inner = (loops_of(self.query) & loops_of(self.key)) - kept
        self.loops = sorted((loops_of(self.query) | loops_of(self.key)) - inner)
        self.extents = [sizes[loop] for loop in self.loops]
        self.scores = tuple(Linear(((loop, 1),)) for loop in self.loops)
        keys = (loops_of(self.key) & loops_of(self.value)) - kept
        self.keys = [self.loops.index(loop) for loop in sorted(keys)]

    def masked_scores(
        self, op: Op, machine, query: Tensor, key: Tensor, scale: Tensor, mask: list[Tensor]
    ) -> Tensor:
        """``scale · Q Kᵀ`` over ``loops``, rescaled by the op's region, with the mask (of none or one) on it."""
        zeros = torch.zeros((), dtype=torch.float64).expand(self.extents)
        scores = contract((query, self.query), (key, self.key), (zeros, self.scores), self.whole).mul_(scale)
        (scores,) = machine.run(op.regions[0], [scores])
        if mask:
            view = align(*loop_view(mask[0], self.mask[0], self.whole), self.loops)
            scores = torch.where(view, scores, -torch.inf) if view.dtype == torch.bool else scores + view
        return scores


@evaluates("iree_linalg_ext.attention")
def attention(op: Op, machine, *operands: Tensor) -> Tensor:
    """``softmax(scale · Q Kᵀ + mask) V`` over the op's own maps; the region rescales the scores."""
    query, key, value, scale, *mask, out = operands
    at = Attention(op, [tuple(tensor.shape) for tensor in (query, key, value, *mask, out)])
    scores = at.masked_scores(op, machine, query, key, scale, mask)
    positions = at.keys
    weights = torch.exp_(scores - scores.amax(dim=positions, keepdim=True))
    weights.div_(weights.sum(dim=positions, keepdim=True))
    nothing = torch.zeros((), dtype=torch.float64).expand(out.shape)
    return contract((weights, at.scores), (value, at.value), (nothing, at.out), at.whole)
