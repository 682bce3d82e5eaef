"""The size that differences of exact values are measured by."""

from __future__ import annotations

import torch

from numtrace.attribute.magnitude import largest, sizes


def f64(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def test_largest_is_of_the_finite_elements() -> None:
    assert largest(f64(1.0, -3.0, float("inf"), float("nan"))) == 3.0
    assert largest(f64()) == 0.0
    assert largest(f64(float("nan"))) == 0.0


def test_values_without_a_gap_are_one_group() -> None:
    assert sizes(f64(1.0, 0.1, 1e-4, 1e-9)) == (1.0, 1.0, 0.0)
    assert sizes(f64(0.0, 0.0)) == (0.0, 0.0, 0.0)


def test_masks_do_not_set_the_size_of_the_scores() -> None:
    top, rest, edge = sizes(f64(-1e9, 2.0, -0.5))
    assert (top, rest) == (1e9, 2.0) and 2.0 < edge < 1e9
    top, rest, _ = sizes(f64(-3.4e38, 2.0, -0.5))
    assert (top, rest) == (3.4e38, 2.0)


def test_what_a_cancellation_left_is_no_group_of_its_own() -> None:
    # 1e-16 beside 1 is what float64 leaves of 1 - 1.
    assert sizes(f64(1.0, 1e-16)) == (1.0, 1.0, 0.0)


def test_wide_unsigned_integers_have_a_size() -> None:
    for dtype in (torch.uint16, torch.uint32, torch.uint64):
        value = torch.tensor([3, 2**15 + 1], dtype=dtype)
        assert largest(value) == 32769.0
        assert sizes(value) == (32769.0, 32769.0, 0.0)
