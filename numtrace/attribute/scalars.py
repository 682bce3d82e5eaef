"""Scalars that a lowering stored with rounding: 0.13025 in the source is 0.130249992 in the f32 program."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import torch
from iree.compiler import ir

from numtrace.evaluate.formats import is_float_type, ulp
from numtrace.evaluate.op import Op, walk
from numtrace.evaluate.program import Program
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

    def set(self, op: Op) -> None:
        shape, _ = tensor_type(op.result_types[0])
        op.cache["value"] = torch.full(shape, self.source, dtype=torch.float64)  # type: ignore[arg-type]

    def unset(self, op: Op) -> None:
        op.cache.pop("value", None)


class Exact(Protocol):
    """How an op is evaluated that a lowering made with a rounding, as the source has it."""

    def set(self, op: Op) -> None: ...
    def unset(self, op: Op) -> None: ...


#: Ops of a program that a lowering rounded, with what the source has for them.
Constants = Sequence[tuple[Op, Exact]]

#: The float scalars of the source by the stamp of each op that uses them.
Scalars = Mapping[int, frozenset[float]]


def source_scalars(program: Program) -> Scalars:
    """Every float scalar that the source program states in double precision, and which ops use it."""
    stated: dict[int, float] = {}
    for op in walk([program.body]):
        if op.name == "torch.constant.float":
            stated[op.results[0]] = float(op.attributes["value"].value)
        elif op.name == "arith.constant" and tensor_type(op.result_types[0])[1] == "f64":
            value = _scalar(op)
            if value is not None:
                stated[op.results[0]] = value
    used: dict[int, set[float]] = defaultdict(set)
    for op in walk([program.body]):
        for slot in op.operands:
            if slot in stated:
                for stamp in op.stamps:
                    used[stamp].add(stated[slot])
    return {stamp: frozenset(values) for stamp, values in used.items()}


def _scalar(op: Op) -> float | None:
    attribute = op.attributes["value"]
    if isinstance(attribute, ir.FloatAttr):
        return attribute.value
    if isinstance(attribute, ir.DenseElementsAttr) and attribute.is_splat:
        splat = attribute.get_splat_value()
        return splat.value if isinstance(splat, ir.FloatAttr) else None
    return None


def rounded_constants(body: Op, scalars: Scalars, places: Sequence[Op] = ()) -> list[tuple[Op, Rounded]]:
    """The float constants in ``body`` that stand for a scalar of the source, but are not equal to it.

    A constant stands for a scalar when an op that reads it comes from a source op that uses that scalar, and the
    two are one unit in the last place apart at most. Of what index arithmetic alone reads those that ``places`` do.
    """
    found = []
    for op, stored, element, stamps in _constants(body, places):
        near = [
            scalar
            for stamp in stamps
            for scalar in scalars.get(stamp, ())
            if scalar and abs(stored - scalar) <= _ulp(scalar, element)
        ]
        if near and stored not in near:
            found.append((op, _rounded(min(near, key=lambda scalar: abs(stored - scalar)), stored, element)))
    return found


def derived_constants(body: Op, known: Iterable[Op], places: Sequence[Op] = ()) -> list[tuple[Op, Rounded]]:
    """Constants that a lowering computed and then rounded, such as √2 in GELU or 1/√d in attention.

    A guess, to be believed only when the program with these values agrees with the source's: the stored value
    must be the correctly rounded or truncated one of a short decimal, or of a closed form. ``places`` as above.
    """
    found, skip = [], set(map(id, known))
    for op, stored, element, _ in _constants(body, places):
        if id(op) in skip or not stored or not math.isfinite(stored) or float(stored * 2**12).is_integer():
            continue
        near = [
            value for value in _forms(abs(stored)) if 0 < abs(abs(stored) - value) <= _ulp(value, element)
        ]
        if near:
            source = math.copysign(min(near, key=lambda value: abs(abs(stored) - value)), stored)
            found.append((op, _rounded(source, stored, element)))
    return found


def _forms(value: float) -> Iterator[float]:
    """Closed forms near ``value``: decimals of six digits, k·c and √k·c and their inverses for well-known c."""
    yield float(f"{value:.6g}")
    for unit in (1.0, math.pi, 1 / math.pi, math.log(2), math.log2(math.e), math.log(10), 2 / math.pi):
        for root in (unit, math.sqrt(unit)):
            ratio = value / root
            for count in (ratio, 1 / ratio, ratio * ratio, 1 / (ratio * ratio)):
                if not 0.5 < count < 1 << 20:  # of a mask's lowest float the square is infinite
                    continue
                whole = round(count)
                if abs(count - whole) < 1e-5 * whole:
                    yield from (root * whole, root / whole, root * math.sqrt(whole), root / math.sqrt(whole))


def _rounded(source: float, stored: float, element: str) -> Rounded:
    return Rounded(source, stored, abs(stored - source) > _ulp(source, element) / 2)


def _constants(body: Op, places: Sequence[Op]) -> Iterator[tuple[Op, float, str, frozenset[int]]]:
    """The narrow float constants that data is computed with, or, if there are any, only ``places``.

    Each as the op, its value, its type, its readers' stamps.
    """
    known = {*map(id, places)}
    readers: dict[int, list[Op]] = defaultdict(list)
    for op in walk(body.regions):
        for slot in op.operands:
            readers[slot].append(op)
    for op in walk(body.regions):
        if op.name != "arith.constant" or (stored := _scalar(op)) is None:
            continue
        element = tensor_type(op.result_types[0])[1]
        reading = readers[op.results[0]]
        if not is_float_type(element) or element == "f64":
            continue
        # What only index arithmetic reads is evaluated as typed, whatever the source's scalar was.
        indexes = all(reader.typed for reader in reading)
        if indexes != bool(known) or (known and not any(id(reader) in known for reader in reading)):
            continue
        yield op, stored, element, frozenset(stamp for reader in (*reading, op) for stamp in reader.stamps)


def _ulp(value: float, element: str) -> float:
    return float(ulp(torch.tensor(value, dtype=torch.float64), element))


def set_to_source(constants: Constants) -> None:
    """Has the ops evaluated as the source has them from now on."""
    for op, exact in constants:
        exact.set(op)


@contextmanager
def as_in_source(constants: Constants) -> Iterator[None]:
    """Evaluates the ops as the source has them while the context lasts."""
    try:
        set_to_source(constants)
        yield
    finally:
        for op, exact in constants:
            exact.unset(op)
