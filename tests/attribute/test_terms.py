"""The terms of a site against values worked out by hand."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from numtrace.attribute import terms
from numtrace.attribute.terms import ADDITIVITY_BOUND, site_terms
from numtrace.evaluate.tensors import empty


def f64(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def test_each_term_is_its_own_difference() -> None:
    record = site_terms(torch.tensor([1.5, 2.0]), f64(1.25, 2.0), f64(1.0, 2.5), f64(1.0, 2.0), "f32")
    assert record["introduced"]["max_abs"] == 0.25 and record["introduced"]["at"] == [0]
    assert record["inherited"]["max_abs"] == 0.5 and record["inherited"]["at"] == [1]
    assert record["semantic"]["max_abs"] == 0.5 and record["semantic"]["mean_abs"] == 0.25
    assert record["total"]["max_abs"] == 0.5
    assert record["total"]["rel_l2"] == 0.5 / 5**0.5  # the reference's norm is √(1 + 4)
    assert record["additivity"] == 0.0
    # |1.5 − 1| in ulps of 1.0 at f32: 0.5 / 2^-23
    assert record["total"]["max_ulp"] == 2.0**22


def test_elements_that_are_not_finite_in_all_terms_are_counted_and_left_out() -> None:
    nan, inf = float("nan"), float("inf")
    compiled = torch.tensor([nan, inf, 1.0, 3.0])
    exact = f64(5.0, 5.0, 1.0, 2.0)
    record = site_terms(compiled, exact, exact, exact, "f32")
    assert (record["total"]["nan"], record["total"]["inf"]) == (1, 1)
    assert (record["inherited"]["nan"], record["inherited"]["inf"]) == (0, 0)
    assert record["total"]["max_abs"] == 1.0 and record["total"]["mean_abs"] == 0.5


def test_nothing_finite_is_no_number() -> None:
    record = site_terms(torch.tensor([float("nan")]), f64(1.0), f64(1.0), f64(1.0), "f32")
    assert record["total"]["max_abs"] is None and record["total"]["nan"] == 1


def test_undefined_elements_are_left_out_of_every_term() -> None:
    exact = empty((3,), torch.float64).clone()
    exact[0] = 1.0
    record = site_terms(torch.tensor([2.0, 99.0, 99.0]), exact, exact, exact, "f32")
    assert record["total"]["max_abs"] == 1.0 and record["total"]["nan"] == 0
    assert record["total"]["mean_abs"] == 1.0


def test_no_elements() -> None:
    none = torch.zeros(0, dtype=torch.float64)
    record = site_terms(torch.zeros(0), none, none, none, "f32")
    assert record["total"]["max_abs"] == 0.0 and record["total"]["at"] is None


def test_blocks_change_nothing(monkeypatch) -> None:
    torch.manual_seed(0)
    values = [torch.randn(5, 7, dtype=torch.float64) for _ in range(4)]
    whole = site_terms(*values, "f64")
    monkeypatch.setattr(terms, "_BLOCK", 4)
    blocks = site_terms(*values, "f64")
    for name in ("total", "introduced", "inherited", "semantic"):
        assert whole[name]["max_abs"] == blocks[name]["max_abs"] and whole[name]["at"] == blocks[name]["at"]
        assert abs(whole[name]["rel_l2"] - blocks[name]["rel_l2"]) < 1e-15


def test_integers() -> None:
    record = site_terms(
        torch.tensor([3, 5]), torch.tensor([3, 4]), torch.tensor([3, 4]), torch.tensor([3, 4]), "i64"
    )
    assert record["introduced"]["max_abs"] == 1.0 and record["introduced"]["max_ulp"] is None


def test_additivity_is_the_greatest_residual_in_eps_of_the_largest_term() -> None:
    # total = introduced = 1 (1 + 2^-53 rounds to even), inherited = -2^-53, semantic = 0: off by 2^-53
    assert site_terms(f64(1.0), f64(-(2.0**-53)), f64(0.0), f64(0.0), "f64")["additivity"] == 0.5
    # 2^60 + 64 rounds to 2^60: off by 64, a quarter of 2^60 eps; the other element, 1 = 2 + 0 - 1, adds up
    values = f64(2.0**60, 3.0), f64(-64.0, 1.0), f64(0.0, 1.0), f64(0.0, 2.0)
    assert site_terms(*values, "f64")["additivity"] == 0.25


def test_a_sum_that_does_not_hold_is_seen() -> None:
    # off by 1, the largest term is 4: 1/4 in units of 2^-52
    assert (
        terms._residual(
            "total",
            {"total": f64(0.0, 4.0), "introduced": f64(0.0, 1.0), "inherited": f64(0.0, 2.0)},
            ("total", "introduced", "inherited"),
        )
        == 2.0**50
    )


FINITE = st.floats(-1e100, 1e100)


@given(st.lists(st.tuples(FINITE, FINITE, FINITE, FINITE), min_size=1, max_size=12))
@settings(max_examples=300, deadline=None)
def test_terms_of_shared_operands_add_up_within_the_bound(rows: list[tuple[float, ...]]) -> None:
    operands = [f64(*column) for column in zip(*rows, strict=True)]
    assert site_terms(*operands, "f64")["additivity"] <= ADDITIVITY_BOUND


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(-8, 8), min_size=4, max_size=4))
@settings(max_examples=100, deadline=None)
def test_terms_of_operands_with_random_digits_add_up_within_the_bound(seed: int, scales: list[int]) -> None:
    generator = torch.Generator().manual_seed(seed)
    operands = [torch.randn(5000, dtype=torch.float64, generator=generator) * 2.0**scale for scale in scales]
    assert site_terms(*operands, "f64")["additivity"] <= ADDITIVITY_BOUND
