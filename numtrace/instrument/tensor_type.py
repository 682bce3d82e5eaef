"""The shape and element type of a tensor, in the spelling of MLIR and of ``iree-run-module``."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from numtrace.errors import InputError
from numtrace.instrument import dtypes

_SPELLING = re.compile(r"(?P<dims>(?:(?:[0-9]+|\?)x)*)(?P<dtype>[A-Za-z][A-Za-z0-9]*(?:<[a-z0-9]+>)?)")


@dataclass(frozen=True)
class TensorType:
    """A tensor's type: ``1x4x64x64xf32``, ``?x8xbf16``; a scalar has no dims: ``f32``.

    Shape: ``None`` is a dynamic dim. ``dtype`` is an MLIR name that ``numtrace.instrument.dtypes`` knows.
    """

    shape: tuple[int | None, ...]
    dtype: str

    @classmethod
    def parse(cls, text: str) -> TensorType:
        """The type spelled ``text``; InputError if it is no type or its element type is not supported."""
        match = _SPELLING.fullmatch(text)
        if not match:
            raise InputError(f"{text!r} is not a tensor type; write it like 1x4x64x64xf32, a scalar like f32")
        dims = match["dims"].split("x")[:-1]
        dtypes.numpy_dtype(match["dtype"])
        return cls(tuple(None if dim == "?" else int(dim) for dim in dims), match["dtype"])

    def __str__(self) -> str:
        return "".join(f"{'?' if size is None else size}x" for size in self.shape) + self.dtype

    @property
    def is_static(self) -> bool:
        """Whether every dim is a number."""
        return None not in self.shape

    @property
    def static_shape(self) -> tuple[int, ...]:
        """The shape in numbers; InputError if a dim is dynamic."""
        sizes = tuple(size for size in self.shape if size is not None)
        if len(sizes) < len(self.shape):
            raise InputError(f"the size of {self} is not known: it has a dynamic dim")
        return sizes

    @property
    def count(self) -> int:
        """The number of elements; InputError if a dim is dynamic."""
        return math.prod(self.static_shape)

    @property
    def nbytes(self) -> int:
        """The size in bytes as IREE stores it (an i1 takes a byte); InputError if a dim is dynamic."""
        return self.count * dtypes.numpy_dtype(self.dtype).itemsize

    def accepts_shape(self, shape: tuple[int | None, ...]) -> bool:
        """Whether a tensor of ``shape`` fits: a dynamic dim of this type takes any size."""
        return len(shape) == len(self.shape) and all(
            mine is None or mine == theirs for mine, theirs in zip(self.shape, shape, strict=True)
        )

    def accepts(self, other: TensorType) -> bool:
        """Whether a tensor of type ``other`` fits: its shape does, and its elements have the same bits."""
        return dtypes.same_storage(self.dtype, other.dtype) and self.accepts_shape(other.shape)
