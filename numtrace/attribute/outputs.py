"""The program's outputs against the reference, as the report's ``output`` records."""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor

from numtrace.attribute.closeness import allclose
from numtrace.attribute.images import is_image, u8_steps
from numtrace.attribute.metrics import difference, max_ulp
from numtrace.evaluate.formats import is_float_type
from numtrace.evaluate.tensors import defined


def output_record(
    actual: Tensor,
    expected: Tensor,
    *,
    dtype: str,
    golden: Tensor | None = None,
    tolerance: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """One result; ``expected`` is float64. PSNR and 8-bit steps only where ``expected`` is an image in [0, 1].

    ``golden`` is what the user expects of it: where there is one, a tolerance is for the distance from that, and
    ``as_golden`` says whether it is NaN or infinite in the same elements.
    """
    expected = expected.reshape(actual.shape)
    gap = difference(actual, expected, defined(expected))
    image = is_image(expected)
    psnr = gap.psnr_db() if image else None
    from_golden = None if golden is None else difference(actual, golden.reshape(actual.shape))
    record: dict[str, Any] = {
        "max_abs": gap.max_abs,
        "at": None if gap.at is None else list(gap.at),
        "mean_abs": gap.mean_abs,
        "rel_l2": gap.rel_l2,
        "max_ulp": max_ulp(actual, expected, dtype) if is_float_type(dtype) else None,
        "allclose": None,
        "psnr_db": psnr if psnr is not None and math.isfinite(psnr) else None,
        "u8_max": u8_steps(actual, expected) if image else None,
        "nonfinite": gap.nonfinite,
        "disagreeing": gap.kinds.disagreeing,
        # of those, where only the reference has the NaN or the infinity
        "lost": gap.kinds.nan_expected + gap.kinds.inf_expected,
        "golden_max_abs": None if from_golden is None else from_golden.max_abs,
        "as_golden": from_golden is not None and not from_golden.kinds.disagreeing,
        "dtype": dtype,
        "shape": list(actual.shape),
    }
    if tolerance and golden is not None:
        own = output_record(actual, golden.reshape(actual.shape), dtype=dtype, tolerance=tolerance)
        record["allclose"] = own["allclose"]
    elif tolerance:
        record["allclose"] = _within(actual, expected, tolerance, record)
    return record


def _within(actual: Tensor, expected: Tensor, tolerance: dict[str, Any], record: dict[str, Any]) -> bool:
    """Whether the output meets everything in ``tolerance``; a measure that the output does not have is not met."""
    checks: list[bool] = []
    if tolerance["atol"] is not None or tolerance["rtol"] is not None:
        checks.append(allclose(actual, expected, tolerance["atol"] or 0.0, tolerance["rtol"] or 0.0).ok)
    if tolerance["psnr_db"] is not None:
        identical = record["max_abs"] == 0 and not record["disagreeing"]
        checks.append(
            identical or (record["psnr_db"] is not None and record["psnr_db"] >= tolerance["psnr_db"])
        )
    if tolerance["image"]:
        checks.append(record["u8_max"] is not None and record["u8_max"] <= 1 and not record["disagreeing"])
    return all(checks)


def worst_first(records: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The record with the largest error; one that has no finite element is the worst."""
    return max(records, key=lambda r: (r["max_abs"] is None, r["max_abs"] or 0.0), default=None)


def largest_gap(a: list[Tensor], b: list[Tensor]) -> float | None:
    """Max abs over the elements finite in both; None where a tensor has none."""
    gaps = [output_record(x, y.reshape(x.shape), dtype="f64")["max_abs"] for x, y in zip(a, b, strict=True)]
    return None if None in gaps else max(gaps, default=0.0)
