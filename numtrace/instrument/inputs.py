"""What goes into a model and what should come out: inputs, given or seeded, and golden outputs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from numtrace.errors import InputError
from numtrace.instrument import dtypes
from numtrace.instrument.input_spec import load_input
from numtrace.instrument.npy import read_npy, recover_ml_dtype, spell_type
from numtrace.instrument.tensor_type import TensorType

if TYPE_CHECKING:
    import torch

__all__ = ["TensorType", "given_inputs", "load_golden", "load_inputs", "range_drawn_from"]

#: Seeded integers of 32 and 64 bits are drawn from [0, this): indices, lengths and token numbers are of this width.
_SMALL = 10


def load_inputs(
    specs: Sequence[str], signature: Sequence[TensorType], seed: int
) -> tuple[list[torch.Tensor], list[str]]:
    """One tensor per input of ``signature``, of its dtype, and notices for the user.

    ``specs`` are the values of ``--input`` in order; with none the inputs are random: floats standard normal
    (drawn in f32, so that models that differ in dtype only see the same numbers), integers uniform over
    :func:`range_drawn_from`, fair bools; the same for the same seed.
    InputError: count, shape or dtype differ, a file is missing or broken.
    """
    if not specs:
        return _random_inputs(signature, seed), []
    arrays, notices = given_inputs(specs, signature)
    return [dtypes.to_torch(array) for array in arrays], notices


def given_inputs(specs: Sequence[str], signature: Sequence[TensorType]) -> tuple[list[np.ndarray], list[str]]:
    """What ``specs`` give, as :func:`load_inputs` does, but without torch. InputError: as there."""
    if len(specs) != len(signature):
        types = f" ({', '.join(map(str, signature))})" if signature else ""
        raise InputError(
            f"{len(specs)} given as --input, and the function takes {len(signature)}{types}; "
            "repeat --input once per input, in order"
        )
    notices: list[str] = []
    arrays = []
    for index, (spec, expected) in enumerate(zip(specs, signature, strict=True)):
        try:
            arrays.append(load_input(spec, expected, notices))
        except InputError as error:
            raise InputError(f"input {index}: {error}") from error
    return arrays, notices


def load_golden(path: Path | Sequence[Path], types: Sequence[TensorType]) -> list[torch.Tensor]:
    """The golden outputs, one per type, in the dtype they were saved in.

    ``path`` is one npy with all arrays in order (numpy.save called repeatedly on one file), or one npy per
    output. A float output takes a golden of any float dtype, an integer output one of any integer dtype, or
    whole numbers in a float dtype.
    InputError: count or shape differ, fractions for integers, a file is missing or broken.
    """
    paths = [path] if isinstance(path, Path) else list(path)
    arrays = [array for one in paths for array in read_npy(one)]
    shown = ", ".join(repr(str(one)) for one in paths)
    if len(arrays) != len(types):
        raise InputError(
            f"{shown} holds {len(arrays)} golden arrays, and the function has {len(types)} outputs "
            f"({', '.join(map(str, types))})"
        )
    tensors = []
    for index, (array, expected) in enumerate(zip(arrays, types, strict=True)):
        golden = _by_bits(recover_ml_dtype(array, expected), expected)
        kinds = (_kind(golden.dtype), _kind(dtypes.numpy_dtype(expected.dtype)))
        same_kind = kinds[0] == kinds[1] or (kinds == ("float", "integer") and _is_whole(golden))
        if not same_kind or not expected.accepts_shape(golden.shape):
            raise InputError(
                f"golden {index} of {shown} is {spell_type(golden)}, and the output is {expected}"
            )
        tensors.append(dtypes.to_torch(golden))
    return tensors


def range_drawn_from(dtype: str) -> tuple[int, int] | None:
    """The least and the largest seeded integer of element type ``dtype``; None where it is no integer.

    Of 8 and 16 bits every value is drawn: they hold data, quantized or of images, and a pass that takes an unsigned
    number for a signed one is only seen where the highest bit is set.
    """
    kind = dtypes.numpy_dtype(dtype)
    if kind.kind not in "iu":
        return None
    if kind.itemsize > 2:
        return 0, _SMALL - 1
    info = np.iinfo(kind)
    return int(info.min), int(info.max)


def _random_inputs(signature: Sequence[TensorType], seed: int) -> list[torch.Tensor]:
    import torch

    generator = torch.Generator().manual_seed(seed)
    tensors = []
    for index, type_ in enumerate(signature):
        if not type_.is_static:
            times = f" {len(signature)} times, in order, for this one" if len(signature) > 1 else ","
            raise InputError(
                f"input {index} is {type_}, and its dynamic dims have no size; "
                f"give --input{times} such as {_example(type_)}, or @x.npy"
            )
        shape, dtype = type_.static_shape, dtypes.torch_dtype(type_.dtype)
        if dtypes.is_float(type_.dtype):
            drawn = torch.randn(shape, generator=generator)
        else:
            least, largest = range_drawn_from(type_.dtype) or (0, 1)
            drawn = torch.randint(least, largest + 1, shape, generator=generator)
        tensors.append(drawn.to(dtype))
    return tensors


def _example(type_: TensorType) -> str:
    """A value of ``type_`` as ``--input`` takes it, with some size for each dim that has none."""
    sized = TensorType(tuple(2 if size is None else size for size in type_.shape), type_.dtype)
    return f"{sized}={0.5 if dtypes.is_float(type_.dtype) else 1}"


def _by_bits(array: np.ndarray, expected: TensorType) -> np.ndarray:
    """Integers of the width that is expected with the sign that is: below the torch dialect bits have none."""
    dtype = dtypes.numpy_dtype(expected.dtype)
    both = array.dtype.kind in "iu" and dtype.kind in "iu"
    return array.view(dtype) if both and array.dtype.itemsize == dtype.itemsize else array


def _is_whole(array: np.ndarray) -> bool:
    values = array.astype(np.float64)
    return bool((values == np.trunc(values)).all())  # False for a NaN


def _kind(dtype: np.dtype) -> str:
    if not dtypes.is_known(dtype):
        return "other"
    name = dtypes.from_numpy(dtype)
    return "float" if dtypes.is_float(name) else "bool" if name == "i1" else "integer"
