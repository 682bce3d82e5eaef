"""What the user expects of the outputs, against the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from numtrace.attribute.magnitude import largest
from numtrace.attribute.outputs import largest_gap, output_record
from numtrace.evaluate.typed.rounding import round_to
from numtrace.evaluate.types import is_float
from numtrace.instrument.dtypes import to_torch
from numtrace.worker.compilation import Variant

#: Of the largest element: eight units in the last place of bf16, the coarsest type that goldens are made in. Integers
#: are not rounded.
_GOLDEN_FLOOR = 8 * 2.0**-8

#: What is nearer to one than to the other by this is the one's.
_BESIDE = 1 / 8
#: What is rounded as both are is no further from one than this many times what that is off.
_ALIKE = 8


def golden_record(
    golden: list[Tensor | None],
    expected: list[Tensor],
    types: list[str],
    tolerance: dict[str, Any] | None,
    records: list[dict[str, Any]],
) -> dict[str, Any] | None:
    """How far the expected outputs are from the reference: the furthest, and whether rounding explains none of it.

    An expected output may be what the type of the output makes of the reference, which overflows where the exact value
    does not. ``as_compiled`` says that each which is off lies beside what was compiled, by ``records``, and that what
    was compiled is right where it is not.
    """
    found, beside = [], []
    for gold, want, element, record in zip(golden, expected, types, records, strict=True):
        if gold is None:
            continue
        beside.append(record)
        if not is_float(element):
            found.append(_apart(gold, want, 0.0, tolerance))
            continue
        exactly = _apart(gold, want, _GOLDEN_FLOOR, tolerance)
        rounded = _apart(gold, round_to(want, element).double(), _GOLDEN_FLOOR, tolerance)
        found.append(min(exactly, rounded, key=lambda f: (f["off"], f["disagreeing"])))
    furthest = max(found, key=lambda f: (f["off"], f["disagreeing"], f["max_abs"] or 0.0), default=None)
    if furthest is None:
        return None
    as_compiled = furthest["off"] and all(map(_as_compiled, found, beside))
    return furthest | {"as_compiled": as_compiled}


def _as_compiled(golden: dict[str, Any], compiled: dict[str, Any]) -> bool:
    away, off = compiled["golden_max_abs"] or 0.0, golden["max_abs"] or 0.0
    if not compiled["as_golden"]:
        return False
    if golden["off"] and not golden["disagreeing"]:
        return away < off * _BESIDE
    return away <= off * _ALIKE


def _apart(golden: Tensor, want: Tensor, floor: float, tolerance: dict[str, Any] | None) -> dict[str, Any]:
    record = output_record(golden.reshape(want.shape), want, dtype="f64", tolerance=tolerance)
    size = largest(want) or 1.0
    off = bool(record["disagreeing"]) or (record["max_abs"] or 0.0) > floor * size
    if record["allclose"] is not None:
        off = not record["allclose"]
    return {"max_abs": record["max_abs"], "of": size, "disagreeing": record["disagreeing"], "off": off}


def golden_gap(golden: list[Tensor | None], expected: list[Tensor]) -> float | None:
    """Max abs between what is expected and the reference, over all outputs that something is expected of."""
    given = [(gold, want) for gold, want in zip(golden, expected, strict=True) if gold is not None]
    return largest_gap([gold for gold, _ in given], [want for _, want in given]) if given else None


def expected_outputs(variant: Variant, count: int) -> list[Tensor | None]:
    """What the user expects of each output; None where nothing was given."""
    files = [variant.shared / "inputs" / f"expected{index}.npy" for index in range(count)]
    return [to_torch(np.load(f, allow_pickle=False)) if f.exists() else None for f in files]
