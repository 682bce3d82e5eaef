"""Bounds through loops: a sum that is split among the points of one, as compiled and by hand."""

from __future__ import annotations

import pytest
import torch
from judged import Compiled

from numtrace.evaluate.dispatch import entry_point

SPLIT = """
func.func @main(%a: tensor<8x4096xf32>) -> tensor<8xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]} ins(%a : tensor<8x4096xf32>) outs(%f : tensor<8xf32>)
      attrs = {iree_linalg_ext.split_reduction = [1024 : index]} {
  ^bb0(%x: f32, %acc: f32):
    %s = arith.addf %x, %acc : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}
"""


def test_a_sum_that_is_split_is_within_its_bound(tmp_path):
    program = Compiled(SPLIT, tmp_path)
    a = torch.randn(8, 4096, generator=torch.Generator().manual_seed(0))
    parts, whole = program.run(a)
    assert any(
        op.name == "scf.forall" for op in program.program.executables[entry_point(parts.op)].regions[0].ops
    )
    assert torch.equal(parts.typed().exact, a.double().reshape(8, 4, 1024).sum(-1))
    assert 0 < parts.near.ratio <= 1 and whole.near.ratio <= 1
    wrong = parts.made + 1e-2
    assert type(parts)(parts.program, parts.op, parts.operands, wrong, 0).near.ratio > 1


def test_the_bound_of_what_is_put_in(typed):
    """One of two elements is doubled, with u of 6 and none of the other."""
    text = """
    func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
      %r = scf.forall (%i) in (1) shared_outs(%o = %a) -> (tensor<2xf32>) {
        %s = tensor.extract_slice %a[%i] [1] [1] : tensor<2xf32> to tensor<1xf32>
        %e = tensor.empty() : tensor<1xf32>
        %g = linalg.generic {indexing_maps = [affine_map<(x) -> (x)>, affine_map<(x) -> (x)>],
            iterator_types = ["parallel"]} ins(%s : tensor<1xf32>) outs(%e : tensor<1xf32>) {
        ^bb0(%x: f32, %y: f32):
          %m = arith.addf %x, %x : f32
          linalg.yield %m : f32
        } -> tensor<1xf32>
        scf.forall.in_parallel {
          tensor.parallel_insert_slice %g into %o[%i] [1] [1] : tensor<1xf32> into tensor<2xf32>
        }
      }
      return %r : tensor<2xf32>
    }
    """
    made = typed(text, torch.tensor([3.0, 5.0]))
    assert made.typed.tolist() == made.exact.tolist() == [6.0, 5.0]
    assert made.bound.tolist() == pytest.approx([6 * 2.0**-24, 0.0], rel=1e-5)
