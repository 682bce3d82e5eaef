# ruff: noqa: E501 (lines of MLIR)
import numpy as np
import pytest
import torch
from programs import Bench

from numtrace.errors import UncoveredOp

SORT = """
util.func public @main(%a: tensor<2x4xf32>, %i: tensor<2x4xi64>) -> (tensor<2x4xf32>, tensor<2x4xi64>) {{
  %0:2 = iree_linalg_ext.sort dimension(1) outs(%a, %i : tensor<2x4xf32>, tensor<2x4xi64>) {{
  ^bb0(%x: f32, %y: f32, %m: i64, %n: i64):
    {region}
    iree_linalg_ext.yield %c : i1
  }} -> tensor<2x4xf32>, tensor<2x4xi64>
  util.return %0#0, %0#1 : tensor<2x4xf32>, tensor<2x4xi64>
}}
"""
VALUES = torch.tensor([[3.0, 1.0, 2.0, 1.0], [0.0, 5.0, -1.0, 4.0]])
POSITIONS = torch.arange(4).expand(2, 4)


@pytest.mark.parametrize(
    ("region", "values", "positions"),
    [
        ("%c = arith.cmpf ole, %x, %y : f32", [[1, 1, 2, 3], [-1, 0, 4, 5]], [[1, 3, 2, 0], [2, 0, 3, 1]]),
        ("%c = arith.cmpf oge, %x, %y : f32", [[3, 2, 1, 1], [5, 4, 0, -1]], [[0, 2, 1, 3], [1, 3, 0, 2]]),
        ("%c = arith.cmpf olt, %y, %x : f32", [[3, 2, 1, 1], [5, 4, 0, -1]], [[0, 2, 1, 3], [1, 3, 0, 2]]),
        ("%c = arith.cmpi sge, %m, %n : i64", [[1, 2, 1, 3], [4, -1, 5, 0]], [[3, 2, 1, 0], [3, 2, 1, 0]]),
        # by magnitude: more than one comparison
        (
            "%p = math.absf %x : f32\n%q = math.absf %y : f32\n%c = arith.cmpf ole, %p, %q : f32",
            [[1, 1, 2, 3], [0, -1, 4, 5]],
            [[1, 3, 2, 0], [0, 2, 3, 1]],
        ),
    ],
)
def test_sort(evaluate, region, values, positions):
    found, order = evaluate(SORT.format(region=region), VALUES, POSITIONS.contiguous())
    assert found.tolist() == values
    assert order.tolist() == positions


def test_a_nan_has_no_place(evaluate):
    text = SORT.format(region="%c = arith.cmpf ole, %x, %y : f32")
    with pytest.raises(UncoveredOp, match="a NaN has no place"):
        evaluate(text, VALUES.log(), POSITIONS.contiguous())


def test_arg_compare_keeps_the_first_and_what_its_comparison_says_of_nan(evaluate):
    """Greater-than is false for a NaN, so it is never chosen; of equal ones the first is."""
    text = """
    util.func public @main(%a: tensor<3x4xf32>, %v: tensor<3xf32>, %i: tensor<3xi32>) -> (tensor<3xf32>, tensor<3xi32>) {
      %0:2 = iree_linalg_ext.arg_compare dimension(1) ins(%a : tensor<3x4xf32>) outs(%v, %i : tensor<3xf32>, tensor<3xi32>) {
      ^bb0(%x: f32, %y: f32):
        %c = arith.cmpf ogt, %x, %y : f32
        iree_linalg_ext.yield %c : i1
      } -> tensor<3xf32>, tensor<3xi32>
      util.return %0#0, %0#1 : tensor<3xf32>, tensor<3xi32>
    }
    """
    a = torch.tensor([[1.0, 7.0, 7.0, 2.0], [1.0, torch.nan, 3.0, 0.0], [-9.0, -8.0, -7.0, -6.0]])
    start = torch.tensor([-torch.inf, -torch.inf, 0.0])
    best, index = evaluate(text, a, start, torch.tensor([0, 0, 5], dtype=torch.int32))
    assert best.tolist() == [7.0, 3.0, 0.0]
    assert index.tolist() == [1, 2, 5]  # the last row: nothing beats the start


TOPK = """
util.func public @main(%a: tensor<2x6xf32>) -> (tensor<2x3xf32>, tensor<2x3xi32>) {
  %low = arith.constant dense<-1.0> : tensor<2x3xf32>
  %none = arith.constant dense<7> : tensor<2x3xi32>
  %0:2 = iree_linalg_ext.topk dimension(1) ins(%a : tensor<2x6xf32>) outs(%low, %none : tensor<2x3xf32>, tensor<2x3xi32>) {
  ^bb0(%x: f32, %y: f32):
    %c = arith.cmpf ogt, %x, %y : f32
    iree_linalg_ext.yield %c : i1
  } -> tensor<2x3xf32>, tensor<2x3xi32>
  util.return %0#0, %0#1 : tensor<2x3xf32>, tensor<2x3xi32>
}
"""
#: Ties among the elements, and with the outs; fewer than three that are above these.
TIES = torch.tensor([[2.0, 5.0, 2.0, 5.0, 1.0, 2.0], [-2.0, 3.0, -1.0, -1.0, -3.0, -5.0]])


@pytest.mark.parametrize("op", ["iree_linalg_ext.topk", "iree_linalg_ext.topk_v2"])
def test_topk(evaluate, op):
    best, where = evaluate(TOPK.replace("iree_linalg_ext.topk", op), TIES)
    assert best.tolist() == [[5, 5, 2], [3, -1, -1]]
    assert where.tolist() == [[1, 3, 0], [1, 2, 3]]


@pytest.mark.parametrize("op", ["iree_linalg_ext.topk", "iree_linalg_ext.topk_v2"])
def test_topk_is_as_compiled(tmp_path, op):
    np.save(tmp_path / "x.npy", TIES.numpy())
    text = TOPK.replace("iree_linalg_ext.topk", op)
    ran = Bench(tmp_path / "bench", text, inputs=[f"@{tmp_path / 'x.npy'}"]).run()
    assert [output["max_abs"] for output in ran.record["outputs"]] == [0.0, 0.0]
