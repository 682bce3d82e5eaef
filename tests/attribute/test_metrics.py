"""The table of fixed answers first, then properties against plain formulae in exact fractions."""

import dataclasses
import math
import sys
from fractions import Fraction
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from numtrace.attribute.metrics import Nonfinite, difference, max_ulp

INF, NAN = math.inf, math.nan
F64, F32, F16, BF16, F8 = torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn
BOOL, I8, U8, I32, I64, U64 = torch.bool, torch.int8, torch.uint8, torch.int32, torch.int64, torch.uint64
CLOSE = partial(pytest.approx, rel=1e-15, abs=0)


def tensor(*values, dtype=F64):
    return torch.tensor(values, dtype=dtype)


def only(gap):
    """The six numbers of one element that differs from an expected 1."""
    return gap, (0,), gap, gap, gap, 1


# name: (actual, expected, (max_abs, at, mean_abs, l2, rel_l2, cosine), kinds that are not 0)
FIXED = {
    "equal": (tensor(3, 4), tensor(3, 4), (0, None, 0, 0, 0, 1), {}),
    "plain": (tensor(3, 0), tensor(0, 4), (4, (1,), 3.5, 5, 1.25, 0), {}),
    "opposite": (tensor(-3, -4), tensor(3, 4), (8, (1,), 7, 10, 2, -1), {}),
    "first of equals": (tensor(1, -1, 1), tensor(0, 0, 0), (1, (0,), 1, 3**0.5, None, None), {}),
    "both zero": (tensor(0, -0.0), tensor(0, 0), (0, None, 0, 0, 0, None), {}),
    "expected zero": (tensor(0, 2), tensor(0, 0), (2, (1,), 1, 2, None, None), {}),
    "actual zero": (tensor(0, 0), tensor(0, 2), (2, (1,), 1, 2, 1, None), {}),
    "0-d": (torch.tensor(2.0), torch.tensor(4.0), (2, (), 2, 2, 0.5, 1), {}),
    "empty": (torch.empty(0, 3), torch.empty(0, 3), (0, None, 0, 0, 0, None), {}),
    "both NaN": (tensor(NAN, 1), tensor(NAN, 2), (1, (1,), 1, 1, 0.5, 1), {"nan_both": 1}),
    "NaN in actual": (tensor(NAN, 1), tensor(5, 1), (0, None, 0, 0, 0, 1), {"nan_actual": 1}),
    "NaN in expected": (tensor(5, 1), tensor(NAN, 1), (0, None, 0, 0, 0, 1), {"nan_expected": 1}),
    "NaN against inf": (
        tensor(NAN, INF),
        tensor(INF, NAN),
        (None,) * 6,
        {"nan_actual": 1, "nan_expected": 1},
    ),
    "all NaN": (tensor(NAN, NAN), tensor(NAN, NAN), (None,) * 6, {"nan_both": 2}),
    "equal inf": (tensor(INF, -INF, 1), tensor(INF, -INF, 1), (0, None, 0, 0, 0, 1), {"inf_equal": 2}),
    "opposite inf": (tensor(INF, 1), tensor(-INF, 1), (0, None, 0, 0, 0, 1), {"inf_opposite": 1}),
    "inf in actual": (tensor(2, -INF), tensor(1, 1), (1, (0,), 1, 1, 1, 1), {"inf_actual": 1}),
    "inf in expected": (tensor(2, 1), tensor(1, INF), (1, (0,), 1, 1, 1, 1), {"inf_expected": 1}),
    "beyond float64": (tensor(1.7e308, 1), tensor(-1.7e308, 1), (0, None, 0, 0, 0, 1), {"overflow": 1}),
    "squares overflow": (
        tensor(3e200, 4e200),
        tensor(0, 4e200),
        (3e200, (0,), 1.5e200, 3e200, 0.75, 0.8),
        {},
    ),
    "squares underflow": (
        tensor(3e-200, 4e-200),
        tensor(0, 4e-200),
        (3e-200, (0,), 1.5e-200, 3e-200, 0.75, 0.8),
        {},
    ),
    "bool": (tensor(1, 0, dtype=BOOL), tensor(0, 0, dtype=BOOL), (1, (0,), 0.5, 1, None, None), {}),
    "int8 wraps not": (
        tensor(127, dtype=I8),
        tensor(-128, dtype=I8),
        (255, (0,), 255, 255, 255 / 128, -1),
        {},
    ),
    "uint8": (tensor(0, dtype=U8), tensor(255, dtype=U8), (255, (0,), 255, 255, 1, None), {}),
    "int64": (
        tensor(2**53 + 1, -(2**63), dtype=I64),
        tensor(2**53, -(2**63), dtype=I64),
        (1, (0,), 0.5, 1, 1 / (2.0**53 * (1 + 2.0**20) ** 0.5), 1),
        {},
    ),
    "int64 extremes": (
        tensor(2**63 - 1, dtype=I64),
        tensor(-(2**63), dtype=I64),
        (2.0**64, (0,), 2.0**64, 2.0**64, 2, -1),
        {},
    ),
    "uint64 against int32": (
        tensor(2**64 - 1, dtype=U64),
        tensor(-1, dtype=I32),
        (2.0**64, (0,), 2.0**64, 2.0**64, 2.0**64, -1),
        {},
    ),
    # 1.1 in f32 is 1.10000002384185791015625; bf16 1.1015625; f16 1.099609375; e4m3 1.125
    "f32 against f64": (tensor(1.1, dtype=F32), tensor(1), only(0.10000002384185791), {}),
    "bf16 against f64": (tensor(1.1, dtype=BF16), tensor(1), only(0.1015625), {}),
    "f16 against f64": (tensor(1.1, dtype=F16), tensor(1), only(0.099609375), {}),
    "f8 against f64": (tensor(1.1).to(F8), tensor(1), only(0.125), {}),
    "f8 NaN": (
        tensor(NAN, 1).to(F8),
        tensor(1, 1).to(torch.float8_e5m2),
        (0, None, 0, 0, 0, 1),
        {"nan_actual": 1},
    ),
    "int against bf16": (tensor(3, dtype=I32), tensor(2, dtype=BF16), (1, (0,), 1, 1, 0.5, 1), {}),
}


