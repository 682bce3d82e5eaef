"""Tolerances: fixed answers first, then properties."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from numtrace.attribute.closeness import allclose

INF, NAN = math.inf, math.nan
FINITE = st.floats(-1e100, 1e100)
PAIRS = st.lists(st.tuples(FINITE, FINITE), min_size=1, max_size=12)


def tensor(*values, dtype=torch.float64):
    return torch.tensor(values, dtype=dtype)


@pytest.mark.parametrize(
    ("actual", "expected", "atol", "rtol", "violations", "worst", "min_atol"),
    [
        (tensor(1, 2), tensor(1, 2), 0, 0, 0, (0,), 0),
        (tensor(1, 2.5), tensor(1, 2), 0.5, 0, 0, (1,), 0.5),  # the bound itself passes
        (tensor(1, 2.5), tensor(1, 2), 0.25, 0, 1, (1,), 0.5),
        (tensor(1, 2.5), tensor(1, 2), 0, 0.25, 0, (1,), 0),
        (tensor(1.25, 20), tensor(1, 16), 0, 0.125, 2, (1,), 2),  # 0.25 − 0.125, 4 − 2
        (tensor(-1, 1), tensor(1, -1), 1, 0.5, 2, (0,), 1.5),
        (torch.empty(2, 0), torch.empty(2, 0), 0, 0, 0, None, 0),
        (torch.tensor(3.0), torch.tensor(1.0), 1, 0, 1, (), 2),
        (tensor(NAN, 1), tensor(NAN, 1), 0, 0, 0, (1,), 0),
        (tensor(1, NAN), tensor(1, 1), 9, 9, 1, (1,), None),
        (tensor(1, 1), tensor(1, NAN), 9, 9, 1, (1,), None),
        (tensor(INF, -INF), tensor(INF, -INF), 0, 1, 0, None, 0),
        (tensor(INF, 1), tensor(-INF, 1), 9, 9, 1, (0,), None),
        (tensor(1, 2), tensor(1, INF), 9, 9, 1, (1,), None),
        (tensor(1, 2), tensor(1, INF), 9, 0, 1, (1,), None),
        (tensor(1, INF), tensor(1, 2), 9, 9, 1, (1,), None),
        (tensor(1.7e308), tensor(-1.7e308), 9, 9, 1, (0,), None),  # not even float64 holds the difference
        (tensor(1, 0, dtype=torch.bool), tensor(1, 1, dtype=torch.bool), 0, 0, 1, (1,), 1),
        (tensor(2**53 + 1, dtype=torch.int64), tensor(2**53, dtype=torch.int64), 0, 0, 1, (0,), 1),
        (tensor(1.1, dtype=torch.bfloat16), tensor(1.0), 0.1, 0, 1, (0,), 0.1015625),
    ],
)
def test_allclose(actual, expected, atol, rtol, violations, worst, min_atol):
    got = allclose(actual, expected, atol, rtol)
    assert (got.ok, got.violations) == (violations == 0, violations)
    assert got.fraction == (violations / actual.numel() if actual.numel() else 0)
    assert (got.worst, got.min_atol) == (worst, min_atol)


def test_allclose_can_refuse_equal_nans():
    got = allclose(tensor(NAN, 1), tensor(NAN, 1), 9, 9, equal_nan=False)
    assert (got.ok, got.violations, got.worst, got.min_atol) == (False, 1, (0,), None)


@pytest.mark.parametrize(("atol", "rtol"), [(-1, 0), (0, -1e-9), (NAN, 0), (0, INF)])
def test_allclose_refuses_tolerances_that_are_none(atol, rtol):
    with pytest.raises(ValueError, match="not negative"):
        allclose(tensor(1), tensor(1), atol, rtol)


@given(PAIRS, st.floats(0, 1e3), st.floats(0, 2))
@settings(max_examples=300, deadline=None)
def test_min_atol_passes_and_the_next_smaller_does_not(pairs, atol, rtol):
    a, e = (tensor(*column) for column in zip(*pairs, strict=True))
    got = allclose(a, e, atol, rtol)
    assert got.ok == (got.min_atol <= atol)
    assert allclose(a, e, got.min_atol, rtol).ok
    if got.min_atol > 0:
        assert not allclose(a, e, math.nextafter(got.min_atol, 0), rtol).ok


@given(PAIRS, st.floats(0, 1e3))
@settings(max_examples=200, deadline=None)
def test_absolute_tolerance_is_that_of_numpy(pairs, atol):
    a, e = zip(*pairs, strict=True)
    want = np.isclose(a, e, rtol=0, atol=atol)
    assert allclose(tensor(*a), tensor(*e), atol, 0).violations == np.count_nonzero(~want)
