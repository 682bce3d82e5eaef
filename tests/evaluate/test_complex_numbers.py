"""Complex numbers against Python's own, and as what lies between dispatches."""

import cmath

import pytest
import torch

from numtrace.evaluate.complex_numbers import as_parts, of_parts, part_type
from numtrace.evaluate.tensors import defined, empty
from numtrace.evaluate.types import exact_dtype, tensor_type, widen

A, B = [1 + 2j, -3 - 0.5j, 0.25j], [2 - 1j, 0.5 + 4j, -1 + 1j]


def scalar(body: str, results: str = "complex<f32>") -> str:
    """A program that does ``body`` with %a and %b of each pair of elements."""
    return f"""
    util.func public @main(%x: tensor<3xcomplex<f32>>, %y: tensor<3xcomplex<f32>>) -> tensor<3x{results}> {{
      %e = tensor.empty() : tensor<3x{results}>
      %r = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
          iterator_types = ["parallel"]}} ins(%x, %y : tensor<3xcomplex<f32>>, tensor<3xcomplex<f32>>)
          outs(%e : tensor<3x{results}>) {{
      ^bb0(%a: complex<f32>, %b: complex<f32>, %o: {results}):
        {body}
        linalg.yield %r : {results}
      }} -> tensor<3x{results}>
      util.return %r : tensor<3x{results}>
    }}
    """


@pytest.mark.parametrize(
    ("op", "function"),
    [
        ("complex.add %a, %b", lambda a, b: a + b),
        ("complex.sub %a, %b", lambda a, b: a - b),
        ("complex.mul %a, %b", lambda a, b: a * b),
        ("complex.div %a, %b", lambda a, b: a / b),
        ("complex.neg %a", lambda a, b: -a),
        ("complex.conj %a", lambda a, b: a.conjugate()),
        ("complex.exp %a", lambda a, b: cmath.exp(a)),
        ("complex.log %a", lambda a, b: cmath.log(a)),
        ("complex.sqrt %a", lambda a, b: cmath.sqrt(a)),
        ("complex.sin %a", lambda a, b: cmath.sin(a)),
        ("complex.cos %a", lambda a, b: cmath.cos(a)),
        ("complex.tan %a", lambda a, b: cmath.tan(a)),
        ("complex.tanh %a", lambda a, b: cmath.tanh(a)),
        ("complex.sign %a", lambda a, b: a / abs(a)),
        ("complex.rsqrt %a", lambda a, b: 1 / cmath.sqrt(a)),
        ("complex.pow %a, %b", lambda a, b: a**b),
        ("complex.constant [1.5 : f32, -2.0 : f32] ", lambda a, b: 1.5 - 2j),
    ],
)
def test_ops_on_complex_numbers(evaluate, op, function):
    (made,) = evaluate(scalar(f"%r = {op} : complex<f32>"), torch.tensor(A), torch.tensor(B))
    assert made.dtype == torch.complex128
    for value, a, b in zip(made.tolist(), A, B, strict=True):
        assert cmath.isclose(value, function(a, b), rel_tol=1e-14)


@pytest.mark.parametrize(
    ("op", "function"),
    [("re", lambda a: a.real), ("im", lambda a: a.imag), ("abs", abs), ("angle", cmath.phase)],
)
def test_ops_that_make_real_numbers(evaluate, op, function):
    program = scalar(f"%r = complex.{op} %a : complex<f32>", "f32")
    (made,) = evaluate(program, torch.tensor(A), torch.tensor(B))
    assert made.dtype == torch.float64
    assert made.tolist() == pytest.approx([function(a) for a in A], rel=1e-14)


def test_a_complex_number_of_its_parts(evaluate):
    text = """
    util.func public @main(%a: f32, %b: f32) -> complex<f32> {
      %0 = complex.create %a, %b : complex<f32>
      util.return %0 : complex<f32>
    }
    """
    (made,) = evaluate(text, torch.tensor(1.5), torch.tensor(-2.0))
    assert made.item() == 1.5 - 2j


@pytest.mark.parametrize(("op", "expected"), [("eq", [True, False, True]), ("neq", [False, True, False])])
def test_equality(evaluate, op, expected):
    other = torch.tensor([A[0], A[1].conjugate(), A[2]])
    (made,) = evaluate(scalar(f"%r = complex.{op} %a, %b : complex<f32>", "i1"), torch.tensor(A), other)
    assert made.tolist() == expected


