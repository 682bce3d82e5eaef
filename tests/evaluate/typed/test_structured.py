"""Reductions and contractions, with bounds worked out by hand; u is 2^-24."""

from __future__ import annotations

import math

import pytest
import torch
from doubtful import close
from kernels import elementwise, matmul, reduction

from numtrace.evaluate.typed.value import Typed

U = 2.0**-24
A = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
B = torch.tensor([[1.0, -1.0], [0.5, 0.25]])


def test_a_matmul_of_two_by_two(typed):
    """Three terms each (the start counts), A the sum of |products|, S the sum: min(3u·A, u·(2.5·A + 1.5·|S|)), and
    u·|S| for the rounding of the result.

    (A, S): (2, 2) -> 6 + 2, (1.5, -0.5) -> 4.5 + 0.5, (5, 5) -> 15 + 5, (4, -2) -> 12 + 2.
    """
    made = typed(matmul(2, 2, 2, "f32,f32,f32"), A, B, deterministic=True)
    assert made.typed.tolist() == made.exact.tolist() == [[2.0, -0.5], [5.0, -2.0]]
    expected = torch.tensor([[8.0, 5.0], [20.0, 14.0]]) * U
    assert torch.allclose(made.bound, expected, rtol=1e-5, atol=0)


ADDED = """
func.func @main(%a: tensor<2x2xf32>, %b: tensor<2x2xf32>, %x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x2xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x2xf32>) -> tensor<2x2xf32>
  %m = linalg.matmul ins(%a, %b : tensor<2x2xf32>, tensor<2x2xf32>) outs(%f : tensor<2x2xf32>) -> tensor<2x2xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>,
      affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%m, %x : tensor<2x2xf32>, tensor<2x2xf32>) outs(%e : tensor<2x2xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<2x2xf32>
  return %y : tensor<2x2xf32>
}
"""


def test_a_sum_may_begin_with_what_is_added_to_it(typed):
    """The bounds of a matmul of two by two, 3u·8 for a sum of three terms that begins with 8, and 2u·|S + 8|."""
    made = typed(ADDED, A, B, torch.full((2, 2), 8.0), deterministic=True)
    assert made.typed.tolist() == [[10.0, 7.5], [13.0, 6.0]]
    expected = torch.tensor([[8.0 + 24 + 20, 5 + 24 + 15], [20 + 24 + 26, 14 + 24 + 12]]) * U
    assert torch.allclose(made.bound, expected, rtol=1e-5, atol=0)


def test_operands_in_doubt(typed):
    """A ± 0.01 everywhere: 0.01·(1 + 0.5) in the first column, 0.01·(1 + 0.25) in the second."""
    doubtful = Typed(A.double(), A, torch.full((2, 2), 0.01))
    made = typed(matmul(2, 2, 2, "f32,f32,f32"), doubtful, B, deterministic=True)
    expected = torch.tensor([[0.015, 0.0125], [0.015, 0.0125]])
    assert torch.allclose(made.bound, expected, rtol=1e-3, atol=0)
    both = typed(matmul(2, 2, 2, "f32,f32,f32"), doubtful, Typed(B.double(), B, torch.full((2, 2), 0.1)))
    # 0.01·(1.5 + 0.2) + 0.1·(1 + 2)
    assert both.bound[0, 0].item() == pytest.approx(0.017 + 0.3, rel=1e-3)


def test_a_matmul_is_rounded_once_to_its_accumulator(typed):
    """2048 + 1 + 1 is 2050 in f16; in order it is 2048."""
    a, b = torch.tensor([[2048.0, 1.0, 1.0]]).half(), torch.ones(3, 1).half()
    text = matmul(1, 3, 1, "f16,f16,f16")
    assert typed(text, a, b).typed.item() == 2050.0
    assert typed(text, a, b, in_order=True).typed.item() == 2048.0
    assert typed(text, a, b).bound.item() >= 2.0
    assert typed(matmul(1, 3, 1, "f16,f16,f32"), a, b).bound.item() < 0.01


def test_integers_have_no_bound(typed):
    a, b = torch.full((1, 2), 100, dtype=torch.int8), torch.full((2, 1), 100, dtype=torch.int8)
    made = typed(matmul(1, 2, 1, "i8,i8,i32"), a, b)
    made = getattr(made, "typed", made)
    assert made.tolist() == [[20000]]


