"""Element types: MLIR's names, and what numpy (with ml_dtypes) and torch call them.

bf16 and the 8-bit floats are ml_dtypes in numpy, which torch does not know, and the other way round; between
the two they travel as integers of the same bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from numtrace.errors import InputError

if TYPE_CHECKING:
    import torch

_ML_DTYPES = {
    "bf16": "bfloat16",
    "f8E4M3FN": "float8_e4m3fn",
    "f8E5M2": "float8_e5m2",
    "f8E4M3FNUZ": "float8_e4m3fnuz",
    "f8E5M2FNUZ": "float8_e5m2fnuz",
    "f8E8M0FNU": "float8_e8m0fnu",
}

#: MLIR name → the name that numpy (or ml_dtypes) and torch share; of the names of one dtype the first counts.
KNOWN: Mapping[str, str] = MappingProxyType(
    {
        "f32": "float32",
        "f64": "float64",
        "f16": "float16",
        **_ML_DTYPES,
        "i1": "bool",
        **{f"i{width}": f"int{width}" for width in (8, 16, 32, 64)},
        **{f"si{width}": f"int{width}" for width in (8, 16, 32, 64)},
        **{f"ui{width}": f"uint{width}" for width in (8, 16, 32, 64)},
        "index": "int64",
        "complex<f32>": "complex64",
        "complex<f64>": "complex128",
    }
)

#: Bytes → the integers that carry the bits of an ml_dtypes dtype to torch and back.
_BITS = {1: "uint8", 2: "uint16"}


def numpy_dtype(name: str) -> np.dtype:
    """The numpy (or ml_dtypes) dtype of the MLIR element type ``name``; InputError if there is none."""
    shared = _shared_name(name)
    if name not in _ML_DTYPES:
        return np.dtype(shared)
    import ml_dtypes  # takes half a second

    return np.dtype(getattr(ml_dtypes, shared))


def torch_dtype(name: str) -> torch.dtype:
    """The torch dtype of the MLIR element type ``name``; InputError if there is none."""
    import torch

    return getattr(torch, _shared_name(name))


def from_torch(dtype: torch.dtype) -> str:
    """The MLIR name of a torch dtype: signed integers are signless (``i32``), unsigned ones are ``ui8``…"""
    return from_name(str(dtype).removeprefix("torch."))


def from_numpy(dtype: np.dtype) -> str:
    """The MLIR name of a numpy or ml_dtypes dtype of either byte order; InputError if there is none."""
    return from_name(dtype.name)


def from_name(name: str) -> str:
    """The MLIR name of the dtype that numpy and torch both call ``name`` (``bfloat16``); else InputError."""
    for mlir, other in KNOWN.items():
        if other == name:
            return mlir
    raise InputError(f"dtype {name!r} is not supported; supported are {', '.join(KNOWN)}")


def is_known(dtype: np.dtype) -> bool:
    """Whether a numpy dtype is one of the table (text, records and objects are not)."""
    return dtype.name in KNOWN.values()


def is_ml_dtype(dtype: np.dtype) -> bool:
    """Whether a dtype is one that numpy has from ml_dtypes (bf16, f8)."""
    return dtype.name in _ML_DTYPES.values()


def is_float(name: str) -> bool:
    """Whether the MLIR element type ``name`` is a float type."""
    return name.startswith(("f", "bf"))


def precision(name: str) -> int:
    """The bits of a float type's significand, the hidden one too; InputError for an unknown type."""
    dtype = numpy_dtype(name)
    if not is_ml_dtype(dtype):
        return int(np.finfo(dtype).nmant) + 1
    import ml_dtypes

    return int(ml_dtypes.finfo(dtype).nmant) + 1


def same_storage(a: str, b: str) -> bool:
    """Whether values of ``a`` and ``b`` have the same bits: equal, or integers of one width.

    A signless ``i8`` holds a ``ui8`` or an ``si8``; ``ui8`` and ``si8`` do not agree; ``index`` is ``i64``.
    """
    a, b = ("i64" if name == "index" else name for name in (a, b))
    return a == b or (a.lstrip("su") == b.lstrip("su") and (a.startswith("i") or b.startswith("i")))


def to_torch(array: np.ndarray) -> torch.Tensor:
    """``array`` as a tensor of the same dtype and shape on torch's default device, which may be a GPU.

    Its memory is shared wherever torch can address it: a tensor over a read-only array (a mapped file) must not be
    written to. InputError for a dtype that torch lacks (text, records, objects).
    """
    import torch

    dtype = torch_dtype(from_numpy(array.dtype))
    native = array.astype(array.dtype.newbyteorder("="), copy=False)
    steps = [step for step, size in zip(native.strides, native.shape, strict=True) if size > 1]
    if not native.flags.aligned or any(step < 0 or step % native.itemsize for step in steps):
        native = native.copy()
    if is_ml_dtype(native.dtype):
        tensor = torch.from_dlpack(native.view(_BITS[native.itemsize])).view(dtype)
    else:
        tensor = torch.from_dlpack(native)
    return tensor.to(torch.get_default_device())


def to_numpy(tensor: torch.Tensor) -> np.ndarray:
    """``tensor`` as an array of the same dtype (ml_dtypes for bf16, f8) and shape; it shares its memory on the CPU."""
    import torch

    plain = tensor.detach().cpu().resolve_neg().resolve_conj()
    dtype = numpy_dtype(from_torch(tensor.dtype))
    if is_ml_dtype(dtype):
        return plain.view(getattr(torch, _BITS[dtype.itemsize])).numpy().view(dtype)
    return plain.numpy()


def _shared_name(name: str) -> str:
    if name not in KNOWN:
        raise InputError(f"element type {name!r} is not supported; supported are {', '.join(KNOWN)}")
    return KNOWN[name]
