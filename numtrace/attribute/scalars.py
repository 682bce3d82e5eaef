"""Scalars that a lowering stored with rounding: 0.13025 in the source is 0.130249992 in the f32 program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from iree.compiler import ir

from numtrace.attribute.ulp import is_float_type, ulp
from numtrace.evaluate.program import Op, Program, walk
from numtrace.evaluate.types import tensor_type


@dataclass(frozen=True, slots=True)
class Rounded:
    """A constant of the compiled program and the source scalar that it stands for."""

    source: float
    stored: float
    beyond_half_ulp: bool

    @property
    def rel(self) -> float:
        return abs(self.stored - self.source) / abs(self.source)


def source_scalars(program: Program) -> set[float]:
    """Every float scalar that the source program states in double precision."""
    found: set[float] = set()
    for op in walk([program.body]):
        if op.name == "torch.constant.float":
            found.add(float(op.attributes["value"].value))
        elif (
            op.name == "arith.constant"
            and (value := _scalar(op)) is not None
            and tensor_type(op.result_types[0])[1] == "f64"
        ):
            found.add(value)
    return found


def _scalar(op: Op) -> float | None:
    attribute = op.attributes["value"]
    if isinstance(attribute, ir.FloatAttr):
        return attribute.value
    if isinstance(attribute, ir.DenseElementsAttr) and attribute.is_splat:
        splat = attribute.get_splat_value()
        return splat.value if isinstance(splat, ir.FloatAttr) else None
    return None


def rounded_constants(body: Op, scalars: Iterable[float]) -> list[tuple[Op, Rounded]]:
    """The float constants in ``body`` that are a source scalar within one unit in the last place, but not equal."""
    found = []
    typed = _read_as_indices(body)
    for op in walk(body.regions):
        if op.results and op.results[0] in typed:
            continue
        if op.name != "arith.constant" or (stored := _scalar(op)) is None:
            continue
        element = tensor_type(op.result_types[0])[1]
        if not is_float_type(element) or element == "f64" or stored in scalars:
            continue
        near = [scalar for scalar in scalars if scalar and abs(stored - scalar) <= _ulp(scalar, element)]
        if near:
            source = min(near, key=lambda scalar: abs(stored - scalar))
            found.append((op, Rounded(source, stored, abs(stored - source) > _ulp(source, element) / 2)))
    return found


def _read_as_indices(body: Op) -> set[int]:
    """The slots that only index arithmetic reads: it is evaluated as typed, whatever the source's scalar was."""
    read: dict[int, bool] = {}
    for op in walk(body.regions):
        for slot in op.operands:
            read[slot] = read.get(slot, True) and op.typed
    return {slot for slot, typed in read.items() if typed}


def _ulp(value: float, element: str) -> float:
    return float(ulp(torch.tensor(value, dtype=torch.float64), element))


def set_to_source(constants: list[tuple[Op, Rounded]]) -> None:
    """Has the constants evaluated with the values of the source from now on."""
    for op, rounded in constants:
        shape, _ = tensor_type(op.result_types[0])
        op.cache["value"] = torch.full(shape, rounded.source, dtype=torch.float64)  # type: ignore[arg-type]


@contextmanager
def as_in_source(constants: list[tuple[Op, Rounded]]) -> Iterator[None]:
    """Evaluates the constants with the values of the source while the context lasts."""
    set_to_source(constants)
    try:
        yield
    finally:
        for op, _ in constants:
            op.cache.pop("value", None)