@pytest.mark.parametrize("name", FIXED)
def test_difference_of_the_fixed_table(name):
    actual, expected, numbers, kinds = FIXED[name]
    got = difference(actual, expected)
    assert got.kinds == Nonfinite(**kinds)
    assert got.nonfinite == sum(kinds.values())
    assert got.finite == actual.numel() - got.nonfinite
    fields = (got.max_abs, got.at, got.mean_abs, got.l2, got.rel_l2, got.cosine)
    for have, want in zip(fields, numbers, strict=True):
        assert have == (pytest.approx(want, rel=1e-15, abs=0) if isinstance(want, float) else want)


def test_every_number_is_finite_or_none():
    for actual, expected, _, _ in FIXED.values():
        for number in dataclasses.astuple(difference(actual, expected)):
            assert not isinstance(number, float) or math.isfinite(number)


def test_numbers_larger_than_float64_are_none():
    got = difference(tensor(1.7e308, 1.7e308), tensor(0, 0))
    assert (got.max_abs, got.mean_abs, got.l2, got.rel_l2, got.cosine) == (1.7e308, None, None, None, None)
    assert difference(tensor(1e308, 1), tensor(1e308, 5e-324)).rel_l2 == CLOSE(1e-308)
    assert difference(tensor(1e308), tensor(5e-324)).rel_l2 is None


def test_identical():
    assert difference(tensor(0.0, NAN, INF), tensor(-0.0, NAN, INF)).identical
    assert difference(torch.empty(0), torch.empty(0)).identical
    assert difference(tensor(NAN), tensor(NAN)).identical
    assert not difference(tensor(1, NAN), tensor(1, 1)).identical
    assert not difference(tensor(1), tensor(1 + 2**-52)).identical


def test_psnr():
    a, e = torch.full((3, 4, 4), 0.5), torch.full((3, 4, 4), 0.25)
    assert difference(a, e).psnr_db() == pytest.approx(10 * math.log10(16))  # MSE 1/16
    assert difference(a * 255, e * 255).psnr_db(peak=255) == pytest.approx(10 * math.log10(16))
    assert difference(tensor(1e-200), tensor(0)).psnr_db() == pytest.approx(4000)
    assert difference(e, e).psnr_db() == math.inf
    assert difference(torch.empty(0), torch.empty(0)).psnr_db() == math.inf
    assert difference(tensor(NAN, 0), tensor(0, 0)).psnr_db() is None
    assert difference(tensor(INF, 0), tensor(INF, 0)).psnr_db() is None
    for peak in (0, -1, INF, NAN):
        with pytest.raises(ValueError, match="peak"):
            difference(a, e).psnr_db(peak)


