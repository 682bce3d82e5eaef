"""Bounds of complex arithmetic: worked out by hand, and of what IREE really compiles; u is 2^-24."""

from __future__ import annotations

import pytest
import torch
from judged import Compiled

from numtrace.errors import UncoveredOp
from numtrace.evaluate.complex_numbers import as_parts
from numtrace.evaluate.typed.value import Typed

U = 2.0**-24


def program(body: str, count: int = 1, made: str = "complex<f32>") -> str:
    """``body`` makes %r of %a and %b, elements of two vectors."""
    vector, result = f"tensor<{count}xcomplex<f32>>", f"tensor<{count}x{made}>"
    return f"""
    func.func @main(%x: {vector}, %y: {vector}) -> {result} {{
      %e = tensor.empty() : {result}
      %z = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
          iterator_types = ["parallel"]}} ins(%x, %y : {vector}, {vector}) outs(%e : {result}) {{
      ^bb0(%a: complex<f32>, %b: complex<f32>, %o: {made}):
        {body}
        linalg.yield %r : {made}
      }} -> {result}
      return %z : {result}
    }}
    """


def test_a_product_of_certain_numbers(typed):
    """(1 + 2i)(3 + 4i) = (3 - 8) + (6 + 4)i. The four products may each be off by their rounding, u·3 and u·8,
    u·6 and u·4; a difference that hangs on it by 2u of itself more: 11u + 2·5u and 10u + 2·10u."""
    made = typed(
        program("%r = complex.mul %a, %b : complex<f32>"), torch.tensor([1 + 2j]), torch.tensor([3 + 4j])
    )
    assert made.exact.tolist() == made.typed.tolist() == [-5 + 10j]
    assert as_parts(made.bound)[0].tolist() == pytest.approx([21 * U, 30 * U], rel=1e-5)


def test_a_product_of_numbers_in_doubt(typed):
    """a ± 0.1 in its real part, and nothing else: 0.1·3 in the real part, 0.1·4 in the imaginary."""
    a = torch.tensor([1 + 2j])
    doubtful = Typed(a.to(torch.complex128), a, torch.tensor([0.1 + 0j]))
    made = typed(program("%r = complex.mul %a, %b : complex<f32>"), doubtful, torch.tensor([3 + 4j]))
    assert as_parts(made.bound)[0].tolist() == pytest.approx([0.3, 0.4], rel=1e-4)


def test_each_part_has_its_own_bound(typed):
    """Sums: u of each part for a rounding that may be left out; parts, signs and the conjugate change nothing."""
    a = torch.tensor([1 + 2j])
    doubtful = Typed(a.to(torch.complex128), a, torch.tensor([0.25 + 0.5j]))
    other = torch.tensor([3 - 4j])
    made = typed(program("%r = complex.sub %a, %b : complex<f32>"), doubtful, other)
    assert made.typed.tolist() == [-2 + 6j]
    assert as_parts(made.bound)[0].tolist() == pytest.approx([0.25, 0.5], rel=1e-5)
    conjugate = typed(program("%r = complex.conj %a : complex<f32>"), doubtful, other)
    assert conjugate.bound.tolist() == [0.25 + 0.5j]
    for part, expected in (("re", 0.25), ("im", 0.5)):
        made = typed(program(f"%r = complex.{part} %a : complex<f32>", made="f32"), doubtful, other)
        assert made.bound.tolist() == [expected]


def test_an_absolute_value(typed):
    """|3 + 4i| = 5: the bounds of both parts, and 3.5 roundings of 5 at most."""
    a = torch.tensor([3 + 4j])
    text = program("%r = complex.abs %a : complex<f32>", made="f32")
    made = typed(text, a, a)
    assert made.typed.tolist() == [5.0] and made.bound.item() == pytest.approx(3.5 * 5 * U, rel=1e-5)
    doubtful = Typed(a.to(torch.complex128), a, torch.tensor([0.25 + 0.5j]))
    assert typed(text, doubtful, a).bound.item() == pytest.approx(0.75, rel=1e-5)


def test_a_function_without_a_rule_has_no_bound(typed):
    with pytest.raises(UncoveredOp, match=r"complex\.exp: no error bound"):
        typed(program("%r = complex.exp %a : complex<f32>"), torch.tensor([1j]), torch.tensor([1j]))


def numbers(*shape: int, seed: int) -> torch.Tensor:
    """Of all sizes from 2^-8 to 2^8, so that much of a sum may cancel."""
    draw = torch.Generator().manual_seed(seed)
    size = torch.exp2(torch.rand(shape, generator=draw) * 16 - 8)
    return torch.randn(shape, dtype=torch.complex64, generator=draw) * size


MATMUL = """
func.func @main(%x: tensor<9x70xcomplex<f32>>, %y: tensor<70x5xcomplex<f32>>) -> tensor<9x5xcomplex<f32>> {
  %zero = complex.constant [0.0 : f32, 0.0 : f32] : complex<f32>
  %e = tensor.empty() : tensor<9x5xcomplex<f32>>
  %f = linalg.fill ins(%zero : complex<f32>) outs(%e : tensor<9x5xcomplex<f32>>) -> tensor<9x5xcomplex<f32>>
  %r = linalg.matmul ins(%x, %y : tensor<9x70xcomplex<f32>>, tensor<70x5xcomplex<f32>>)
      outs(%f : tensor<9x5xcomplex<f32>>) -> tensor<9x5xcomplex<f32>>
  return %r : tensor<9x5xcomplex<f32>>
}
"""


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        (
            program("%m = complex.mul %a, %b : complex<f32>\n%r = complex.add %m, %a : complex<f32>", 500),
            (500, 500),
        ),
        (
            program("%m = complex.mul %a, %b : complex<f32>\n%r = complex.abs %m : complex<f32>", 500, "f32"),
            (500, 500),
        ),
        (MATMUL, ((9, 70), (70, 5))),
    ],
)
def test_what_is_compiled_is_within_its_bound(tmp_path, text, shapes):
    """And the bound is no wild one: what a fault of one part in a thousand makes is beyond it."""
    x, y = (
        numbers(*(shape if isinstance(shape, tuple) else (shape,)), seed=seed)
        for seed, shape in enumerate(shapes)
    )
    (site,) = Compiled(text, tmp_path).run(x, y)
    assert 0 < site.near.ratio <= 1
    wrong = site.made * (1 + 1e-3)
    assert type(site)(site.program, site.op, site.operands, wrong, site.index).near.ratio > 1
