# ruff: noqa: E501 (lines of MLIR)
import pytest
import torch

from numtrace.errors import UndefinedResult

SCAN = """
util.func public @main(%a: tensor<2x3xf32>, %s: tensor<2xf32>) -> (tensor<2x3xf32>, tensor<2xf32>) {{
  %e = tensor.empty() : tensor<2x3xf32>
  %0:2 = iree_linalg_ext.scan {{operandSegmentSizes = array<i32: 1, 2>}} dimension(1) inclusive({inclusive}) ins(%a : tensor<2x3xf32>) outs(%e, %s : tensor<2x3xf32>, tensor<2xf32>) {{
  ^bb0(%x: f32, %y: f32):
    %c = {region} %x, %y : f32
    iree_linalg_ext.yield %c : f32
  }} -> tensor<2x3xf32>, tensor<2xf32>
  util.return %0#0, %0#1 : tensor<2x3xf32>, tensor<2xf32>
}}
"""


@pytest.mark.parametrize(
    ("region", "inclusive", "prefixes", "last"),
    [
        ("arith.addf", "true", [[1, 3, 6], [4, 9, 15]], [6, 15]),
        ("arith.mulf", "true", [[1, 2, 6], [4, 20, 120]], [6, 120]),
        ("arith.subf", "true", [[1, -1, -4], [4, -1, -7]], [-4, -7]),  # ((1 - 2) - 3)
        ("arith.addf", "false", [[10, 11, 13], [20, 24, 29]], [13, 29]),
    ],
)
def test_scan(evaluate, region, inclusive, prefixes, last):
    a = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    found, end = evaluate(SCAN.format(region=region, inclusive=inclusive), a, torch.tensor([10.0, 20.0]))
    assert found.tolist() == prefixes
    assert end.tolist() == last


SCATTER = """
util.func public @main(%u: tensor<3x2xf32>, %i: tensor<3x1xi64>, %o: tensor<4x2xf32>) -> tensor<4x2xf32> {{
  %0 = iree_linalg_ext.scatter dimension_map = [0] unique_indices(false) ins(%u, %i : tensor<3x2xf32>, tensor<3x1xi64>) outs(%o : tensor<4x2xf32>) {{
  ^bb0(%x: f32, %y: f32):
    {region}
  }} -> tensor<4x2xf32>
  util.return %0 : tensor<4x2xf32>
}}
"""
OVERWRITE = "iree_linalg_ext.yield %x : f32"
ADD = "%c = arith.addf %y, %x : f32\niree_linalg_ext.yield %c : f32"
SUBTRACT = "%c = arith.subf %y, %x : f32\niree_linalg_ext.yield %c : f32"


@pytest.mark.parametrize(
    ("region", "expected"),
    [
        (OVERWRITE, [[5, 6], [1, 1], [3, 4], [1, 1]]),
        (ADD, [[7, 9], [1, 1], [4, 5], [1, 1]]),
        (SUBTRACT, [[-5, -7], [1, 1], [-2, -3], [1, 1]]),
    ],
)
def test_scatter_with_an_index_twice(evaluate, region, expected):
    """Rows 0, 2 and 0 again, onto ones."""
    updates = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    (found,) = evaluate(
        SCATTER.format(region=region), updates, torch.tensor([[0], [2], [0]]), torch.ones(4, 2)
    )
    assert found.tolist() == expected


def test_scatter_of_elements_by_two_indices(evaluate):
    text = """
    util.func public @main(%u: tensor<2xf32>, %i: tensor<2x2xi64>, %o: tensor<2x3xf32>) -> tensor<2x3xf32> {
      %0 = iree_linalg_ext.scatter dimension_map = [0, 1] unique_indices(true) ins(%u, %i : tensor<2xf32>, tensor<2x2xi64>) outs(%o : tensor<2x3xf32>) {
      ^bb0(%x: f32, %y: f32):
        iree_linalg_ext.yield %x : f32
      } -> tensor<2x3xf32>
      util.return %0 : tensor<2x3xf32>
    }
    """
    (found,) = evaluate(text, torch.tensor([7.0, 8.0]), torch.tensor([[0, 2], [1, 0]]), torch.zeros(2, 3))
    assert found.tolist() == [[0, 0, 7], [8, 0, 0]]


def test_an_index_out_of_range_is_undefined(evaluate):
    with pytest.raises(
        UndefinedResult, match="uses index 4 of dimension 0, of size 4: its result is undefined"
    ):
        evaluate(
            SCATTER.format(region=ADD), torch.ones(3, 2), torch.tensor([[0], [4], [0]]), torch.ones(4, 2)
        )


def test_updates_without_an_index_are_undefined(evaluate):
    """What torch-mlir makes of ``index_put`` by a mask that is nowhere true: one update, broadcast to no index."""
    dynamic = SCATTER.format(region=ADD).replace("3x", "?x")
    with pytest.raises(UndefinedResult, match="0 indices for 1 updates"):
        evaluate(dynamic, torch.ones(1, 2), torch.zeros(0, 1, dtype=torch.int64), torch.ones(4, 2))
    (nothing,) = evaluate(dynamic, torch.ones(0, 2), torch.zeros(0, 1, dtype=torch.int64), torch.ones(4, 2))
    assert nothing.tolist() == torch.ones(4, 2).tolist()


def test_gather(evaluate):
    text = """
    util.func public @main(%a: tensor<4x2xf32>, %i: tensor<3x1xi64>) -> tensor<3x2xf32> {
      %e = tensor.empty() : tensor<3x2xf32>
      %0 = iree_linalg_ext.gather dimension_map = [0] ins(%a, %i : tensor<4x2xf32>, tensor<3x1xi64>) outs(%e : tensor<3x2xf32>) -> tensor<3x2xf32>
      util.return %0 : tensor<3x2xf32>
    }
    """
    (found,) = evaluate(text, torch.arange(8.0).reshape(4, 2), torch.tensor([[3], [0], [3]]))
    assert found.tolist() == [[6, 7], [0, 1], [6, 7]]
