"""What the report says of an output, against values worked out by hand."""

from __future__ import annotations

import subprocess
import sys

import torch

from numtrace.attribute.outputs import output_record


def f64(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def tolerance(atol: float, rtol: float = 0.0) -> dict:
    return {"atol": atol, "rtol": rtol, "psnr_db": None, "image": False}


def test_a_tolerance_is_for_the_distance_from_the_reference() -> None:
    record = output_record(f64(1.0, 2.5), f64(1.0, 2.0), dtype="f32", tolerance=tolerance(0.4))
    assert record["max_abs"] == 0.5 and record["allclose"] is False
    assert output_record(f64(1.0, 2.5), f64(1.0, 2.0), dtype="f32", tolerance=tolerance(0.6))["allclose"]


def test_of_an_output_that_something_is_expected_of_it_is_for_that_distance() -> None:
    # bf16 has no number between 2.0 and 2.015625: an output of it is right, and half an ulp from the exact value.
    made, exact = f64(2.015625), f64(2.0078125)
    record = output_record(made, exact, dtype="bf16", golden=made.clone(), tolerance=tolerance(1e-3))
    assert record["max_abs"] == 0.0078125 and record["golden_max_abs"] == 0.0 and record["allclose"]
    other = output_record(made, exact, dtype="bf16", golden=f64(2.0), tolerance=tolerance(1e-3))
    assert other["golden_max_abs"] == 0.015625 and not other["allclose"]
    near = output_record(made, made, dtype="bf16", golden=f64(2.0), tolerance=tolerance(1e-3))
    assert not near["allclose"]


def test_an_overflow_may_be_expected() -> None:
    inf, nan = float("inf"), float("nan")
    record = output_record(f64(inf, 1.0), f64(70000.0, 1.0), dtype="f16", golden=f64(inf, 1.0))
    assert record["disagreeing"] == 1 and record["as_golden"]
    assert not output_record(f64(inf, 1.0), f64(70000.0, 1.0), dtype="f16", golden=f64(nan, 1.0))["as_golden"]
    assert not output_record(f64(inf, 1.0), f64(70000.0, 1.0), dtype="f16")["as_golden"]


def test_a_record_is_made_without_symbolic_mathematics() -> None:
    """sympy, which some functions of torch load when they are called, takes longer than a small program's run."""
    code = (
        "import sys, torch; from numtrace.attribute.terms import site_terms; a = torch.ones(2, dtype=torch.float64);"
        "assert site_terms(torch.tensor([1.5, 1.0]), a, a, a, 'f32')['total']['at'] == [0];"
        "assert 'sympy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
