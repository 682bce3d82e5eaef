"""The format table against the finfo of torch and ml_dtypes, and ulps worked out by hand."""

import math

import ml_dtypes
import pytest
import torch

from numtrace.evaluate.formats import FORMATS, float_format, in_ulps, is_float_type, ulp

F64 = torch.float64

ML_DTYPES = {
    "bf16": ml_dtypes.bfloat16,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "f8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
    "f8E4M3": ml_dtypes.float8_e4m3,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "f8E4M3B11FNUZ": ml_dtypes.float8_e4m3b11fnuz,
    "f8E3M4": ml_dtypes.float8_e3m4,
    "f6E3M2FN": ml_dtypes.float6_e3m2fn,
    "f6E2M3FN": ml_dtypes.float6_e2m3fn,
    "f4E2M1FN": ml_dtypes.float4_e2m1fn,
}
TORCH = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


@pytest.mark.parametrize("dtype", ML_DTYPES)
def test_table_agrees_with_ml_dtypes(dtype):
    info, fmt = ml_dtypes.finfo(ML_DTYPES[dtype]), FORMATS[dtype]
    assert fmt.precision == info.nmant + 1
    assert fmt.eps == float(info.eps)
    assert fmt.min_normal == float(info.smallest_normal)
    assert fmt.min_subnormal == float(info.smallest_subnormal)
    assert fmt.max_finite == float(info.max)
    assert 2.0**fmt.emax <= fmt.max_finite < 2.0 ** (fmt.emax + 1)


@pytest.mark.parametrize("dtype", TORCH)
def test_table_agrees_with_torch(dtype):
    info, fmt = torch.finfo(TORCH[dtype]), FORMATS[dtype]
    assert (fmt.eps, fmt.min_normal, fmt.max_finite) == (info.eps, info.smallest_normal, info.max)


def test_every_format_but_tf32_was_compared():
    assert set(FORMATS) == {*ML_DTYPES, *TORCH, "tf32"}


def test_eps_and_roundoff():
    assert float_format("f32").eps == 2.0**-23
    assert float_format("f32").unit_roundoff == 2.0**-24
    assert float_format("bf16").unit_roundoff == 2.0**-8
    assert float_format("tf32").unit_roundoff == float_format("f16").unit_roundoff == 2.0**-11


@pytest.mark.parametrize(
    ("dtype", "x", "want"),
    [
        ("f32", 1.0, 2.0**-23),
        ("f32", -1.5, 2.0**-23),
        ("f32", 0.75, 2.0**-24),
        ("f32", 2.0 - 2.0**-40, 2.0**-23),  # would round up to 2: the exact value counts
        ("f32", 2.0, 2.0**-22),
        ("f32", 0.0, 2.0**-149),
        ("f32", -0.0, 2.0**-149),
        ("f32", 2.0**-140, 2.0**-149),  # subnormal
        ("f32", 2.0**-126, 2.0**-149),  # smallest normal
        ("f32", 2.0**-125, 2.0**-148),
        ("f32", 1e300, 2.0**104),  # beyond the format: the ulp of its last binade
        ("bf16", 1.0, 2.0**-7),
        ("bf16", 300.0, 2.0),
        ("f16", 65504.0, 32.0),
        ("f16", 2.0**-20, 2.0**-24),
        ("f8E4M3FN", 448.0, 32.0),
        ("f8E4M3FN", 1000.0, 32.0),
        ("f8E4M3FN", 0.001, 2.0**-9),
        ("f64", 1.0, 2.0**-52),
        ("f64", 0.0, 2.0**-1074),
        ("f64", 5e-324, 2.0**-1074),
        ("f64", 1.7e308, 2.0**971),
    ],
)
def test_ulp(dtype, x, want):
    assert ulp(torch.tensor([x], dtype=F64), dtype).item() == want


def test_ulp_of_float64_is_that_of_the_standard_library():
    values = [1.0, 1.9999999999999998, 3.3, 1e-310, 2.2250738585072014e-308, 1e16, 1.7976931348623157e308]
    assert ulp(torch.tensor(values, dtype=F64), "f64").tolist() == [math.ulp(x) for x in values]


def test_in_ulps_reaches_through_the_whole_range():
    error = torch.tensor([2.0**-24, 3 * 2.0**-149, 5e-324, 2.0**971], dtype=F64)
    at = torch.tensor([1.0, 0.0, 0.0, 1.7e308], dtype=F64)
    assert in_ulps(error[:2], at[:2], "f32").tolist() == [0.5, 3.0]
    assert in_ulps(error[2:], at[2:], "f64").tolist() == [1.0, 1.0]


def test_names():
    assert is_float_type("bf16")
    assert not any(is_float_type(name) for name in ("i1", "i64", "si32", "ui8", "index"))
    with pytest.raises(ValueError, match=r"unknown element type 'float32'.*f32"):
        is_float_type("float32")
    with pytest.raises(ValueError, match="i32 is an integer type"):
        float_format("i32")