def test_a_running_sum_that_may_overflow(typed):
    a = torch.tensor([[200.0, 200.0, 200.0, 200.0]]).half()
    b = torch.tensor([[200.0], [200.0], [-200.0], [-200.0]]).half()
    made = typed(matmul(1, 4, 1, "f16,f16,f16"), a, b)
    assert made.typed.item() == 0.0 and made.bound.item() == math.inf


def test_a_sum_of_ones(typed):
    """Exact whatever the order, below 2^24; the bound knows nothing of it: λ√(n + 1)·u·n or so."""
    made = typed(reduction(1, 100, "f32"), torch.ones(1, 100))
    assert made.typed.item() == 100.0
    assert 0 < made.bound.item() <= 102 * 101 * U


def test_what_terms_bring_with_them_adds_up(typed):
    x = torch.ones(1, 4)
    made = typed(reduction(1, 4, "f32"), Typed(x.double(), x, torch.tensor([[0.1, 0.2, 0.3, 0.4]])))
    assert made.bound.item() == pytest.approx(1.0, rel=1e-4)


def test_a_maximum_has_the_greatest_bound(typed):
    x = torch.tensor([[1.0, 5.0, 3.0]])
    made = typed(reduction(1, 3, "f32", "max"), Typed(x.double(), x, torch.tensor([[0.25, 0.0, 0.5]])))
    assert (made.typed.item(), made.bound.item()) == (5.0, 0.5)
    assert typed(reduction(1, 3, "f32", "max"), x).bound is None


NARROWED = """
func.func @main(%a: tensor<1x2xf32>, %b: tensor<2x1xf32>) -> tensor<1x1xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x1xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<1x1xf32>) -> tensor<1x1xf32>
  %y = linalg.generic {
      indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>,
                       affine_map<(i, j, k) -> (i, j)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<1x2xf32>, tensor<2x1xf32>) outs(%init : tensor<1x1xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %n = arith.truncf %p : f32 to TYPE
    %w = arith.extf %n : TYPE to f32
    %m = arith.mulf %w, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<1x1xf32>
  return %y : tensor<1x1xf32>
}
"""


@pytest.mark.parametrize(("element", "doubt"), [("f16", 0.0), ("bf16", 3 * 2.0**-13)])
def test_operands_narrowed_in_the_body(typed, element, doubt):
    """(1 + 2^-13)·1 + (1 + 2^-13)·2 is 3 in the narrow type; in bf16 the narrowing may be left out."""
    a, b = torch.full((1, 2), 1 + 2.0**-13), torch.tensor([[1.0], [2.0]])
    made = typed(NARROWED.replace("TYPE", element), a, b)
    assert made.typed.item() == 3.0 and made.exact.item() == 3 * (1 + 2.0**-13)
    assert made.bound.item() == pytest.approx(doubt, abs=20 * U)


def test_stripes_make_no_difference(typed, monkeypatch):
    x, y = torch.randn(100), torch.randn(100)
    text = elementwise("    %m = arith.mulf %a, %b : E\n    %r = arith.addf %m, %b : E", 100, "f32")
    whole = typed(text, x, y)
    monkeypatch.setattr("numtrace.evaluate.typed.structured.STRIPE", 7)
    striped = typed(text, x, y)
    assert torch.equal(whole.typed, striped.typed) and torch.equal(whole.bound, striped.bound)


def test_no_terms_at_all(typed):
    made = typed(matmul(1, 0, 1, "f32,f32,f32"), torch.ones(1, 0), torch.ones(0, 1))
    assert made.typed.item() == 0.0


def test_a_bound_is_in_float32_and_of_the_results_shape(typed):
    made = typed(matmul(2, 2, 2, "f16,f16,f16"), A.half(), B.half())
    assert made.bound.dtype == torch.float32 and made.bound.shape == (2, 2)
    assert made.bound[0, 0].item() == close(made.bound[0, 0].item())


REFLECTED = """
func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %e = tensor.empty() : tensor<3xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (-i + 2)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]} ins(%x : tensor<3xf32>) outs(%e : tensor<3xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<3xf32>
  return %r : tensor<3xf32>
}
"""


def test_a_bound_is_walked_backwards_with_its_value(typed):
    x = torch.tensor([1.0, 2.0, 3.0])
    made = typed(REFLECTED, Typed(x.double() + 0.5, x, torch.tensor([0.1, 0.2, 0.4]), False))
    assert made.exact.tolist() == [3.5, 2.5, 1.5]
    assert made.typed.tolist() == [3.0, 2.0, 1.0]
    assert torch.equal(made.bound, torch.tensor([0.4, 0.2, 0.1]))
