"""The table of fixed answers first, then properties against plain formulae in exact fractions."""

import dataclasses
import math
import sys
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from numtrace.attribute import metrics
from numtrace.attribute.metrics import (
    ADDITIVITY_BOUND,
    Nonfinite,
    additivity,
    allclose,
    difference,
    is_image,
    magnitude,
    max_ulp,
    psnr_db,
    u8_steps,
)

INF, NAN = math.inf, math.nan
F64, F32, F16, BF16, F8 = torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn
BOOL, I8, U8, I32, I64, U64 = torch.bool, torch.int8, torch.uint8, torch.int32, torch.int64, torch.uint64


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


@pytest.mark.parametrize("metric", [difference, psnr_db, u8_steps])
def test_shapes_must_be_equal(metric):
    with pytest.raises(ValueError, match=r"shapes \(2, 3\) and \(3, 2\) differ"):
        metric(torch.zeros(2, 3), torch.zeros(3, 2))


def test_shapes_must_be_equal_even_if_they_broadcast_or_are_empty():
    for one, other in [((2, 3), (1, 3)), ((2, 3), (3,)), ((0, 3), (3, 0)), ((), (1,))]:
        with pytest.raises(ValueError, match="differ"):
            difference(torch.zeros(one), torch.zeros(other))
        with pytest.raises(ValueError, match="differ"):
            allclose(torch.zeros(one), torch.zeros(other), 0, 0)
        with pytest.raises(ValueError, match="differ"):
            max_ulp(torch.zeros(one), torch.zeros(other), "f32")
        with pytest.raises(ValueError, match="differ"):
            additivity(torch.zeros(one), torch.zeros(one), torch.zeros(other))


def test_complex_is_refused():
    with pytest.raises(ValueError, match="complex64"):
        magnitude(torch.zeros(2, dtype=torch.complex64))


def test_identical():
    assert difference(tensor(0.0, NAN, INF), tensor(-0.0, NAN, INF)).identical
    assert difference(torch.empty(0), torch.empty(0)).identical
    assert difference(tensor(NAN), tensor(NAN)).identical
    assert not difference(tensor(1, NAN), tensor(1, 1)).identical
    assert not difference(tensor(1), tensor(1 + 2**-52)).identical


def test_inputs_are_left_as_they_were():
    a, e = tensor(-1, 2, NAN), tensor(-3, -4, 1)
    before = a.clone(), e.clone()
    difference(a, e), magnitude(a), allclose(a, e, 0, 1), max_ulp(a, e, "f64"), u8_steps(a, e)
    additivity(a, e, e, a, e)
    for have, want in zip((a, e), before, strict=True):
        assert torch.equal(have.nan_to_num(), want.nan_to_num())


def test_tensors_that_need_a_gradient():
    a = tensor(1, 2).requires_grad_()
    assert difference(a, tensor(1, 4)).max_abs == 2
    assert magnitude(a).max_abs == 2


def test_where_limits_everything_to_the_defined_elements():
    a = torch.tensor([[1.0, NAN, 3.0], [INF, 5.0, 6.0]])
    e = torch.tensor([[1.0, 2.0, 9.0], [4.0, 7.0, 6.5]])
    where = torch.tensor([[True, False, False], [True, True, True]])
    got = difference(a, e, where)
    assert (got.max_abs, got.at, got.finite, got.kinds) == (2, (1, 1), 3, Nonfinite(inf_actual=1))
    assert got.mean_abs == pytest.approx(2.5 / 3)
    assert magnitude(a, where).at == (1, 2)
    assert magnitude(a, where).inf == 1
    assert max_ulp(a, e, "f32", where) == 2 * 2**21  # at (1, 1): ulp(7) = 2^-21
    close = allclose(a, e, 0.5, 0, where=where)
    assert (close.violations, close.fraction, close.worst) == (2, 0.5, (1, 0))
    nothing = torch.zeros(2, 3, dtype=torch.bool)
    assert difference(a, e, nothing).max_abs == 0.0
    assert allclose(a, e, 0, 0, where=nothing).ok
    with pytest.raises(ValueError, match=r"where is torch.bool of shape \(3,\)"):
        difference(a, e, nothing[0])


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr(metrics, "CHUNK", 7)


