import math

import numpy as np
import pytest
import torch

UNARY = """
util.func public @main(%a: tensor<{n}xf64>) -> tensor<{n}x{result}> {{
  %0 = {op} %a : tensor<{n}xf64>{to}
  util.return %0 : tensor<{n}x{result}>
}}
"""
POINTS = [0.0, 0.1, 0.5, 0.9]


def unary(evaluate, op, values, result="f64", to=""):
    text = UNARY.format(op=op, n=len(values), result=result, to=to)
    return evaluate(text, torch.tensor(values, dtype=torch.float64))[0]


@pytest.mark.parametrize(
    "name",
    [
        "exp",
        "expm1",
        "log1p",
        "sqrt",
        "tanh",
        "sinh",
        "cosh",
        "sin",
        "cos",
        "tan",
        "asin",
        "acos",
        "atan",
        "asinh",
        "atanh",
        "erf",
        "erfc",
        "floor",
        "ceil",
        "trunc",
        "cbrt",
    ],
)
def test_functions(evaluate, name):
    result = unary(evaluate, f"math.{name}", POINTS)
    np.testing.assert_allclose(result.numpy(), [getattr(math, name)(x) for x in POINTS], rtol=4e-16, atol=0)


@pytest.mark.parametrize("name", ["log", "log10", "exp2", "rsqrt", "absf", "acosh"])
def test_functions_of_numbers_from_one_on(evaluate, name):
    functions = {"rsqrt": lambda x: 1 / math.sqrt(x), "absf": abs}
    points = [1.0, 1.5, 10.0]
    result = unary(evaluate, f"math.{name}", points)
    expected = [functions.get(name, getattr(math, name, None))(x) for x in points]
    np.testing.assert_allclose(result.numpy(), expected, rtol=4e-16, atol=0)


def test_cbrt_of_negative_and_special_numbers(evaluate):
    result = unary(evaluate, "math.cbrt", [-27.0, 0.0, math.inf, math.nan])
    np.testing.assert_array_equal(result.numpy(), [-3.0, 0.0, math.inf, math.nan])


def test_roundings_of_halves(evaluate):
    halves = [0.5, 1.5, 2.5, -0.5, -2.5, 0.49999999999999994]
    assert unary(evaluate, "math.roundeven", halves).tolist() == [0, 2, 2, -0.0, -2, 0]
    assert unary(evaluate, "math.round", halves).tolist() == [1, 2, 3, -1, -3, 0]


def test_classification(evaluate):
    values = [1.0, math.inf, math.nan]
    assert unary(evaluate, "math.isnan", values, "i1").tolist() == [False, False, True]
    assert unary(evaluate, "math.isinf", values, "i1").tolist() == [False, True, False]
    assert unary(evaluate, "math.isfinite", values, "i1").tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("op", "expected"),
    [("math.powf", 9.0), ("math.atan2", math.atan2(3.0, 2.0)), ("math.copysign", 3.0)],
)
def test_functions_of_two_numbers(evaluate, op, expected):
    text = f"""
    util.func public @main(%a: f64, %b: f64) -> f64 {{
      %0 = {op} %a, %b : f64
      util.return %0 : f64
    }}
    """
    (result,) = evaluate(text, torch.tensor(3.0).double(), torch.tensor(2.0).double())
    assert result.item() == pytest.approx(expected, rel=4e-16)


def test_functions_of_three_numbers(evaluate):
    text = """
    util.func public @main(%a: f64, %b: f64, %c: f64) -> (f64, f64) {
      %0 = math.fma %a, %b, %c : f64
      %1 = math.clampf %a to [%b, %c] : f64
      util.return %0, %1 : f64, f64
    }
    """
    results = evaluate(text, *(torch.tensor(x).double() for x in (5.0, 2.0, 4.0)))
    assert [result.item() for result in results] == [14.0, 4.0]


def test_logarithms_of_powers_of_two(evaluate):
    assert unary(evaluate, "math.log2", [0.125, 1.0, 1024.0]).tolist() == [-3.0, 0.0, 10.0]


def test_functions_with_whole_numbers(evaluate):
    """-2^31 has no positive in 32 bits: it wraps to itself."""
    text = """
    util.func public @main(%a: tensor<3xf64>, %b: tensor<3xi32>) -> (tensor<3xf64>, tensor<3xi32>) {
      %0 = math.fpowi %a, %b : tensor<3xf64>, tensor<3xi32>
      %1 = math.absi %b : tensor<3xi32>
      util.return %0, %1 : tensor<3xf64>, tensor<3xi32>
    }
    """
    powers = torch.tensor([3, -2, -(2**31)], dtype=torch.int32)
    made, sizes = evaluate(text, torch.tensor([-2.0, 4.0, 1.0]).double(), powers)
    assert made.tolist() == [-8.0, 0.0625, 1.0]
    assert sizes.tolist() == [3, 2, -(2**31)]
