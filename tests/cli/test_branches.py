"""Branches and loops of the frontends' dialects: what they hold are ops in their own right."""

from __future__ import annotations

import numpy as np
import pytest
from commands import inside

CASE = """
func.func @main(%i: tensor<i32>, %x: tensor<3xf32>) -> tensor<3xf32> {
  %chosen = "stablehlo.case"(%i) ({
    %a = stablehlo.exponential %x : tensor<3xf32>
    stablehlo.return %a : tensor<3xf32>
  }, {
    %a = stablehlo.negate %x : tensor<3xf32>
    stablehlo.return %a : tensor<3xf32>
  }, {
    %a = stablehlo.multiply %x, %x : tensor<3xf32>
    stablehlo.return %a : tensor<3xf32>
  }) : (tensor<i32>) -> tensor<3xf32>
  %y = stablehlo.tanh %chosen : tensor<3xf32>
  return %y : tensor<3xf32>
}
"""

#: Newton's iteration for the square root, until two steps in turn differ by less than 1e-3.
NEWTON = """
func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %half = stablehlo.constant dense<0.5> : tensor<f32>
  %enough = stablehlo.constant dense<1.0e-3> : tensor<f32>
  %r:2 = stablehlo.while(%v = %x, %e = %one) : tensor<f32>, tensor<f32> cond {
    %go = stablehlo.compare GT, %e, %enough : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %q = stablehlo.divide %x, %v : tensor<f32>
    %s = stablehlo.add %q, %v : tensor<f32>
    %n = stablehlo.multiply %s, %half : tensor<f32>
    %d = stablehlo.subtract %n, %v : tensor<f32>
    %a = stablehlo.abs %d : tensor<f32>
    stablehlo.return %n, %a : tensor<f32>, tensor<f32>
  }
  return %r#0 : tensor<f32>
}
"""

COND_IF = """
func.func @main(%i: tensor<i1>, %x: tensor<3xf32>) -> tensor<3xf32> {
  %z = "tosa.const"() {values = dense<0.0> : tensor<1xf32>} : () -> tensor<1xf32>
  %y = tosa.cond_if %i : tensor<i1> -> tensor<3xf32> {
    %a = tosa.exp %x : (tensor<3xf32>) -> tensor<3xf32>
    tosa.yield %a : tensor<3xf32>
  } else {
    %a = tosa.negate %x, %z, %z : (tensor<3xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<3xf32>
    tosa.yield %a : tensor<3xf32>
  }
  %t = tosa.tanh %y : (tensor<3xf32>) -> tensor<3xf32>
  return %t : tensor<3xf32>
}
"""


@pytest.mark.parametrize(
    ("program", "inputs", "expected"),
    [
        (CASE, ("i32=0", "3xf32=0,1,-1"), np.tanh(np.exp([0, 1, -1]))),
        (CASE, ("i32=2", "3xf32=0,1,-1"), np.tanh([0.0, 1, 1])),
        (NEWTON, ("f32=10",), np.sqrt(10)),
        (COND_IF, ("i1=1", "3xf32=0,1,-1"), np.tanh(np.exp([0, 1, -1]))),
        (COND_IF, ("i1=0", "3xf32=0,1,-1"), np.tanh([0.0, -1, 1])),
    ],
    ids=["case-0", "case-2", "while", "if", "else"],
)
def test_what_is_in_a_branch_is_judged_by_itself(tmp_path, program, inputs, expected):
    (tmp_path / "model.mlir").write_text(program)
    given = [argument for spec in inputs for argument in ("--input", spec)]
    result = inside("run", "model.mlir", *given, "--json", "--out", "run", cwd=tmp_path)
    assert result.code == 0, result.err
    (variant,) = result.document["variants"]
    assert variant["verdict"] == "ok"
    made = np.load(tmp_path / "run" / "variants" / "baseline" / "exact0.npy")
    # Newton's last step, of less than 1e-3, squares the error over twice the root: 1.6e-7.
    assert made == pytest.approx(expected, rel=0, abs=2e-7 if program is NEWTON else 1e-12)