@pytest.mark.parametrize(
    "view",
    [
        lambda t: t,
        lambda t: t.transpose(0, 2),
        lambda t: t.permute(1, 2, 0)[:, ::2],
        lambda t: t[1:, :, 1:],
        lambda t: t[:, :1].expand(6, 9, 5),
        lambda t: t.reshape(-1)[::3],
        lambda t: t.unsqueeze(0).to(memory_format=torch.channels_last),
    ],
)
def test_views_and_many_chunks(small_chunks, view):
    torch.manual_seed(0)
    a, e = view(torch.randn(6, 9, 5, dtype=F64)), view(torch.randn(6, 9, 5)).contiguous()
    x, y = a.numpy(), e.numpy().astype(np.float64)
    gap = np.abs(x - y)
    at = tuple(int(i) for i in np.unravel_index(gap.argmax(), gap.shape))
    got = difference(a, e)
    assert (got.max_abs, got.at, got.finite) == (gap.max(), at, x.size)
    assert got.mean_abs == pytest.approx(gap.mean(), rel=1e-14)
    assert got.rel_l2 == pytest.approx(np.linalg.norm(x - y) / np.linalg.norm(y), rel=1e-14)
    assert got.cosine == pytest.approx((x * y).sum() / np.linalg.norm(x) / np.linalg.norm(y), rel=1e-12)
    assert magnitude(a - e).at == at
    assert allclose(a, e, 0.1, 0).worst == at
    where = torch.rand(a.shape) < 0.5
    masked = np.where(where.numpy(), gap, -1)
    assert difference(a, e, where).at == np.unravel_index(masked.argmax(), gap.shape)
    a = a.clone()
    a[tuple(at)] = NAN
    gap[at] = -1
    assert difference(a, e).at == np.unravel_index(gap.argmax(), gap.shape)


# magnitude

CLOSE = partial(pytest.approx, rel=1e-15, abs=0)


@pytest.mark.parametrize(
    ("term", "want"),
    [
        (tensor(3, -4), (4, (1,), 3.5, 5, 2, 0, 0)),
        (torch.tensor([[0.0, -2.0], [2.0, 0.0]]), (2, (0, 1), 1, 8**0.5, 4, 0, 0)),
        (tensor(NAN, INF, -INF, -2), (2, (3,), 2, 2, 1, 1, 2)),
        (tensor(NAN, INF), (None, None, None, None, 0, 1, 1)),
        (torch.zeros(2, 2), (0, None, 0, 0, 4, 0, 0)),
        (torch.empty(0), (0, None, 0, 0, 0, 0, 0)),
        (torch.tensor(-2.5), (2.5, (), 2.5, 2.5, 1, 0, 0)),
        (tensor(True, False, dtype=torch.bool), (1, (0,), 0.5, 1, 2, 0, 0)),
        (tensor(3e-200, 4e-200), (4e-200, (1,), CLOSE(3.5e-200), CLOSE(5e-200), 2, 0, 0)),
    ],
)
def test_magnitude(term, want):
    assert dataclasses.astuple(magnitude(term)) == want
    assert magnitude(term).nonfinite == want[-2] + want[-1]


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


# allclose


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


# images


def test_psnr():
    a, e = torch.full((3, 4, 4), 0.5), torch.full((3, 4, 4), 0.25)
    assert psnr_db(a, e) == pytest.approx(10 * math.log10(16))  # MSE 1/16
    assert psnr_db(a * 255, e * 255, peak=255) == pytest.approx(10 * math.log10(16))
    assert difference(a, e).psnr_db() == psnr_db(a, e)
    assert psnr_db(tensor(1e-200), tensor(0)) == pytest.approx(4000)
    assert psnr_db(e, e) == math.inf
    assert psnr_db(torch.empty(0), torch.empty(0)) == math.inf
    assert psnr_db(tensor(NAN, 0), tensor(0, 0)) is None
    assert psnr_db(tensor(INF, 0), tensor(INF, 0)) is None
    for peak in (0, -1, INF, NAN):
        with pytest.raises(ValueError, match="peak"):
            psnr_db(a, e, peak)


@pytest.mark.parametrize(
    ("actual", "expected", "want"),
    [
        (0.5, 0.5, 0),
        (0.0, 1.0, 255),
        (-3.0, 2.0, 255),  # clipped
        (1.25, 1.0, 0),
        (INF, 1.0, 0),
        (-INF, 0.0, 0),
        (100.4 / 255, 100.0 / 255, 0),
        (100.6 / 255, 100.0 / 255, 1),
        (100.6 / 255, 100.4 / 255, 1),
        (0.5, 128.4 / 255, 0),  # 127.5 rounds to the even 128
        (NAN, 0.5, None),
        (NAN, NAN, None),
    ],
)
def test_u8_steps(actual, expected, want):
    assert u8_steps(tensor(0.25, actual), tensor(0.25, expected)) == want


def test_u8_steps_of_nothing_and_of_bf16():
    assert u8_steps(torch.empty(0), torch.empty(0)) == 0
    assert u8_steps(torch.tensor([0.501], dtype=torch.bfloat16), torch.tensor([0.4])) == 26  # 128 − 102


