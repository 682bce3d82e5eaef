"""``iree_linalg_ext``: attention and the Winograd transforms."""

from __future__ import annotations

from math import ceil

import torch
from torch import Tensor

from numtrace.errors import UncoveredOp
from numtrace.evaluate.affine import Domain, linear_map, loop_sizes, loop_view
from numtrace.evaluate.contraction import contract
from numtrace.evaluate.program import Op
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
    if (op.int("output_tile_size"), op.int("kernel_size")) != (_TILE, _KERNEL):
        raise UncoveredOp(op.name, f"F({op.int('output_tile_size')}, {op.int('kernel_size')}), only F(6, 3) is known")


def _image_last(op: Op, name: str) -> tuple[bool, list[int]]:
    """Whether the two image (or kernel) dimensions come last (NCHW, FCHW) and which they are."""
    dims = op.ints(name)
    if dims == [2, 3]:
        return True, dims
    if dims in ([1, 2], [0, 1]):
        return False, dims
    raise UncoveredOp(op.name, f"{name} = {dims}")


@evaluates("iree_linalg_ext.winograd.input_transform")
def winograd_input(op: Op, machine, value: Tensor, out: Tensor) -> Tensor:
    """``BᵀdB`` of every 8x8 tile, tiles 6 apart, zeros beyond the image: (8, 8, N, TH, TW, C)."""
    _check_sizes(op)
    last, _ = _image_last(op, "image_dimensions")
    image = value if last else value.permute(0, 3, 1, 2)
    height, width = out.shape[3:5]
    need = [(count - 1) * _TILE + _POINTS for count in (height, width)]
    image = torch.nn.functional.pad(image, (0, need[1] - image.shape[3], 0, need[0] - image.shape[2]))
    tiles = image.unfold(2, _POINTS, _TILE).unfold(3, _POINTS, _TILE)
    return torch.einsum("xi,nchwij,yj->xynhwc", _INPUT, tiles, _INPUT)


@evaluates("iree_linalg_ext.winograd.filter_transform")
def winograd_filter(op: Op, machine, value: Tensor, out: Tensor) -> Tensor:
    """``GgGᵀ`` of every filter: (8, 8, C, F)."""
    _check_sizes(op)
    last, _ = _image_last(op, "kernel_dimensions")
    if last:
        return torch.einsum("xi,fcij,yj->xycf", _FILTER, value, _FILTER)
    return torch.einsum("xi,ijcf,yj->xycf", _FILTER, value, _FILTER)


@evaluates("iree_linalg_ext.winograd.output_transform")
def winograd_output(op: Op, machine, value: Tensor, out: Tensor) -> Tensor:
    """``AᵀmA`` of every tile, the 6x6 results laid side by side."""
    _check_sizes(op)
    last, _ = _image_last(op, "image_dimensions")
    tiles = torch.einsum("xi,ijnhwc,yj->nchxwy", _OUTPUT, value, _OUTPUT)
    n, c, h, _, w, _ = tiles.shape
    image = tiles.reshape(n, c, h * _TILE, w * _TILE)
    rows, columns = (out.shape[2:4]) if last else out.shape[1:3]
    if (ceil(rows / _TILE), ceil(columns / _TILE)) != (h, w):
        raise UncoveredOp(op.name, f"{h}x{w} tiles for an image of {rows}x{columns}")
    image = image[:, :, :rows, :columns]
    return image if last else image.permute(0, 2, 3, 1)


@evaluates("iree_linalg_ext.attention")
def attention(op: Op, machine, *operands: Tensor) -> Tensor:
    """``softmax(scale · Q Kᵀ + mask) V`` over the op's own maps; the region rescales the scores."""
    *inputs, out = operands
    query, key, value, scale, *mask = inputs
    maps = [linear_map(attribute.value) for attribute in op.attributes["indexing_maps"]]
    q_map, k_map, v_map, _, *rest = maps
    loops = op.attributes["indexing_maps"][0].value.n_dims
    shapes = [query, key, value, *([mask[0]] if mask else []), out]
    used = [q_map, k_map, v_map, *rest]
    sizes = loop_sizes(used, [tuple(t.shape) for t in shapes], loops)
    dims = [{loop for form in forms for loop, _ in form.coefficients} for forms in (q_map, k_map, v_map, used[-1])]
    inner = dims[0] & dims[1] - dims[3]
    keys = (dims[1] & dims[2]) - dims[3]
    score_loops = sorted((dims[0] | dims[1]) - inner)
    forms = tuple(_single(loop) for loop in score_loops)
    scores = torch.zeros([sizes[loop] for loop in score_loops], dtype=torch.float64)
    whole = Domain.whole(sizes)
    contract([(query, q_map), (key, k_map)], (scores, forms), whole)
    scores *= scale
    (scores,) = machine.run(op.regions[0], [scores])
    if mask:
        view, mask_loops = loop_view(mask[0], rest[0], whole)
        for position, loop in enumerate(score_loops):
            if loop not in mask_loops:
                view = view.unsqueeze(position)
        scores = torch.where(view, scores, -torch.inf) if view.dtype == torch.bool else scores + view
    weights = scores
    positions = [score_loops.index(loop) for loop in sorted(keys)]
    weights = torch.exp(weights - weights.amax(dim=positions, keepdim=True))
    weights = weights / weights.sum(dim=positions, keepdim=True)
    result = torch.zeros_like(out)
    contract([(weights, forms), (value, v_map)], (result, used[-1]), whole)
    return result


def _single(loop: int):
    from numtrace.evaluate.affine import Linear

    return Linear(((loop, 1),), 0)
