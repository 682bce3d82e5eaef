"""A value in its two meanings, and the distance that correct code may keep from the typed one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from numtrace.evaluate.op import Op
from numtrace.evaluate.tensors import viewed
from numtrace.evaluate.types import NATIVE, tensor_type, widen


@dataclass(frozen=True, slots=True)
class Typed:
    """One value, all tensors of one shape.

    ``exact``: float64 (integers as they are), roundings erased. ``typed``: in the type of the IR, each result
    rounded to it. ``bound``: float32, at least |compiled - typed| for correct code, of any kind that the IR
    allows; None where correct code can only have ``typed`` itself. For booleans and integers it is what they may
    be off by; for complex numbers it is complex too, what each part may be off by. ``same``: no rounding has taken
    place, ``typed`` is ``exact``. ``growth``, of a sum: where code adds something to it, it may begin the sum with
    that (MLIR's ``CanonicalizeContractAdd``), and is off by this much of it more.
    """

    exact: Tensor
    typed: Tensor
    bound: Tensor | None = None
    same: bool = True
    growth: float = 0.0

    def map(self, move: Callable[[Tensor], Tensor]) -> Typed:
        """The value moved: ``move`` must not compute."""
        exact, typed = (viewed(lane, move) for lane in (self.exact, self.typed))
        return Typed(exact, typed, None if self.bound is None else move(self.bound), self.same, self.growth)

    @property
    def shape(self) -> torch.Size:
        return self.exact.shape

    @property
    def wide(self) -> Tensor:
        """``typed`` in float64 (integers as they are)."""
        return self.exact if self.same else widen(self.typed)

    @property
    def error(self) -> Tensor:
        """``bound``, zeros where there is none."""
        if self.bound is None:
            return torch.zeros((), dtype=bound_dtype(self.exact)).expand(self.exact.shape)
        return self.bound


def bound_dtype(exact: Tensor) -> torch.dtype:
    """The dtype of the bound of a value."""
    return torch.complex64 if exact.is_complex() else torch.float32


def lift(value: Any, type_: Any) -> Typed:
    """A plain tensor as a value that nothing was rounded of; ``type_`` is its type in the IR."""
    if isinstance(value, Typed):
        return value
    exact = widen(value)
    native = NATIVE.get(tensor_type(type_)[1], value.dtype)
    return Typed(exact, value if value.dtype == native else value.to(native))


def bounded(values: Iterable[Typed]) -> bool:
    return any(value.bound is not None for value in values)


def together(values: Iterable[Typed]) -> bool:
    """Whether no value has been rounded, so that one evaluation serves both meanings."""
    return all(value.same for value in values)


def element_of(op: Op) -> str:
    """The element type of the result of ``op``."""
    return tensor_type(op.result_types[0])[1]