# max_ulp


@pytest.mark.parametrize(
    ("actual", "expected", "dtype", "want"),
    [
        (1 + 2.0**-23, 1.0, "f32", 1),
        (1 - 2.0**-24, 1.0, "f32", 0.5),
        (1.0, 1.0, "f32", 0),
        (3.0078125, 3.0, "bf16", 0.5),
        (0.0, 2.0**-149, "f32", 1),
        (0.0, 2.0**-126, "f32", 2**23),  # a flushed smallest normal
        (1.0, 0.0, "f32", 2.0**149),
        (448.0, 1000.0, "f8E4M3FN", 17.25),  # saturated: 552/32
        (1.0, 5e-324, "f64", sys.float_info.max),  # 2^1074
        (NAN, 1.0, "f32", None),
        (INF, INF, "f32", None),
        (5.0, 3.0, "i32", None),
        (5.0, 3.0, "index", None),
    ],
)
def test_max_ulp(actual, expected, dtype, want):
    assert max_ulp(tensor(actual), tensor(expected), dtype) == want


def test_max_ulp_beside_nonfinite_elements_and_of_nothing():
    assert max_ulp(tensor(NAN, 1.5, INF), tensor(1, 1, INF), "bf16") == 64
    assert max_ulp(torch.empty(0), torch.empty(0), "f32") == 0
    with pytest.raises(ValueError, match="unknown element type 'fp32'"):
        max_ulp(tensor(1), tensor(1), "fp32")


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        (torch.float32, "f32"),
        (torch.bfloat16, "bf16"),
        (torch.float16, "f16"),
        (torch.float8_e5m2, "f8E5M2"),
        (torch.float8_e4m3fn, "f8E4M3FN"),
    ],
)
@given(
    value=st.floats(-57344, 57344, allow_subnormal=False)
    | st.floats(-(2.0**-6), 2.0**-6, allow_subnormal=False)
)
@settings(max_examples=300, deadline=None)
def test_rounding_to_nearest_is_within_half_an_ulp(dtype, name, value):
    exact = tensor(value if dtype != torch.float8_e4m3fn else value / 128)
    assert max_ulp(exact.to(torch.float32).to(dtype), exact.to(torch.float32), name) <= 0.5


# properties, against exact arithmetic

FINITE = st.floats(-1e100, 1e100)
PAIRS = st.lists(st.tuples(FINITE, FINITE), min_size=1, max_size=12)


def root(x: Fraction) -> float:
    """Square root of a fraction of any size, right to about 100 bits before the one rounding."""
    if not x:
        return 0.0
    shift = 2 * (200 + x.denominator.bit_length())
    return float(Fraction(math.isqrt((x.numerator << shift) // x.denominator), 1 << (shift // 2)))


@given(PAIRS)
@settings(max_examples=300, deadline=None)
def test_difference_against_fractions(pairs):
    got = difference(*(tensor(*column) for column in zip(*pairs, strict=True)))
    exact = [(Fraction(a), Fraction(e)) for a, e in pairs]
    gaps = [abs(a - e) for a, e in exact]
    rounded = [float(gap) for gap in gaps]
    assert got.max_abs == max(rounded)
    assert got.at == ((rounded.index(max(rounded)),) if max(rounded) else None)
    assert got.mean_abs == pytest.approx(float(sum(gaps) / len(gaps)), rel=1e-14, abs=0)
    l2, norm_a, norm_e = (root(sum(x * x for x in xs)) for xs in (gaps, *zip(*exact, strict=True)))
    assert got.l2 == pytest.approx(l2, rel=1e-14, abs=1e-323)
    if norm_e > 1e-290:
        ratio = l2 / norm_e
        assert got.rel_l2 == (pytest.approx(ratio, rel=1e-14, abs=1e-300) if math.isfinite(ratio) else None)
    if norm_a > 1e-290 and norm_e > 1e-290:
        cosine = float(sum(a * e for a, e in exact) / (Fraction(norm_a) * Fraction(norm_e)))
        assert got.cosine == pytest.approx(cosine, rel=0, abs=1e-14)


@given(PAIRS)
@settings(max_examples=100, deadline=None)
def test_difference_is_symmetric(pairs):
    a, e = (tensor(*column) for column in zip(*pairs, strict=True))
    one, other = difference(a, e), difference(e, a)
    assert (one.max_abs, one.at, one.mean_abs, one.l2) == (other.max_abs, other.at, other.mean_abs, other.l2)
