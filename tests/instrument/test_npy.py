"""npy files: what numpy saved is read back, and a broken or dangerous file gives one sentence."""

from __future__ import annotations

import pickle
import struct

import numpy as np
import pytest

from numtrace.errors import InputError
from numtrace.instrument.npy import read_npy


def _npy(header: str, data: bytes = b"") -> bytes:
    text = header.encode("latin1") + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.float32).reshape(2, 3),
        np.asfortranarray(np.arange(6).reshape(2, 3)),
        np.array(True),
        np.zeros((0, 4), np.float16),
        np.arange(3, dtype=">f8"),
    ],
)
def test_reads_what_numpy_saved(tmp_path, array):
    np.save(tmp_path / "x.npy", array)
    (read,) = read_npy(tmp_path / "x.npy")
    assert read.dtype == array.dtype
    assert read.shape == array.shape
    assert read.tolist() == array.tolist()


def test_reads_arrays_saved_one_after_the_other(tmp_path):
    with (tmp_path / "x.npy").open("wb") as file:
        np.save(file, np.array([1, 2]))
        np.save(file, np.array(3.5))
    assert [array.tolist() for array in read_npy(tmp_path / "x.npy")] == [[1, 2], 3.5]


class _Trap:
    """Writes a file when it is unpickled."""

    def __init__(self, path):
        self._path = path

    def __reduce__(self):
        return open, (str(self._path), "w")


def test_objects_are_never_unpickled(tmp_path):
    np.save(tmp_path / "x.npy", np.array([_Trap(tmp_path / "sprung")], object), allow_pickle=True)
    with pytest.raises(InputError, match="Python objects, which are never unpickled"):
        read_npy(tmp_path / "x.npy")
    assert not (tmp_path / "sprung").exists()

    (tmp_path / "bare.npy").write_bytes(pickle.dumps(_Trap(tmp_path / "sprung")))
    with pytest.raises(InputError, match="not an npy"):
        read_npy(tmp_path / "bare.npy")
    assert not (tmp_path / "sprung").exists()


def test_truncated_says_both_sizes(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((2, 3), np.float32))
    (tmp_path / "x.npy").write_bytes((tmp_path / "x.npy").read_bytes()[:-5])
    with pytest.raises(InputError, match=r"truncated: shape \(2, 3\) of float32 takes 24 bytes, found 19"):
        read_npy(tmp_path / "x.npy")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "not an npy"),
        (b"hello, world", "not an npy"),
        (b"PK\x03\x04rest", "npz"),
        (b"\x93NUMPY", "not a readable npy"),
        (b"\x93NUMPY\x03\x00" + b"\0" * 20, "version"),
        (b"\x93NUMPY\x01\x00\xff\xff", "not a readable npy"),
        (_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (10000000000000,), }"), "truncated"),
        (_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }"), "not a readable npy"),
        (
            _npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1, -1), }", b"1234"),
            "not a readable npy",
        ),
        (_npy("{'descr': '|S0', 'fortran_order': False, 'shape': (2,), }"), "not a readable npy"),
        (_npy("{'descr': 'nonsense', 'fortran_order': False, 'shape': (2,), }"), "not a readable npy"),
        (_npy("{'descr': '<f4'}"), "not a readable npy"),
        (_npy("__import__('os')"), "not a readable npy"),
        (_npy("(" * 5000), "not a readable npy"),
    ],
)
def test_a_broken_file_is_an_input_error(tmp_path, content, says):
    (tmp_path / "x.npy").write_bytes(content)
    with pytest.raises(InputError, match=says):
        read_npy(tmp_path / "x.npy")


def test_missing_or_not_a_file(tmp_path):
    with pytest.raises(InputError, match=r"cannot read .*gone\.npy.*No such file"):
        read_npy(tmp_path / "gone.npy")
    with pytest.raises(InputError, match="cannot read"):
        read_npy(tmp_path)
