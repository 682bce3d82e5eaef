"""Programs of integers whose lowering counts bits, against values found by hand."""

from __future__ import annotations

import numpy as np
import pytest
from commands import inside

COUNTED = """
func.func @main(%a: tensor<4xi16>) -> tensor<4xi16> {
  %0 = stablehlo.OP %a : tensor<4xi16>
  return %0 : tensor<4xi16>
}
"""

#: Quantized, with zero points 3 and -2; the count of a window at the border leaves the padding out. IREE divides by a
#: count that it multiplies with a reciprocal, shifted by the leading zeros of the count.
POOLED = """
func.func @main(%a: tensor<1x4x4x1xi8>) -> tensor<1x2x2x1xi8> {
  %of = "tosa.const"() {values = dense<3> : tensor<1xi8>} : () -> tensor<1xi8>
  %to = "tosa.const"() {values = dense<-2> : tensor<1xi8>} : () -> tensor<1xi8>
  %0 = "tosa.avg_pool2d"(%a, %of, %to) {
    acc_type = i32, kernel = array<i64: 3, 3>, pad = array<i64: 1, 0, 1, 0>, stride = array<i64: 2, 2>
  } : (tensor<1x4x4x1xi8>, tensor<1xi8>, tensor<1xi8>) -> tensor<1x2x2x1xi8>
  return %0 : tensor<1x2x2x1xi8>
}
"""
IMAGE = [[-128, 127, 10, 11], [4, 6, 7, 8], [9, 20, 30, 40], [50, 60, 70, 80]]


@pytest.mark.parametrize(
    ("program", "given", "expected"),
    [
        (COUNTED.replace("OP", "popcnt"), [0, 1, -1, 0x58], [0, 1, 16, 3]),
        (COUNTED.replace("OP", "count_leading_zeros"), [0, 1, -1, 0x58], [16, 15, 0, 9]),
        # The sums of four, six, six and nine, less 3 each: -3 / 4, 151 / 6, 131 / 6 and 294 / 9, rounded, and 2 less.
        (POOLED, [[[[x] for x in row] for row in IMAGE]], [[[[-3], [23]], [[20], [31]]]]),
    ],
    ids=["popcnt", "count_leading_zeros", "avg_pool2d"],
)
def test_integers_that_are_right_are_ok(tmp_path, program, given, expected):
    dtype = np.int8 if program is POOLED else np.int16
    (tmp_path / "model.mlir").write_text(program)
    np.save(tmp_path / "input.npy", np.array(given, dtype))
    np.save(tmp_path / "expected.npy", np.array(expected, dtype))
    arguments = ("--input", "@input.npy", "--expected", "expected.npy", "--atol", "0")
    result = inside("run", "model.mlir", *arguments, "--json", "--out", "run", cwd=tmp_path)
    assert result.code == 0, result.err
    (variant,) = result.document["variants"]
    assert variant["verdict"] == "ok", variant["reason"]
    made = np.load(tmp_path / "run" / "variants" / "baseline" / "exact0.npy")
    np.testing.assert_array_equal(made, expected)
