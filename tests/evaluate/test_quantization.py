"""Codes and what they stand for, by hand and as IREE's own code has them."""

from __future__ import annotations

import pytest
import torch
from judged import Compiled

MAPS = """
#id = affine_map<(d0, d1) -> (d0, d1)>
#turned = affine_map<(d0, d1) -> (d1, d0)>
#row = affine_map<(d0, d1) -> (d0)>
#all = affine_map<(d0, d1) -> ()>
"""
BYTES = f"""{MAPS}
func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xi8> {{
  %scale = arith.constant 0.5 : f32
  %zero = arith.constant 100 : i64
  %e = tensor.empty() : tensor<2x4xi8>
  %q = iree_linalg_ext.quantize_affine
      <indexing_maps = [#id, #all, #all, #id], quant_min = 0, quant_max = 255, storage_unsigned>
      ins(%x, %scale, %zero : tensor<2x4xf32>, f32, i64) outs(%e : tensor<2x4xi8>) -> tensor<2x4xi8>
  return %q : tensor<2x4xi8>
}}
"""
#: x / 0.5 are 0.5, 1.5, 2.5, -0.5; -200, 155, 1e6 and NaN.
X = torch.tensor([[0.25, 0.75, 1.25, -0.25], [-100.0, 77.5, 5e5, torch.nan]])
#: Halves to the even neighbour: 0, 2, 2, 0; plus 100, no less than 0 and no more than 255.
CODES = [[100, 102, 102, 100], [0, 255, 255, 0]]


def test_quantization_rounds_halves_to_even_and_clamps(evaluate):
    (found,) = evaluate(BYTES, X)
    assert found.dtype == torch.int8
    assert found.view(torch.uint8).tolist() == CODES


def test_it_is_what_the_compiled_code_makes(tmp_path):
    (site,) = Compiled(BYTES, tmp_path).run(X)
    assert site.made.reshape(2, 4).view(torch.uint8).tolist() == CODES


TURNED = f"""{MAPS}
func.func @main(%q: tensor<2x3xi8>, %scale: tensor<2xf32>, %zero: tensor<2xi8>) -> tensor<3x2xf32> {{
  %e = tensor.empty() : tensor<3x2xf32>
  %x = iree_linalg_ext.dequantize_affine <indexing_maps = [#id, #row, #row, #turned]UNSIGNED>
      ins(%q, %scale, %zero : tensor<2x3xi8>, tensor<2xf32>, tensor<2xi8>)
      outs(%e : tensor<3x2xf32>) -> tensor<3x2xf32>
  return %x : tensor<3x2xf32>
}}
"""
STORED = torch.tensor([[-1, 3, 0], [-128, 1, 127]], dtype=torch.int8)


@pytest.mark.parametrize(
    ("unsigned", "expected"),
    [  # rows: (q - 3) * 0.5 and (q + 2) * 4, turned
        ("", [[-2.0, -504.0], [0.0, 12.0], [-1.5, 516.0]]),
        (", input_unsigned", [[126.0, 520.0], [0.0, 12.0], [-1.5, 516.0]]),
        # with a zero point of 254 for -2
        (", input_unsigned, zp_unsigned", [[126.0, -504.0], [0.0, -1012.0], [-1.5, -508.0]]),
    ],
)
def test_dequantization_by_row(evaluate, unsigned, expected):
    text = TURNED.replace("UNSIGNED", unsigned)
    arguments = STORED, torch.tensor([0.5, 4.0]), torch.tensor([3, -2], dtype=torch.int8)
    assert evaluate(text, *arguments)[0].tolist() == expected


def test_without_a_zero_point_codes_are_multiples(evaluate):
    text = f"""{MAPS}
    func.func @main(%q: tensor<2x3xi8>, %scale: f32) -> tensor<2x3xf32> {{
      %e = tensor.empty() : tensor<2x3xf32>
      %x = iree_linalg_ext.dequantize_affine <indexing_maps = [#id, #all, #id]>
          ins(%q, %scale : tensor<2x3xi8>, f32) outs(%e : tensor<2x3xf32>) -> tensor<2x3xf32>
      return %x : tensor<2x3xf32>
    }}
    """
    assert evaluate(text, STORED, torch.tensor(0.25))[0].tolist() == [
        [-0.25, 0.75, 0.0],
        [-32.0, 0.25, 31.75],
    ]
