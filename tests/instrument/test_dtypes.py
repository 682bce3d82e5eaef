"""Element types: each survives numpy → torch → numpy bit by bit, and has the value its bits stand for."""

from __future__ import annotations

import warnings

import ml_dtypes
import numpy as np
import pytest
import torch

from numtrace.errors import InputError
from numtrace.instrument import dtypes


@pytest.mark.parametrize("name", dtypes.KNOWN)
def test_every_dtype_survives_the_way_to_torch_and_back(name):
    dtype = dtypes.numpy_dtype(name)
    bits = np.arange(2 if name == "i1" else 256, dtype=np.uint8)
    array = np.tile(bits, dtype.itemsize).view(dtype).reshape(2, -1)

    tensor = dtypes.to_torch(array)

    assert tensor.dtype == dtypes.torch_dtype(name)
    assert tuple(tensor.shape) == array.shape
    back = dtypes.to_numpy(tensor)
    assert back.dtype == dtype
    assert back.tobytes() == array.tobytes()


@pytest.mark.parametrize(
    ("name", "bits", "value"),
    [
        ("bf16", 0x3FC0, 1.5),  # exponent 127, mantissa .1
        ("f16", 0x3E00, 1.5),
        ("f8E4M3FN", 0x3C, 1.5),
        ("f8E5M2", 0x3E, 1.5),
        ("f8E4M3FNUZ", 0x44, 1.5),  # the fnuz forms have a bias that is one more
        ("f8E5M2FNUZ", 0x42, 1.5),
        ("f8E8M0FNU", 0x80, 2.0),  # a power of two only
    ],
)
def test_values_are_those_of_the_bits(name, bits, value):
    dtype = dtypes.numpy_dtype(name)
    array = np.array([bits], np.uint16 if dtype.itemsize == 2 else np.uint8).view(dtype)
    assert float(dtypes.to_torch(array).to(torch.float64)) == value


@pytest.mark.parametrize(
    ("name", "bits"),
    [("f16", 11), ("bf16", 8), ("f32", 24), ("f64", 53), ("f8E5M2", 3), ("f8E4M3FN", 4), ("f8E8M0FNU", 1)],
)
def test_precision_counts_the_hidden_bit(name, bits):
    assert dtypes.precision(name) == bits


def test_names_of_one_dtype():
    assert dtypes.from_torch(torch.int32) == "i32"
    assert dtypes.from_torch(torch.uint8) == "ui8"
    assert dtypes.from_torch(torch.bfloat16) == "bf16"
    assert dtypes.from_numpy(np.dtype(">f4")) == "f32"
    assert dtypes.from_numpy(np.dtype(ml_dtypes.float8_e5m2)) == "f8E5M2"
    assert dtypes.torch_dtype("index") == dtypes.torch_dtype("si64") == torch.int64


def test_storage_agrees_but_for_a_contradicting_sign():
    assert dtypes.same_storage("i8", "ui8")
    assert dtypes.same_storage("si8", "i8")
    assert dtypes.same_storage("index", "i64")
    assert not dtypes.same_storage("si8", "ui8")
    assert not dtypes.same_storage("i8", "i16")
    assert not dtypes.same_storage("f16", "bf16")
    assert not dtypes.same_storage("i1", "i8")


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=">i4").reshape(2, 3),
        np.arange(6, dtype=np.int32).reshape(3, 2).T,
        np.arange(12, dtype=np.int32).reshape(2, 6)[:, ::2],
        np.arange(6, dtype=np.int32).reshape(2, 3)[::-1, ::-1],
        np.frombuffer(b"\0" + np.arange(6, dtype=np.int32).tobytes(), np.int32, offset=1).reshape(2, 3),
        np.broadcast_to(np.int32(7), (2, 3)),
        np.zeros((0, 3), np.int32),
        np.array(5, np.int32),
    ],
    ids=["big-endian", "transposed", "strided", "reversed", "unaligned", "broadcast", "empty", "scalar"],
)
def test_any_layout_of_an_array(array):
    assert dtypes.to_torch(array).tolist() == array.tolist()


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_memory_is_shared_also_if_read_only_and_without_a_warning(dtype):
    array = np.ones((2, 3), dtype)
    tensor = dtypes.to_torch(array)
    array[0, 0] = 3
    assert tensor[0, 0] == 3
    array.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert dtypes.to_torch(array)[0, 0] == 3


def test_tensors_that_are_views_or_need_a_gradient():
    tensor = torch.arange(6.0, dtype=torch.bfloat16).reshape(2, 3).T
    assert dtypes.to_numpy(tensor).astype(float).tolist() == [[0, 3], [1, 4], [2, 5]]
    assert dtypes.to_numpy(torch.ones(1, requires_grad=True)).tolist() == [1.0]


def test_complex_numbers():
    value = torch.tensor([[1 + 2j, 3 - 4j]])
    assert dtypes.from_torch(value.dtype) == dtypes.from_numpy(np.dtype("complex64")) == "complex<f32>"
    assert dtypes.to_numpy(value.conj()).tolist() == [[1 - 2j, 3 + 4j]]
    assert dtypes.to_torch(np.array([1j], np.complex128)).tolist() == [1j]
    assert not dtypes.is_float("complex<f32>") and not dtypes.same_storage("complex<f32>", "f32")


@pytest.mark.parametrize("name", ["i4", "f80", "complex<f16>", "complex", ""])
def test_an_unknown_name_is_said_with_the_known_ones(name):
    with pytest.raises(InputError, match="not supported; supported are f32, f64"):
        dtypes.numpy_dtype(name)


def test_unknown_dtypes_of_numpy_and_torch():
    with pytest.raises(InputError, match="'complex32'"):
        dtypes.from_torch(torch.complex32)
    with pytest.raises(InputError, match="'str32'"):
        dtypes.to_torch(np.array(["a"]))
