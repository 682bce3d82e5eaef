"""Tensor types in MLIR's spelling."""

from __future__ import annotations

import pytest

from numtrace.errors import InputError
from numtrace.instrument.tensor_type import TensorType


@pytest.mark.parametrize(
    ("text", "shape", "dtype"),
    [
        ("1x4x64x64xf32", (1, 4, 64, 64), "f32"),
        ("?x8xbf16", (None, 8), "bf16"),
        ("f16", (), "f16"),
        ("0x3xui8", (0, 3), "ui8"),
        ("2xf8E4M3FNUZ", (2,), "f8E4M3FNUZ"),
        ("4xindex", (4,), "index"),
    ],
)
def test_parse_and_print_are_inverse(text, shape, dtype):
    assert TensorType.parse(text) == TensorType(shape, dtype)
    assert str(TensorType(shape, dtype)) == text


@pytest.mark.parametrize(
    "text", ["", "4", "4x", "4xf31", "-1xf32", "x4xf32", "4 x f32", "tensor<4xf32>", "4xi4"]
)
def test_what_is_no_type(text):
    with pytest.raises(InputError):
        TensorType.parse(text)


def test_sizes():
    assert TensorType.parse("2x3xbf16").count == 6
    assert TensorType.parse("2x3xbf16").nbytes == 12
    assert TensorType.parse("f64").nbytes == 8
    assert TensorType.parse("9xi1").nbytes == 9
    assert TensorType.parse("0x3xf32").nbytes == 0
    with pytest.raises(InputError, match=r"\?x3xf32 .*dynamic"):
        _ = TensorType.parse("?x3xf32").count


def test_a_dynamic_dim_accepts_any_size():
    assert TensorType.parse("?x3xf32").accepts(TensorType.parse("7x3xf32"))
    assert not TensorType.parse("?x3xf32").accepts(TensorType.parse("7x4xf32"))
    assert not TensorType.parse("?xf32").accepts(TensorType.parse("f32"))
    assert not TensorType.parse("4xf32").accepts(TensorType.parse("4xf16"))
    assert TensorType.parse("4xi8").accepts(TensorType.parse("4xui8"))
