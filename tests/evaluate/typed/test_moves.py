"""What only moves keeps its two meanings and its bound."""

from __future__ import annotations

import torch

from numtrace.evaluate.typed.value import Typed

X = torch.tensor([1.0, 2.0])
IN_DOUBT = Typed(torch.tensor([1.5, 2.5], dtype=torch.float64), X, torch.tensor([0.25, 0.5]), False)


def test_padding_is_certain(typed):
    text = """
    func.func @main(%x: tensor<2xf32>) -> tensor<4xf32> {
      %z = arith.constant 9.0 : f32
      %y = tensor.pad %x low[1] high[1] {
      ^bb0(%i: index):
        tensor.yield %z : f32
      } : tensor<2xf32> to tensor<4xf32>
      return %y : tensor<4xf32>
    }
    """
    made = typed(text, IN_DOUBT)
    assert made.exact.tolist() == [9.0, 1.5, 2.5, 9.0]
    assert made.typed.tolist() == [9.0, 1.0, 2.0, 9.0]
    assert made.bound.tolist() == [0.0, 0.25, 0.5, 0.0]
    assert typed(text, X).bound is None


def test_a_slice_put_into_another_tensor(typed):
    text = """
    func.func @main(%x: tensor<2xf32>, %t: tensor<4xf32>) -> tensor<4xf32> {
      %y = tensor.insert_slice %x into %t[1] [2] [1] : tensor<2xf32> into tensor<4xf32>
      return %y : tensor<4xf32>
    }
    """
    made = typed(text, IN_DOUBT, torch.full((4,), 7.0))
    assert made.typed.tolist() == [7.0, 1.0, 2.0, 7.0] and made.exact.tolist() == [7.0, 1.5, 2.5, 7.0]
    assert made.bound.tolist() == [0.0, 0.25, 0.5, 0.0]


def test_a_slice_and_a_reshape(typed):
    text = """
    func.func @main(%x: tensor<2xf32>) -> tensor<1x1xf32> {
      %s = tensor.extract_slice %x[1] [1] [1] : tensor<2xf32> to tensor<1xf32>
      %y = tensor.expand_shape %s [[0, 1]] output_shape [1, 1] : tensor<1xf32> into tensor<1x1xf32>
      return %y : tensor<1x1xf32>
    }
    """
    made = typed(text, IN_DOUBT)
    assert (made.exact.tolist(), made.typed.tolist(), made.bound.tolist()) == ([[2.5]], [[2.0]], [[0.5]])


GATHER = """
func.func @main(%x: tensor<2xf32>, %i: tensor<1xi64>) -> tensor<1xf32> {
  %e = tensor.empty() : tensor<1xf32>
  %y = linalg.generic {
      indexing_maps = [affine_map<(d) -> (d)>, affine_map<(d) -> (d)>], iterator_types = ["parallel"]}
      ins(%i : tensor<1xi64>) outs(%e : tensor<1xf32>) {
  ^bb0(%p: i64, %o: f32):
    %k = arith.index_cast %p : i64 to index
    %v = tensor.extract %x[%k] : tensor<2xf32>
    linalg.yield %v : f32
  } -> tensor<1xf32>
  return %y : tensor<1xf32>
}
"""


def test_an_element_brings_its_bound(typed):
    made = typed(GATHER, IN_DOUBT, torch.tensor([1]))
    assert (made.typed.item(), made.exact.item(), made.bound.item()) == (2.0, 2.5, 0.5)


def test_where_an_index_hangs_on_rounding_anything_may_be_read(typed):
    text = GATHER.replace("tensor<1x", "tensor<3x")
    index = Typed(
        torch.tensor([0, 1, 0]), torch.tensor([0, 1, 1]), torch.tensor([0.0, torch.inf, torch.inf]), False
    )
    made = typed(text, IN_DOUBT, index)
    assert made.exact.tolist() == [1.5, 2.5, 1.5]
    assert made.typed.tolist() == [1.0, 2.0, 2.0]
    assert made.bound.tolist() == [0.25, torch.inf, torch.inf]


def test_the_size_of_a_value_is_that_of_all_its_meanings(typed):
    text = """
    func.func @main(%a: tensor<?x2xf32>) -> tensor<?xf32> {
      %c0 = arith.constant 0 : index
      %n = tensor.dim %a, %c0 : tensor<?x2xf32>
      %half = arith.constant 0.5 : f32
      %empty = tensor.empty(%n) : tensor<?xf32>
      %0 = linalg.fill ins(%half : f32) outs(%empty : tensor<?xf32>) -> tensor<?xf32>
      return %0 : tensor<?xf32>
    }
    """
    assert typed(text, torch.ones(3, 2)).exact.tolist() == [0.5, 0.5, 0.5]
