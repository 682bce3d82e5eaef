"""Online attention: all keys at once, and half of them after the other half, against torch's softmax."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from numtrace.evaluate.machine import Machine
from numtrace.evaluate.program import Program

#: Query 2x5x3, key 2xKx3, value 2xKx4, mask 2x5xK; the result as 2x4x5, so that a permutation matters.
TEXT = """
util.func public @main(%q: tensor<2x5x3xf32>, %k: tensor<2x{n}x3xf32>, %v: tensor<2x{n}x4xf32>,
    %mask: tensor<2x5x{n}xf32>, %acc: tensor<2x4x5xf32>, %max: tensor<5x2xf32>, %sum: tensor<2x5xf32>)
    -> (tensor<2x4x5xf32>, tensor<5x2xf32>, tensor<2x5xf32>) {{
  %scale = arith.constant 0.75 : f32
  %r:3 = iree_linalg_ext.online_attention <indexing_maps = [
      affine_map<(b, m, n, k1, k2) -> (b, m, k1)>, affine_map<(b, m, n, k1, k2) -> (b, k2, k1)>,
      affine_map<(b, m, n, k1, k2) -> (b, k2, n)>, affine_map<(b, m, n, k1, k2) -> ()>,
      affine_map<(b, m, n, k1, k2) -> (b, m, k2)>, affine_map<(b, m, n, k1, k2) -> (b, n, m)>,
      affine_map<(b, m, n, k1, k2) -> (m, b)>, affine_map<(b, m, n, k1, k2) -> (b, m)>]>
      ins(%q, %k, %v, %scale, %mask :
          tensor<2x5x3xf32>, tensor<2x{n}x3xf32>, tensor<2x{n}x4xf32>, f32, tensor<2x5x{n}xf32>)
      outs(%acc, %max, %sum : tensor<2x4x5xf32>, tensor<5x2xf32>, tensor<2x5xf32>) {{
  ^bb0(%score: f32):
    iree_linalg_ext.yield %score : f32
  }} -> tensor<2x4x5xf32>, tensor<5x2xf32>, tensor<2x5xf32>
  util.return %r#0, %r#1, %r#2 : tensor<2x4x5xf32>, tensor<5x2xf32>, tensor<2x5xf32>
}}
"""


def attend(*operands: Tensor) -> list[Tensor]:
    program = Program.parse(TEXT.format(n=operands[1].shape[1]))
    return Machine(program).run(program.functions["main"].regions[0], list(operands))


@pytest.mark.parametrize("split", [(6,), (2, 4), (1, 2, 3)])
def test_the_keys_may_come_in_parts(split):
    generator = torch.Generator().manual_seed(0)
    q, k, v, mask = (
        torch.randn(shape, dtype=torch.float64, generator=generator)
        for shape in ((2, 5, 3), (2, 6, 3), (2, 6, 4), (2, 5, 6))
    )
    scores = 0.75 * (q @ k.transpose(1, 2)) + mask
    state = [
        torch.zeros(2, 4, 5, dtype=torch.float64),
        torch.full((5, 2), -3.4e38, dtype=torch.float64),
        torch.zeros(2, 5, dtype=torch.float64),
    ]
    parts = zip(k.split(split, 1), v.split(split, 1), mask.split(split, 2), strict=True)
    for key, value, add in parts:
        state = attend(q, key, value, add, *state)
    joined, most, total = state
    assert torch.allclose(most, scores.amax(-1).T, rtol=1e-14)
    assert torch.allclose(total, torch.exp(scores - scores.amax(-1, keepdim=True)).sum(-1), rtol=1e-14)
    expected = torch.softmax(scores, -1) @ v
    assert torch.allclose((joined / total.unsqueeze(1)).transpose(1, 2), expected, rtol=1e-13)
