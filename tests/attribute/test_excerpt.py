"""The IR of one source op on both sides of a pass."""

from __future__ import annotations

from numtrace.attribute.excerpt import excerpts

BEFORE = """
util.func public @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %0 = arith.negf %a : tensor<4xf32> loc("numtrace.1")
  %1 = arith.subf %0, %b : tensor<4xf32> loc("numtrace.2")
  %2 = arith.mulf %1, %1 : tensor<4xf32> loc("numtrace.2")
  util.return %2 : tensor<4xf32>
}
"""


def test_only_the_ops_that_changed_of_that_source_op_are_shown():
    after = BEFORE.replace("arith.subf", "arith.addf").replace("negf", "absf").replace("absf", "negf")
    old, new = excerpts(BEFORE, after, {2})
    assert old == "%1 = arith.subf %0, %arg1 : tensor<4xf32>"
    assert new == "%1 = arith.addf %0, %arg1 : tensor<4xf32>"


def test_other_source_ops_are_not_shown():
    assert excerpts(BEFORE, BEFORE.replace("arith.negf", "math.absf"), {1}) == (
        "%0 = arith.negf %arg0 : tensor<4xf32>",
        "%0 = math.absf %arg0 : tensor<4xf32>",
    )


def test_swapped_operands_show_all_of_the_op():
    """Names aside nothing has changed, so nothing can be left out."""
    old, new = excerpts(BEFORE, BEFORE.replace("%0, %b", "%b, %0"), {2})
    assert old.splitlines()[0] == "%1 = arith.subf %0, %arg1 : tensor<4xf32>"
    assert new.splitlines()[0] == "%1 = arith.subf %arg1, %0 : tensor<4xf32>"
    assert len(old.splitlines()) == len(new.splitlines()) == 2


def test_what_is_gone_is_shown_on_one_side():
    after = BEFORE.replace('%2 = arith.mulf %1, %1 : tensor<4xf32> loc("numtrace.2")', "").replace("%2", "%1")
    old, new = excerpts(BEFORE, after, {2})
    assert (old, new) == ("%2 = arith.mulf %1, %1 : tensor<4xf32>", "")


def test_operands_that_a_region_swaps_are_shown_beside_what_else_changed():
    """A reshape of the same source op changed too: the swap must not be taken for other names."""
    before = """
#id = affine_map<(d0) -> (d0)>
util.func public @main(%a: tensor<2x2xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tensor.collapse_shape %a [[0, 1]] : tensor<2x2xf32> into tensor<4xf32> loc("numtrace.1")
  %e = tensor.empty() : tensor<4xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%0, %b : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %2 = arith.subf %x, %y : f32
    linalg.yield %2 : f32
  } -> tensor<4xf32> loc("numtrace.1")
  util.return %1 : tensor<4xf32>
}
"""
    reshaped = before.replace(
        "tensor.collapse_shape %a [[0, 1]] : tensor<2x2xf32> into tensor<4xf32>",
        "flow.tensor.reshape %a : tensor<2x2xf32> -> tensor<4xf32>",
    )
    old, new = excerpts(before, reshaped, {1})
    assert "arith.subf" not in old + new
    old, new = excerpts(before, reshaped.replace("subf %x, %y", "subf %y, %x"), {1})
    assert "arith.subf %in, %in_0" in old
    assert "arith.subf %in_0, %in" in new
