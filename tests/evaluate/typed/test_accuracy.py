"""The table of measured accuracies: its form, and really compiled functions held against it.

Expected function values are known without a library: from identities (exp(0), sin(pi/6), …) or to 17 digits from
tables (Abramowitz and Stegun).
"""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import pytest
import torch

from numtrace.evaluate.formats import ulp
from numtrace.evaluate.typed.accuracy import LIMIT, MEASURED, Accuracy, Interval, accuracy
from numtrace.instrument.compiler import compile_file
from numtrace.instrument.runtime import run_module

INF = math.inf
FLAGS = [
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
]
SAFETY = 1.25  # of the sampled figures


def rows() -> list[tuple[str, str, Accuracy]]:
    return [(name, dtype, row) for name, types in MEASURED.items() for dtype, row in types.items()]


def test_every_function_that_compiles_is_there_in_three_types():
    assert all(set(types) == {"f32", "f16", "bf16"} for types in MEASURED.values())
    assert {"math.exp", "math.tanh", "math.erf", "math.rsqrt", "math.sin", "math.powf"} <= set(MEASURED)
    assert "arith.divf" not in MEASURED  # correctly rounded: the control of the measurement


def test_what_was_not_measured_is_none():
    assert accuracy("math.erfc", "f32") is None  # IREE 3.13 has no code for it
    assert accuracy("math.log10", "bf16") is None  # needs log10f, which IREE does not link
    assert accuracy("math.exp", "f64") is None
    assert accuracy("math.no_such_function", "f32") is None


def test_intervals_are_in_order_and_do_not_overlap():
    for name, dtype, row in rows():
        together = sorted(row.accurate + row.inaccurate, key=lambda interval: interval.low)
        for left, right in itertools.pairwise(together):
            assert left.low < left.high <= right.low, (name, dtype, left, right)


def test_no_bound_hides_a_gross_failure():
    for name, dtype, row in rows():
        assert 0 <= row.ulps <= LIMIT * SAFETY, (name, dtype)
        assert all(interval.ulps >= LIMIT for interval in row.inaccurate), (name, dtype)
        rounding = {"f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8}[dtype]
        assert row.argument <= 2.5 * SAFETY * rounding * 1.05, (name, dtype)  # 1.05: rounded up to two digits


def test_nothing_rounded_to_a_type_is_better_than_half_an_ulp_of_it():
    for name, dtype, row in rows():
        if name != "arith.remf":  # exact by nature
            assert row.ulps >= 0.49, (name, dtype)


def test_bf16_is_computed_in_f32_and_rounded_once():
    exp, tanh, sqrt = (MEASURED[f"math.{name}"]["bf16"] for name in ("exp", "tanh", "sqrt"))
    assert max(exp.ulps, tanh.ulps, sqrt.ulps) <= 0.51


def test_square_root_and_remainder_are_what_ieee_wants():
    assert MEASURED["math.sqrt"]["f32"].ulps <= 0.5 * SAFETY + 0.005
    assert MEASURED["arith.remf"]["f32"].ulps == 0


@pytest.mark.parametrize(
    ("name", "x"),
    [
        ("math.sin", 1e5),  # argument reduction by too few digits of pi
        ("math.cos", 1e5),
        ("math.sin", -1e-6),
        ("math.asinh", -5000.0),  # log(x + sqrt(x² + 1)) of nothing
        ("math.sinh", 1e-6),  # (exp(x) - exp(-x)) / 2
        ("math.atanh", 1e-6),
        ("math.acosh", 1e20),  # x² overflows
        ("math.atan", 0.65),
    ],
)
def test_where_iree_is_known_to_fail_the_bound_stays_the_accurate_one(name: str, x: float):
    row = MEASURED[name]["f32"]
    at = torch.tensor([x], dtype=torch.float64)
    assert row.known_at(at).tolist() == [True]
    assert float(row.ulps_at(at)) == pytest.approx(row.ulps)
    assert row.ulps <= LIMIT * SAFETY


def test_a_bound_is_that_of_the_interval_and_of_the_worse_one_at_a_common_end():
    row = Accuracy((Interval(-4.0, 1.0, 1.5), Interval(1.0, 8.0, 3.0)), (Interval(8.0, INF, 900.0),))
    x = torch.tensor([[-4.0, 0.0, 1.0], [2.0, 100.0, -9.0]])
    assert row.ulps_at(x).tolist() == [[1.5, 1.5, 3.0], [3.0, 3.0, 3.0]]
    assert row.known_at(x).tolist() == [[False, False, False], [False, True, False]]


VALUES = {
    "math.exp": [
        (0.0, 1.0),
        (1.0, 2.718281828459045),
        (-1.0, 0.36787944117144233),
        (10.0, 22026.465794806718),
    ],
    "math.tanh": [(0.5, 0.46211715726000976), (-2.0, -0.9640275800758169), (20.0, 1.0)],
    "math.erf": [(0.5, 0.5204998778130465), (-1.0, -0.8427007929497149), (2.0, 0.9953222650189527)],
    "math.rsqrt": [(4.0, 0.5), (2.0, 0.7071067811865476), (3.0, 0.5773502691896258)],
    "math.log1p": [(1.0, 0.6931471805599453), (-0.5, -0.6931471805599453), (2.0**-20, 9.536738616591883e-07)],
}


def program(dtype: str) -> str:
    functions = ""
    for name in VALUES:
        functions += f"""func.func @{name.partition(".")[2]}(%x: tensor<?x{dtype}>) -> tensor<?x{dtype}> {{
  %y = {name} %x : tensor<?x{dtype}>
  return %y : tensor<?x{dtype}>
}}
"""
    return functions


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_compiled_functions_are_within_the_table(dtype: str, tmp_path: Path):
    (tmp_path / "functions.mlir").write_text(program(dtype))
    compile_file(tmp_path / "functions.mlir", tmp_path / "functions.vmfb", FLAGS)
    native = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}[dtype]
    for name, values in VALUES.items():
        x = torch.tensor([x for x, _ in values], dtype=torch.float64).to(native)
        expected = torch.tensor([y for _, y in values], dtype=torch.float64)
        inside = expected.abs() >= torch.finfo(native).tiny * 1.1
        got = run_module(tmp_path / "functions.vmfb", name.partition(".")[2], [x], []).outputs[0].double()
        row = accuracy(name, dtype)
        assert row is not None and row.argument == 0
        off = (got - expected).abs() / ulp(expected, dtype)
        assert bool((off <= row.ulps_at(x.double()))[inside].all()), (name, off, row.ulps_at(x))


def test_the_bound_of_sin_holds_at_a_zero_of_it(tmp_path: Path):
    """float32(3·pi) is 3·pi + 2.3849761e-8: the error is that of the argument, not a few ulps of the result."""
    (tmp_path / "sin.mlir").write_text(
        "func.func @sin(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
        "  %y = math.sin %x : tensor<2xf32>\n  return %y : tensor<2xf32>\n}\n"
    )
    compile_file(tmp_path / "sin.mlir", tmp_path / "sin.vmfb", FLAGS)
    x = torch.tensor([3 * math.pi, -3 * math.pi])
    expected = torch.tensor([-2.3849761e-8, 2.3849761e-8], dtype=torch.float64)
    got = run_module(tmp_path / "sin.vmfb", "sin", [x], []).outputs[0].double()
    row = MEASURED["math.sin"]["f32"]
    few = row.ulps_at(x) * ulp(expected, "f32")
    error = (got - expected).abs()
    assert not row.known_at(x).any()
    assert bool((error <= few + row.argument * x.double().abs()).all())
    assert bool((error > few).any())  # so the second term is needed
