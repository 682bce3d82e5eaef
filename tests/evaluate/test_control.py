import pytest
import torch

from numtrace.errors import UncoveredOp, UndefinedResult
from numtrace.evaluate.tensors import defined


def test_a_loop_carries_its_values(evaluate):
    """x ← 2x + i for i = 1, 3: (2·5 + 1)·2 + 3."""
    text = """
    util.func public @main(%x: tensor<1xf32>, %n: index) -> tensor<1xf32> {
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %two = arith.constant dense<2.0> : tensor<1xf32>
      %0 = scf.for %i = %c1 to %n step %c2 iter_args(%v = %x) -> tensor<1xf32> {
        %1 = arith.mulf %v, %two : tensor<1xf32>
        %2 = arith.index_cast %i : index to i64
        %3 = arith.sitofp %2 : i64 to f32
        %4 = tensor.splat %3 : tensor<1xf32>
        %5 = arith.addf %1, %4 : tensor<1xf32>
        scf.yield %5 : tensor<1xf32>
      }
      util.return %0 : tensor<1xf32>
    }
    """
    assert evaluate(text, torch.tensor([5.0]), torch.tensor(4))[0].tolist() == [25.0]
    assert evaluate(text, torch.tensor([5.0]), torch.tensor(1))[0].tolist() == [5.0]


IF = """
util.func public @main(%x: i64, %c: i1) -> i64 {
  %one = arith.constant 1 : i64
  %0 = scf.if %c -> i64 {
    %1 = arith.addi %x, %one : i64
    scf.yield %1 : i64
  } else {
    %2 = arith.subi %x, %one : i64
    scf.yield %2 : i64
  }
  util.return %0 : i64
}
"""


def test_a_branch(evaluate):
    assert int(evaluate(IF, torch.tensor(5), torch.tensor(True))[0]) == 6
    assert int(evaluate(IF, torch.tensor(5), torch.tensor(False))[0]) == 4
    with pytest.raises(UncoveredOp, match="another for each point"):
        evaluate(IF, torch.tensor(5), torch.tensor([True, False]))


def test_while_doubles_until_it_is_enough(evaluate):
    text = """
    util.func public @main(%x: i64, %n: i64) -> i64 {
      %0 = scf.while (%v = %x) : (i64) -> i64 {
        %c = arith.cmpi slt, %v, %n : i64
        scf.condition(%c) %v : i64
      } do {
      ^bb0(%v: i64):
        %1 = arith.addi %v, %v : i64
        scf.yield %1 : i64
      }
      util.return %0 : i64
    }
    """
    assert int(evaluate(text, torch.tensor(3), torch.tensor(20))[0]) == 24


def test_affine_arithmetic(evaluate):
    """Floor and ceiling of -7 / 4 are -2 and -1, and -7 mod 4 is 1."""
    text = """
    util.func public @main(%d: index, %s: index) -> (index, index, index, index, index) {
      %0 = affine.apply affine_map<(d0)[s0] -> (d0 floordiv s0)>(%d)[%s]
      %1 = affine.apply affine_map<(d0)[s0] -> (d0 ceildiv s0)>(%d)[%s]
      %2 = affine.apply affine_map<(d0)[s0] -> (d0 mod s0 + d0 * 2)>(%d)[%s]
      %3 = affine.min affine_map<(d0)[s0] -> (d0, s0 - 1)>(%d)[%s]
      %4 = affine.max affine_map<(d0)[s0] -> (d0, s0 - 1, 2)>(%d)[%s]
      util.return %0, %1, %2, %3, %4 : index, index, index, index, index
    }
    """
    found = evaluate(text, torch.tensor(-7), torch.tensor(4))
    assert [int(value) for value in found] == [-2, -1, -13, -7, 3]


