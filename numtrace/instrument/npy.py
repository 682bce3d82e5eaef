"""Arrays from ``.npy`` files: sizes are checked before anything is read, and nothing is ever unpickled."""

from __future__ import annotations

import math
import os
import tokenize
from pathlib import Path
from typing import BinaryIO

import numpy as np

from numtrace.errors import InputError
from numtrace.instrument import dtypes
from numtrace.instrument.tensor_type import TensorType

MAGIC = b"\x93NUMPY"
_ZIP = b"PK\x03\x04"
# What numpy raises while it parses a header that is no header (a Python literal, read with ast.literal_eval).
_BROKEN_HEADER = (
    ValueError,
    TypeError,
    SyntaxError,
    OverflowError,
    MemoryError,
    RecursionError,
    tokenize.TokenError,
)
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def read_npy(path: Path) -> list[np.ndarray]:
    """The arrays of a ``.npy`` file: one, or several that were saved one after the other.

    InputError: no such file, not an npy, truncated, arrays of Python objects.
    """
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            arrays = [_read_array(file, size, path)]
            while file.tell() < size:
                arrays.append(_read_array(file, size, path))
            return arrays
    except OSError as error:
        raise unreadable(path, error) from error
    except _BROKEN_HEADER as error:
        raise InputError(f"{str(path)!r} is not a readable npy file: {_sentence(error)}") from error


def unreadable(path: Path, error: OSError) -> InputError:
    """The InputError for a file that cannot be opened or read."""
    return InputError(f"cannot read {str(path)!r}: {error.strerror or error}")


def recover_ml_dtype(array: np.ndarray, expected: TensorType) -> np.ndarray:
    """numpy saves a bf16 or f8 array as nameless bytes (``V2``): ``expected`` gives them their name back."""
    dtype = dtypes.numpy_dtype(expected.dtype)
    nameless = array.dtype.kind == "V" and array.dtype.fields is None
    if nameless and dtypes.is_ml_dtype(dtype) and array.dtype.itemsize == dtype.itemsize:
        return array.view(dtype)
    return array


def spell_type(array: np.ndarray) -> str:
    """The type of an array as MLIR spells it, with numpy's name for a dtype that MLIR has no word for."""
    name = dtypes.from_numpy(array.dtype) if dtypes.is_known(array.dtype) else array.dtype.name
    return "".join(f"{size}x" for size in array.shape) + name


def _read_array(file: BinaryIO, size: int, path: Path) -> np.ndarray:
    start = file.read(len(MAGIC))
    if start.startswith(_ZIP):
        raise InputError(f"{str(path)!r} is an npz archive, not an npy; save the one array with numpy.save")
    if start != MAGIC:
        raise InputError(f"{str(path)!r} is not an npy file: it does not start with numpy's mark")
    file.seek(-len(MAGIC), os.SEEK_CUR)
    version = np.lib.format.read_magic(file)
    if version not in _HEADERS:
        raise InputError(f"{str(path)!r} has npy version {version}; versions 1.0 and 2.0 hold plain arrays")
    shape, fortran_order, dtype = _HEADERS[version](file)
    if dtype.hasobject:
        raise InputError(
            f"{str(path)!r} holds Python objects, which are never unpickled; save numbers with numpy.save"
        )
    count, found = math.prod(shape), size - file.tell()
    needed = count * dtype.itemsize
    if count < 0 or not dtype.itemsize:
        raise InputError(f"{str(path)!r} is not a readable npy file: shape {shape} of {dtype}")
    if needed > found:
        raise InputError(
            f"{str(path)!r} is truncated: shape {shape} of {dtype} takes {needed} bytes, found {found}"
        )
    flat = np.fromfile(file, dtype, count)
    return flat.reshape(shape, order="F" if fortran_order else "C")


def _sentence(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
