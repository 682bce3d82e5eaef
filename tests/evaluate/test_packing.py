"""pack and unpack against numpy's own reshapes and transposes, and against numbers written out."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from numtrace.errors import UndefinedResult

PACK = """
util.func public @main(%x: tensor<5x7xf32>, %e: tensor<{out}xf32>, %p: f32) -> tensor<{out}xf32> {{
  %r = linalg.pack %x padding_value(%p : f32) {perm} inner_dims_pos = {dims} inner_tiles = {tiles}
      into %e : tensor<5x7xf32> -> tensor<{out}xf32>
  util.return %r : tensor<{out}xf32>
}}
"""
UNPACK = """
util.func public @main(%x: tensor<{packed}xf32>, %e: tensor<5x7xf32>) -> tensor<5x7xf32> {{
  %r = linalg.unpack %x {perm} inner_dims_pos = {dims} inner_tiles = {tiles}
      into %e : tensor<{packed}xf32> -> tensor<5x7xf32>
  util.return %r : tensor<5x7xf32>
}}
"""
X = torch.arange(35, dtype=torch.float32).reshape(5, 7)
PADDED = np.pad(X.numpy(), ((0, 1), (0, 1)), constant_values=-1)


@pytest.mark.parametrize(
    ("out", "perm", "dims", "tiles", "expected"),
    [
        ("3x2x2x4", "", "[0, 1]", "[2, 4]", PADDED.reshape(3, 2, 2, 4).transpose(0, 2, 1, 3)),
        (
            "2x3x2x4",
            "outer_dims_perm = [1, 0]",
            "[0, 1]",
            "[2, 4]",
            PADDED.reshape(3, 2, 2, 4).transpose(2, 0, 1, 3),
        ),
        ("3x2x4x2", "", "[1, 0]", "[4, 2]", PADDED.reshape(3, 2, 2, 4).transpose(0, 2, 3, 1)),
        ("5x2x4", "", "[1]", "[4]", PADDED[:5].reshape(5, 2, 4)),
        (
            "7x3x2",
            "outer_dims_perm = [1, 0]",
            "[0]",
            "[2]",
            PADDED[:, :7].reshape(3, 2, 7).transpose(2, 0, 1),
        ),
    ],
)
def test_tiles_and_back(evaluate, out, perm, dims, tiles, expected):
    shape = tuple(map(int, out.split("x")))
    (packed,) = evaluate(
        PACK.format(out=out, perm=perm, dims=dims, tiles=tiles), X, torch.zeros(shape), torch.tensor(-1.0)
    )
    np.testing.assert_array_equal(packed.numpy(), expected)
    (back,) = evaluate(
        UNPACK.format(packed=out, perm=perm, dims=dims, tiles=tiles), packed, torch.zeros(5, 7)
    )
    assert torch.equal(back, X.double() if back.dtype == torch.float64 else X)


def test_by_hand(evaluate):
    """1 2 3 in tiles of two, filled up with 9."""
    text = """
    util.func public @main(%x: tensor<3xi32>, %e: tensor<2x2xi32>, %p: i32) -> tensor<2x2xi32> {
      %r = linalg.pack %x padding_value(%p : i32) inner_dims_pos = [0] inner_tiles = [2]
          into %e : tensor<3xi32> -> tensor<2x2xi32>
      util.return %r : tensor<2x2xi32>
    }
    """
    numbers = torch.tensor([1, 2, 3], dtype=torch.int32)
    (packed,) = evaluate(
        text, numbers, torch.zeros(2, 2, dtype=torch.int32), torch.tensor(9, dtype=torch.int32)
    )
    assert packed.tolist() == [[1, 2], [3, 9]]


def test_a_tile_that_nothing_fills_is_undefined(evaluate):
    text = """
    util.func public @main(%x: tensor<?xf32>, %e: tensor<2x2xf32>) -> tensor<2x2xf32> {
      %r = linalg.pack %x inner_dims_pos = [0] inner_tiles = [2] into %e : tensor<?xf32> -> tensor<2x2xf32>
      util.return %r : tensor<2x2xf32>
    }
    """
    with pytest.raises(UndefinedResult, match="leaves 1 places of a tile unwritten"):
        evaluate(text, torch.ones(3), torch.zeros(2, 2))