def test_is_image():
    torch.manual_seed(0)
    for shape in [(1, 8, 8), (3, 8, 9), (4, 2, 2), (2, 3, 8, 8), (8, 8, 3), (1, 8, 8, 1), (1, 8, 8, 4)]:
        assert is_image(torch.rand(shape)), shape
        assert is_image(torch.rand(shape).to(torch.bfloat16)), shape
    for shape in [(8, 8), (1, 3, 8, 8, 8), (5, 8, 8), (2, 8, 8), (3, 1, 8), (1, 5, 8, 8), (0, 3, 8, 8)]:
        assert not is_image(torch.rand(shape)), shape
    picture = torch.rand(3, 8, 8)
    for value in (1.001, -0.001, NAN, INF):
        broken = picture.clone()
        broken[1, 2, 3] = value
        assert not is_image(broken), value
    edge = torch.zeros(3, 8, 8)
    edge[0, 0, 0] = 1
    assert is_image(edge)
    assert not is_image(torch.full((3, 8, 8), 0.5))
    assert not is_image(torch.randint(0, 2, (3, 8, 8)))


# additivity


def test_additivity():
    assert additivity(tensor(6, 0), tensor(1, 0), tensor(2, 0), tensor(3, 0)) == 0
    assert additivity(tensor(3), tensor(1), tensor(2)) == 0
    # off by 1, the largest term is 4: 1/4 in units of 2^-52
    assert additivity(tensor(4), tensor(1), tensor(2)) == 2.0**50
    assert additivity(tensor(4), tensor(1), tensor(2), scale=tensor(-16)) == 2.0**48
    assert additivity(tensor(4), tensor(1), tensor(2), scale=tensor(0.5)) == 2.0**50
    assert additivity(tensor(4), tensor(1), tensor(2), tensor(1), where=tensor(True, dtype=torch.bool)) == 0
    assert additivity(tensor(NAN, INF, 3), tensor(1, INF, 1), tensor(1, 1, 2)) == 0
    assert additivity(torch.empty(0), torch.empty(0), torch.empty(0)) == 0
    assert additivity(tensor(5e-324), tensor(0), tensor(0)) == 2.0**52


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
def test_difference_is_symmetric_and_is_the_magnitude_of_a_minus_e(pairs):
    a, e = (tensor(*column) for column in zip(*pairs, strict=True))
    one, other, term = difference(a, e), difference(e, a), magnitude(a - e)
    assert (one.max_abs, one.at, one.mean_abs, one.l2) == (other.max_abs, other.at, other.mean_abs, other.l2)
    assert (one.max_abs, one.at, one.mean_abs, one.l2) == (term.max_abs, term.at, term.mean_abs, term.l2)


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


@given(st.lists(st.tuples(FINITE, FINITE, FINITE, FINITE), min_size=1, max_size=12))
@settings(max_examples=500, deadline=None)
def test_terms_of_shared_operands_add_up_within_the_bound(rows):
    compiled, exact, at_reference, reference = (tensor(*column) for column in zip(*rows, strict=True))
    residual = additivity(
        compiled - reference, compiled - exact, exact - at_reference, at_reference - reference
    )
    assert residual <= ADDITIVITY_BOUND


@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1)), min_size=1))
@settings(max_examples=200, deadline=None)
def test_integers_are_subtracted_exactly(pairs):
    a, e = (tensor(*column, dtype=torch.int64) for column in zip(*pairs, strict=True))
    assert difference(a, e).max_abs == max(float(abs(x - y)) for x, y in pairs)


ANY = st.sampled_from([0.0, 1.0, -1.0, 2.0, 1.5, INF, -INF, NAN])


@given(st.lists(st.tuples(ANY, ANY, st.booleans()), min_size=1), st.sampled_from([0, 0.5, 1]), st.booleans())
@settings(max_examples=300, deadline=None)
def test_a_mask_is_as_good_as_a_selection(rows, tolerance, equal_nan):
    a, e, keep = zip(*rows, strict=True)
    a, e, where = tensor(*a), tensor(*e), tensor(*keep, dtype=BOOL)
    number = where.nonzero().view(-1).tolist()

    def renumber(result, field):
        position = getattr(result, field)
        return dataclasses.replace(result, **{field: position and (number[position[0]],)})

    assert difference(a, e, where) == renumber(difference(a[where], e[where]), "at")
    assert magnitude(a, where) == renumber(magnitude(a[where]), "at")
    assert max_ulp(a, e, "f32", where) == max_ulp(a[where], e[where], "f32")
    close = allclose(a, e, tolerance, tolerance, equal_nan=equal_nan, where=where)
    selected = allclose(a[where], e[where], tolerance, tolerance, equal_nan=equal_nan)
    assert close == renumber(selected, "worst")
    want = np.isclose(a[where], e[where], rtol=tolerance, atol=tolerance, equal_nan=equal_nan)
    assert close.violations == np.count_nonzero(~want)
