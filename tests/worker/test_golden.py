"""What is expected of an output, against the reference."""

from __future__ import annotations

import torch

from numtrace.worker.golden import golden_record

#: An output that nothing was expected of.
COMPILED = {"golden_max_abs": None, "as_golden": False}


def f64(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def record(golden: torch.Tensor, reference: torch.Tensor, element: str) -> dict:
    found = golden_record([golden], [reference], [element], None, [COMPILED])
    assert found is not None
    return found


def test_a_golden_near_the_reference_is_not_off() -> None:
    found = record(f64(1.0, 2.001), f64(1.0, 2.0), "f32")
    assert not found["off"] and found["disagreeing"] == 0
    assert abs(found["max_abs"] - 0.001) < 1e-12


def test_a_golden_of_another_size_is_off() -> None:
    assert record(f64(1.0, 3.0), f64(1.0, 2.0), "f32")["off"]


def test_what_the_type_of_the_output_overflows_to_is_not_off() -> None:
    # 65504 is the largest f16.
    found = record(f64(1.0, float("inf")), f64(1.0, 70000.0), "f16")
    assert not found["off"] and found["disagreeing"] == 0
    assert record(f64(1.0, float("inf")), f64(1.0, 70000.0), "f32")["off"]


def test_without_a_golden_there_is_nothing_to_say() -> None:
    assert golden_record([None], [f64(1.0)], ["f32"], None, [COMPILED]) is None


def test_integers_are_not_rounded() -> None:
    assert record(f64(458.0), f64(457.0), "i32")["off"]
    assert not record(f64(457.0), f64(457.0), "i32")["off"]


def test_a_golden_beside_the_compiled_output_is_its() -> None:
    """1 away from the reference, and from what was compiled 1e-3, or 0.5, or another number of NaN."""

    def as_compiled(**compiled: object) -> bool:
        found = golden_record([f64(3.0)], [f64(2.0)], ["f32"], None, [compiled])
        assert found is not None
        return found["as_compiled"]

    assert as_compiled(golden_max_abs=1e-3, as_golden=True)
    assert not as_compiled(golden_max_abs=0.5, as_golden=True)
    assert not as_compiled(golden_max_abs=1e-3, as_golden=False)


def test_a_golden_that_is_not_off_is_nobodys() -> None:
    compiled = {"golden_max_abs": 0.0, "as_golden": True}
    found = golden_record([f64(2.0 + 2e-8)], [f64(2.0)], ["f32"], None, [compiled])
    assert found is not None and not found["off"] and not found["as_compiled"]


def test_a_nan_that_both_have_says_nothing_of_another_output() -> None:
    """Of output 0 the golden and what was compiled are NaN, the reference is 1. Of output 1 the golden is right."""
    goldens, references = [f64(float("nan")), f64(2.0 + 1e-8)], [f64(1.0), f64(2.0)]

    def as_compiled(second: float) -> bool:
        first = {"golden_max_abs": None, "as_golden": True}
        records = [first, {"golden_max_abs": abs(second - 2.0 - 1e-8), "as_golden": True}]
        found = golden_record(goldens, references, ["f32", "f32"], None, records)
        assert found is not None and found["off"]
        return found["as_compiled"]

    assert as_compiled(2.0 - 1e-8)
    assert not as_compiled(2.5)
