"""Maps that walk backwards, or with floordiv and mod: against indices worked out by hand, and torch."""

import pytest
import torch
from iree.compiler import ir

from numtrace.errors import UncoveredOp, UndefinedResult
from numtrace.evaluate.read_out import ReadOut


def way(text: str) -> ReadOut | None:
    with ir.Context():
        return ReadOut.of(ir.AffineMapAttr(ir.Attribute.parse(f"affine_map<{text}>")).value)


def moving(source: str, to: str, read: str, written: str = "(i, j) -> (i, j)") -> str:
    """A program that reads a tensor by one map and writes by another."""
    return f"""
    util.func public @main(%x: {source}) -> {to} {{
      %e = tensor.empty() : {to}
      %r = linalg.generic {{indexing_maps = [affine_map<{read}>, affine_map<{written}>],
          iterator_types = ["parallel", "parallel"]}} ins(%x : {source}) outs(%e : {to}) {{
      ^bb0(%in: f32, %out: f32):
        linalg.yield %in : f32
      }} -> {to}
      util.return %r : {to}
    }}
    """


@pytest.mark.parametrize("text", ["(i, j) -> (j, i)", "(i, j) -> (2 * i + j, 3)", "(i)[s] -> (i + s)"])
def test_what_a_view_walks_is_not_read_out(text):
    assert way(text) is None


@pytest.mark.parametrize(
    ("text", "sizes", "expected"),
    [
        ("(i, j) -> (-j + 3)", [9, 3], [3, 2, 1]),
        ("(i) -> (i floordiv 2)", [5], [0, 0, 1, 1, 2]),
        ("(i) -> (i mod 3)", [5], [0, 1, 2, 0, 1]),
        ("(i) -> (i ceildiv 2)", [5], [0, 1, 1, 2, 2]),
        # 2i - j + 1 over j, by i
        ("(i, j) -> (i * 2 - j + 1)", [2, 2], [[1, 0], [3, 2]]),
        # torch's remainder of a negative number is not C's
        ("(i) -> ((i - 2) mod 3)", [3], [1, 2, 0]),
        ("(i) -> ((i - 2) floordiv 2 + 1)", [3], [0, 0, 1]),
    ],
)
def test_elements_that_are_read(text, sizes, expected):
    read = way(text)
    assert read(torch.arange(6), sizes).tolist() == expected


def test_a_read_outside_of_the_operand_has_no_result():
    with pytest.raises(UndefinedResult, match="reads elements -1 to 1 of a dimension of size 6"):
        way("(i) -> (-i + 1)")(torch.arange(6), [3])


def test_a_reflection(evaluate):
    x = torch.arange(6.0).reshape(2, 3)
    (made,) = evaluate(moving("tensor<2x3xf32>", "tensor<2x3xf32>", "(i, j) -> (i, -j + 2)"), x)
    assert made.tolist() == [[2.0, 1.0, 0.0], [5.0, 4.0, 3.0]]


def test_an_upsampling(evaluate, small_stripes):
    """Each element twice along both dimensions; the sizes of the loops follow from the output."""
    x = torch.randn(3, 4)
    program = moving("tensor<3x4xf32>", "tensor<6x8xf32>", "(i, j) -> (i floordiv 2, j floordiv 2)")
    (made,) = evaluate(program, x)
    assert made.tolist() == torch.nn.functional.interpolate(x[None, None], scale_factor=2)[0, 0].tolist()


def test_an_output_that_is_written_backwards_is_uncovered(evaluate):
    program = moving("tensor<2x3xf32>", "tensor<2x3xf32>", "(i, j) -> (i, j)", "(i, j) -> (i, -j + 2)")
    with pytest.raises(UncoveredOp, match="backwards"):
        evaluate(program, torch.zeros(2, 3))


#: True convolution: the filter is walked backwards.
CONVOLVED = """
util.func public @main(%x: tensor<6xf32>, %f: tensor<3xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  %s = linalg.fill ins(%zero : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %i = tensor.empty() : tensor<3xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(o, k) -> (o + k)>, affine_map<(o, k) -> (-k + 2)>,
      affine_map<(o, k) -> (k)>, affine_map<(o, k) -> (o)>], iterator_types = ["parallel", "reduction"]}
      ins(%x, %f, %i : tensor<6xf32>, tensor<3xf32>, tensor<3xf32>) outs(%s : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %acc: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %acc, %p : f32
    linalg.yield %t : f32
  } -> tensor<4xf32>
  util.return %r : tensor<4xf32>
}
"""


def test_a_contraction_of_what_is_walked_backwards(evaluate):
    """[1 2 3 4 5 6] convolved with [1 0 -1], where the filter fits: x[o + 2] - x[o] = 2 each."""
    x, f = torch.arange(1.0, 7.0), torch.tensor([1.0, 0.0, -1.0])
    (made,) = evaluate(CONVOLVED, x, f)
    assert made.tolist() == [2.0] * 4
    (made,) = evaluate(CONVOLVED, x, torch.tensor([100.0, 10.0, 1.0]))
    assert made.tolist() == [321.0, 432.0, 543.0, 654.0]
