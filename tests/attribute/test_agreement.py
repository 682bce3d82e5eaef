"""When an exact value is the source's."""

from __future__ import annotations

import torch

from numtrace.attribute.agreement import agrees, alike


def f64(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def test_within_the_floor_of_the_largest_element() -> None:
    b = f64(1.0, 3.0, 100.0)
    assert agrees(b + f64(9e-10, 0.0, 0.0), b)  # 1e-11 of 100
    assert not agrees(b + f64(2e-9, 0.0, 0.0), b)


def test_beyond_the_range_of_float32() -> None:
    assert agrees(f64(1e60, float("inf"), 1.0), f64(1e60, float("inf"), 1.0))
    assert not agrees(f64(1e60, float("inf"), 1.0), f64(2e60, float("inf"), 1.0))
    assert not agrees(f64(1e60, 1.0, 1.0), f64(1e60, float("inf"), 1.0))


def test_small_values_beside_a_sentinel_have_a_size_of_their_own() -> None:
    b = f64(1e20, 1e-36, 3e-36, 8e-36)
    assert agrees(b * (1 + 2.0**-51), b)
    assert alike(b + f64(0.0, 1e-40, 0.0, 0.0), b).tolist() == [True, False, True, True]