def test_an_assert_in_a_region_must_hold_at_every_point(evaluate):
    """Rows of [[1, 2], [3, 4], [5, 6]] by index: the loops are evaluated at once, the condition is one for each."""
    text = """
    util.func public @main(%x: tensor<3x2xf32>, %at: tensor<4xi64>) -> tensor<4x2xf32> {
      %empty = tensor.empty() : tensor<4x2xf32>
      %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
                           iterator_types = ["parallel", "parallel"]}
          ins(%at : tensor<4xi64>) outs(%empty : tensor<4x2xf32>) {
      ^bb0(%k: i64, %out: f32):
        %three = arith.constant 3 : i64
        %fits = arith.cmpi slt, %k, %three : i64
        cf.assert %fits, "index out of range"
        %row = arith.index_cast %k : i64 to index
        %column = linalg.index 1 : index
        %v = tensor.extract %x[%row, %column] : tensor<3x2xf32>
        linalg.yield %v : f32
      } -> tensor<4x2xf32>
      util.return %0 : tensor<4x2xf32>
    }
    """
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    rows = evaluate(text, x, torch.tensor([2, 0, 1, 2]))[0]
    assert rows.tolist() == [[5.0, 6.0], [1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    with pytest.raises(UndefinedResult, match="does not hold"):
        evaluate(text, x, torch.tensor([2, 0, 3, 2]))


FORALL = """
util.func public @main(%a: tensor<4x6xf32>, %end: index) -> (tensor<4x6xf32>, tensor<4xf32>) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %first = tensor.empty() : tensor<4xf32>
  %r:2 = scf.forall (%i, %j) = (0, 3) to (%end, 6) step (2, 3)
      shared_outs(%o = %a, %p = %first) -> (tensor<4x6xf32>, tensor<4xf32>) {
    %s = tensor.extract_slice %a[%i, 0] [2, 3] [1, 1] : tensor<4x6xf32> to tensor<2x3xf32>
    %seen = tensor.extract_slice %o[%i, 3] [2, 3] [1, 1] : tensor<4x6xf32> to tensor<2x3xf32>
    %e = tensor.empty() : tensor<2x3xf32>
    %g = linalg.generic {indexing_maps = [affine_map<(x, y) -> (x, y)>, affine_map<(x, y) -> (x, y)>,
        affine_map<(x, y) -> (x, y)>], iterator_types = ["parallel", "parallel"]}
        ins(%s, %seen : tensor<2x3xf32>, tensor<2x3xf32>) outs(%e : tensor<2x3xf32>) {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %m = arith.addf %x, %y : f32
      linalg.yield %m : f32
    } -> tensor<2x3xf32>
    %column = tensor.extract_slice %g[0, 0] [2, 1] [1, 1] : tensor<2x3xf32> to tensor<2xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %g into %o[%i, %j] [2, 3] [1, 1] : tensor<2x3xf32> into tensor<4x6xf32>
      tensor.parallel_insert_slice %column into %p[%i] [2] [1] : tensor<2xf32> into tensor<4xf32>
    }
  }
  util.return %r#0, %r#1 : tensor<4x6xf32>, tensor<4xf32>
}
"""


def test_forall(evaluate):
    """Rows two at a time, up to a bound that is given: the right half becomes the sum of both."""
    a = torch.arange(24.0).reshape(4, 6)
    whole, first = evaluate(FORALL, a, torch.tensor(4))
    expected = a.clone()
    expected[:, 3:] += a[:, :3]
    assert whole.tolist() == expected.tolist()
    assert first.tolist() == [3.0, 15.0, 27.0, 39.0]
    half, first = evaluate(FORALL, a, torch.tensor(2))
    assert half.tolist() == expected[:2].tolist() + a[2:].tolist()
    assert defined(first).tolist() == [True, True, False, False]


def test_points_of_a_forall_do_not_see_each_other(evaluate):
    """Each moves its element one to the right: none of what the one before it wrote is moved on."""
    text = """
    util.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> {
      %r = scf.forall (%i) in (3) shared_outs(%o = %a) -> (tensor<4xf32>) {
        %n = affine.apply affine_map<(d0) -> (d0 + 1)>(%i)
        %s = tensor.extract_slice %o[%i] [1] [1] : tensor<4xf32> to tensor<1xf32>
        scf.forall.in_parallel {
          tensor.parallel_insert_slice %s into %o[%n] [1] [1] : tensor<1xf32> into tensor<4xf32>
        }
      }
      util.return %r : tensor<4xf32>
    }
    """
    (made,) = evaluate(text, torch.tensor([1.0, 2.0, 3.0, 4.0]))
    assert made.tolist() == [1.0, 1.0, 2.0, 3.0]