MATMUL = """
util.func public @main(%x: tensor<2x3xcomplex<f32>>, %y: tensor<3x2xcomplex<f32>>) -> tensor<2x2xcomplex<f32>> {
  %zero = complex.constant [0.0 : f32, 0.0 : f32] : complex<f32>
  %e = tensor.empty() : tensor<2x2xcomplex<f32>>
  %f = linalg.fill ins(%zero : complex<f32>) outs(%e : tensor<2x2xcomplex<f32>>) -> tensor<2x2xcomplex<f32>>
  %r = linalg.matmul ins(%x, %y : tensor<2x3xcomplex<f32>>, tensor<3x2xcomplex<f32>>)
      outs(%f : tensor<2x2xcomplex<f32>>) -> tensor<2x2xcomplex<f32>>
  util.return %r : tensor<2x2xcomplex<f32>>
}
"""


def test_a_contraction(evaluate):
    x, y = [A, B], [[1j, 2 + 0j], [1 - 1j, 0.5j], [3 + 0j, -1 - 1j]]
    (made,) = evaluate(MATMUL, torch.tensor(x), torch.tensor(y))
    expected = [[sum(x[i][k] * y[k][j] for k in range(3)) for j in range(2)] for i in range(2)]
    assert made.tolist() == expected


def test_pairs_of_floats_are_complex_numbers(evaluate):
    text = """
    util.func public @main(%x: tensor<2x3x2xf32>) -> (tensor<6xcomplex<f32>>, tensor<4x3xf32>) {
      %0 = flow.tensor.bitcast %x : tensor<2x3x2xf32> -> tensor<6xcomplex<f32>>
      %1 = flow.tensor.bitcast %0 : tensor<6xcomplex<f32>> -> tensor<4x3xf32>
      util.return %0, %1 : tensor<6xcomplex<f32>>, tensor<4x3xf32>
    }
    """
    numbers, floats = evaluate(text, torch.arange(12.0).reshape(2, 3, 2))
    assert numbers.tolist() == [0 + 1j, 2 + 3j, 4 + 5j, 6 + 7j, 8 + 9j, 10 + 11j]
    assert floats.tolist() == torch.arange(12.0).reshape(4, 3).tolist()


def test_parts():
    value = torch.tensor(A)
    assert as_parts(value).tolist() == [[1.0, 2.0], [-3.0, -0.5], [0.0, 0.25]]
    assert as_parts(value.conj()).tolist() == [[1.0, -2.0], [-3.0, 0.5], [0.0, -0.25]]
    assert of_parts(as_parts(value)).tolist() == A
    floats = torch.arange(4.0)
    assert as_parts(floats) is floats


def test_what_is_undefined_is_so_in_both_parts():
    value = empty([2, 3], torch.complex128).clone()
    assert defined(as_parts(value)).any().item() is False
    value[0, 1] = 1 + 1j
    assert defined(as_parts(value)).tolist()[0] == [[False, False], [True, True], [False, False]]
    # What is computed from it is undefined too.
    assert defined(as_parts(value * 2)).tolist()[0][0] == [False, False]


def test_types():
    assert tensor_type("tensor<2x?xcomplex<f32>>") == ((2, None), "complex<f32>")
    assert tensor_type("complex<f64>") == ((), "complex<f64>")
    assert exact_dtype("complex<f32>") == torch.complex128
    assert part_type("complex<f32>") == "f32" and part_type("bf16") == "bf16"
    assert widen(torch.tensor([1j])).dtype == torch.complex128


def test_constants(evaluate):
    """Elements, one for all, and the bytes of many; the bindings have no class for any of them."""
    many = torch.arange(600, dtype=torch.float32) / 7
    text = f"""
    util.func public @main() -> (tensor<1x2xcomplex<f32>>, tensor<3xcomplex<f64>>, tensor<300xcomplex<f32>>) {{
      %0 = arith.constant dense<[[(1.5, -2.0), (0xFF800000, 0.1)]]> : tensor<1x2xcomplex<f32>>
      %1 = arith.constant dense<(0.1, 2.0)> : tensor<3xcomplex<f64>>
      %2 = arith.constant dense<"0x{many.numpy().tobytes().hex()}"> : tensor<300xcomplex<f32>>
      util.return %0, %1, %2 : tensor<1x2xcomplex<f32>>, tensor<3xcomplex<f64>>, tensor<300xcomplex<f32>>
    }}
    """
    few, same, long = evaluate(text)
    assert as_parts(few).tolist() == [[[1.5, -2.0], [-float("inf"), torch.tensor(0.1).item()]]]
    assert same.tolist() == [0.1 + 2j] * 3
    assert torch.equal(as_parts(long).reshape(-1), many.double())


def test_no_complex_numbers(evaluate):
    text = """
    util.func public @main() -> tensor<0xcomplex<f32>> {
      %0 = arith.constant dense<> : tensor<0xcomplex<f32>>
      util.return %0 : tensor<0xcomplex<f32>>
    }
    """
    (made,) = evaluate(text)
    assert made.shape == (0,) and made.is_complex()
