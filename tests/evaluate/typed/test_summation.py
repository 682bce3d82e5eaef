"""Bounds of sums, worked out by hand; u is 2^-24 of f32, 2^-11 of f16."""

from __future__ import annotations

import math

import pytest
import torch

from numtrace.evaluate.typed.summation import Summation

U = 2.0**-24
TINY = 2.0**-126


def bound(sizes: float, total: float, summation: Summation, inherited: float | None = None) -> float:
    given = None if inherited is None else torch.tensor([inherited])
    return float(summation.bound(torch.tensor([sizes]), torch.tensor([total]), given)[0])


def close(value: float):
    return pytest.approx(value, rel=1e-4)


def test_growth_that_holds_for_any_rounding_errors_is_n_u():
    assert Summation(64, 1, ["f32"], True).growth == 64 * U
    assert Summation(10**9, 1, ["f32"], True).growth == 10**9 * U  # without a restriction on n
    assert Summation(64, 1, ["f16", "f32"], True).growth == 64 * 2.0**-11  # the coarsest of the types


def test_probable_growth_goes_with_the_root():
    """λ = √(2·ln(4·N·2^30)), 6.66044 for one sum; n = 10^4 gives λ·100·u."""
    assert math.sqrt(2 * math.log(4 * 2**30)) == close(6.66044)
    assert Summation(10**4, 1, ["f32"], False).growth == close(6.66044 * 100 * U)
    assert Summation(10**4, 2**14, ["f32"], False).growth == close(math.sqrt(2 * math.log(2**46)) * 100 * U)


def test_probable_growth_is_never_more_than_certain_growth():
    for terms in (1, 2, 7, 50, 10**6):
        for kind in ("f32", "f16"):
            assert Summation(terms, 9, [kind], False).growth <= Summation(terms, 9, [kind], True).growth


def test_of_float64_both_sides_are_off():
    assert Summation(8, 1, ["f64"], True).growth == 2 * 8 * 2.0**-53


def test_terms_of_one_sign():
    """A = S = 2, n = 3: 3u·2 = 6u for the sum, and 2u for the rounding of the result."""
    assert bound(2.0, 2.0, Summation(3, 1, ["f32"], True)) == close(8 * U)


def test_terms_that_cancel():
    """A = 1, S = 0, n = 3: products u·1, and three additions of at most (1 + 0)/2 each: 2.5u, less than 3u."""
    assert bound(1.0, 0.0, Summation(3, 1, ["f32"], True)) == close(2.5 * U)


def test_terms_that_cancel_probably():
    """A = 1, S = 0, n = 10^4: λ·u·(1 + 100·(1/2 + growth)), growth negligible; A was summed in f32: 2n·u more."""
    assert bound(1.0, 0.0, Summation(10**4, 1, ["f32"], False)) == close(6.66044 * U * 51 * (1 + 2e4 * U))


def test_what_is_flushed_counts_for_every_term():
    assert bound(0.0, 0.0, Summation(5, 1, ["f32"], True)) == close(5 * TINY)
    assert bound(0.0, 0.0, Summation(5, 1, ["f32", "f16"], True)) == close(5 * 2.0**-14)


def test_what_the_terms_bring_with_them_grows_as_well():
    """A = S = 2 and 0.5 from the terms: 3u·2.5 + 2u + 0.5."""
    assert bound(2.0, 2.0, Summation(3, 1, ["f32"], True), 0.5) == close(0.5 + 9.5 * U)


def test_a_running_sum_may_overflow_where_the_result_does_not():
    """Terms 40000, 40000, -40000 and -40000: in one order the sum is 0, in another it is infinite at 80000."""
    sums = Summation(4, 1, ["f16"], True)
    assert bound(160000.0, 0.0, sums) == math.inf
    assert bound(40000.0, 0.0, sums) < math.inf
    assert bound(160000.0, 0.0, Summation(4, 1, ["f32"], True)) < math.inf


def test_sums_of_ones_that_stagnate_are_within_the_certain_bound():
    """In f16, 4096 ones in order make 2048: off by 2048."""
    assert bound(4096.0, 4096.0, Summation(4097, 1, ["f16"], True)) > 2048
