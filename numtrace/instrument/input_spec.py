"""One value of ``--input``, in the forms of ``iree-run-module``, as an array.

Forms: ``@x.npy`` · ``1x4x64x64xf32=0.5`` (every element) · ``2x2xi32=1 2 3 4``, ``2x2xi32=[[1 2][3 4]]``,
``f32=1.0`` · ``4xf32=@x.bin`` (raw, little-endian) · ``4xf32`` (zeros) · ``3.14`` (only for a scalar).
A path is data: spaces and odd characters are as they are.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from numtrace.errors import InputError
from numtrace.instrument import dtypes
from numtrace.instrument.npy import MAGIC, read_npy, recover_ml_dtype, spell_type, unreadable
from numtrace.instrument.tensor_type import TensorType

_BOOLS = {"0": False, "1": True, "false": False, "true": True}


def load_input(spec: str, expected: TensorType, notices: list[str]) -> np.ndarray:
    """The array that ``spec`` describes, in the dtype of ``expected``; notices for the user join ``notices``.

    InputError: not one of the forms, shape or dtype differ from ``expected``, a file is missing or broken.
    """
    if spec.startswith("@"):
        return _from_npy(Path(spec[1:]), expected)
    if spec == "-":
        raise InputError("inputs are not read from standard input; save them with numpy.save and give @x.npy")
    text, equals, value = spec.partition("=")
    if not equals and not expected.shape and _is_number(text):
        return _from_values(text, expected)
    declared = TensorType.parse(text.strip())
    if not declared.is_static:
        raise InputError(f"{declared} has a dynamic dim; a value needs a number for each dim")
    if not expected.accepts(declared):
        raise InputError(_mismatch(str(declared), expected))
    if not equals:
        array = np.zeros(declared.static_shape, _numpy(declared))
    elif value.startswith("@"):
        array = _from_file(Path(value[1:]), declared, spec, notices)
    else:
        array = _from_values(value, declared)
    return array.view(_numpy(expected))


def _from_file(path: Path, declared: TensorType, spec: str, notices: list[str]) -> np.ndarray:
    if path.suffix.lower() != ".npy" and not _starts_with(path, MAGIC):
        return _from_raw(path, declared)
    array = _from_npy(path, declared)
    notices.append(
        f"{spec!r} is read as an npy file; iree-run-module would read it raw, header included: "
        f"there, give {'@' + str(path)!r}"
    )
    return array


def _from_npy(path: Path, expected: TensorType) -> np.ndarray:
    arrays = read_npy(path)
    if len(arrays) > 1:
        raise InputError(f"{str(path)!r} holds {len(arrays)} arrays; give each input its own file")
    array = recover_ml_dtype(arrays[0], expected)
    if not expected.accepts_shape(array.shape) or not _same_bits(array.dtype, expected.dtype):
        raise InputError(_mismatch(f"{spell_type(array)} in {str(path)!r}", expected))
    return array.astype(array.dtype.newbyteorder("="), copy=False).view(_numpy(expected))


def _from_raw(path: Path, declared: TensorType) -> np.ndarray:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from error
    except ValueError as error:  # a NUL in the path
        raise InputError(f"cannot read {str(path)!r}: {error}") from error
    if len(data) != declared.nbytes:
        state = "is truncated" if len(data) < declared.nbytes else "is too long"
        raise InputError(
            f"{str(path)!r} {state}: {declared} takes {declared.nbytes} bytes, found {len(data)}"
        )
    little = _numpy(declared).newbyteorder("<")
    return np.frombuffer(bytearray(data), little).reshape(declared.static_shape)


def _from_values(text: str, declared: TensorType) -> np.ndarray:
    """The elements, or one for all of them; brackets and commas only separate, as in IREE."""
    tokens = text.translate(str.maketrans("[],", "   ")).split()
    if len(tokens) not in (1, declared.count):
        raise InputError(f"{len(tokens)} values for {declared}, which takes {declared.count}, or 1 for all")
    dtype = _numpy(declared)
    numbers = [_number(token, declared.dtype) for token in tokens]
    with np.errstate(over="ignore"):  # 1e50 as an f32 is an infinity, as in IREE
        values = np.array(numbers, np.float64).astype(dtype) if dtypes.is_float(declared.dtype) else numbers
    return np.full(declared.count, values, dtype).reshape(declared.static_shape)


def _number(token: str, name: str) -> float | int | bool:
    dtype = dtypes.numpy_dtype(name)
    try:
        if dtypes.is_float(name):
            return float(token)
        if name == "i1":
            return _BOOLS[token.lower()]
        value = int(token) if token.lstrip("+-").isdecimal() else int(token, 0)
    except (ValueError, KeyError):
        raise InputError(f"{token!r} is not a value of {name}") from None
    limits = np.iinfo(dtype)
    if not limits.min <= value <= limits.max:
        raise InputError(f"{token} does not fit {name} ({limits.min} to {limits.max})")
    return value


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return text.strip().lower() in _BOOLS
    return True


def _starts_with(path: Path, mark: bytes) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(mark)) == mark
    except (OSError, ValueError):
        return False  # said again, with the reason, by whoever reads the file


def _same_bits(dtype: np.dtype, name: str) -> bool:
    return dtypes.is_known(dtype) and dtypes.same_storage(dtypes.from_numpy(dtype), name)


def _numpy(type_: TensorType) -> np.dtype:
    return dtypes.numpy_dtype(type_.dtype)


def _mismatch(given: str, expected: TensorType) -> str:
    return f"given {given}, and the function takes {expected}"
