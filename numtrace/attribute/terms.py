"""The error terms of one site, each evaluated separately: total = introduced + inherited + semantic."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from numtrace.attribute.metrics import additivity, difference, max_ulp
from numtrace.attribute.ulp import is_float_type
from numtrace.evaluate.tensors import defined
from numtrace.evaluate.types import widen

#: Elements per block while the sum of the terms is checked, to keep temporaries small.
_BLOCK = 1 << 20


def site_terms(compiled: Tensor, exact_compiled: Tensor, exact_reference: Tensor, reference: Tensor, dtype: str) -> dict[str, Any]:
    """``total``, ``introduced``, ``inherited``, ``semantic`` and ``additivity`` of the report's site.

    Args:
        compiled: C, what the dispatch made.
        exact_compiled: d_R(x_C), the exact dispatch on the inputs that it really got.
        exact_reference: d_R(x_ref), the exact dispatch on the reference trajectory.
        reference: ref, the reference value in the site's layout.
        dtype: the site's element type, for ULPs.

    All of one shape. Elements that the program leaves undefined are left out of every term.
    """
    where = _defined(exact_compiled, exact_reference, reference)
    pairs = {
        "total": (compiled, reference),
        "introduced": (compiled, exact_compiled),
        "inherited": (exact_compiled, exact_reference),
        "semantic": (exact_reference, reference),
    }
    norm = _norm(reference, where)
    record: dict[str, Any] = {name: _term(*pair, norm, dtype, where) for name, pair in pairs.items()}
    record["additivity"] = _additivity(compiled, exact_compiled, exact_reference, reference, where)
    return record


def _defined(*values: Tensor) -> Tensor | None:
    mask: Tensor | None = None
    for value in values:
        part = defined(value)
        if part is not None:
            mask = part if mask is None else mask & part
    return mask


def _norm(value: Tensor, where: Tensor | None) -> float:
    value = widen(value) if value.is_floating_point() else value.double()
    if where is not None:
        value = torch.where(where, value, 0.0)
    return float(torch.linalg.vector_norm(value.nan_to_num(0.0, 0.0, 0.0))) if value.numel() else 0.0


def _term(a: Tensor, b: Tensor, norm: float, dtype: str, where: Tensor | None) -> dict[str, Any]:
    if a is b:
        return {"max_abs": 0.0, "mean_abs": 0.0, "rel_l2": 0.0, "max_ulp": 0.0 if is_float_type(dtype) else None}
    gap = difference(a, b, where)
    kinds = gap.kinds
    return {
        "max_abs": gap.max_abs,
        "at": None if gap.at is None else list(gap.at),
        "mean_abs": gap.mean_abs,
        "rel_l2": None if gap.l2 is None else (gap.l2 / norm if norm else (0.0 if gap.l2 == 0 else None)),
        "cosine": gap.cosine,
        "max_ulp": max_ulp(a, b, dtype, where) if is_float_type(dtype) else None,
        "nan": kinds.nan_both + kinds.nan_actual + kinds.nan_expected,
        "inf": kinds.total - kinds.nan_both - kinds.nan_actual - kinds.nan_expected,
    }


def _additivity(c: Tensor, exact_c: Tensor, exact_ref: Tensor, ref: Tensor, where: Tensor | None) -> float:
    flat = [value.reshape(-1) for value in (c, exact_c, exact_ref, ref)]
    mask = None if where is None else where.reshape(-1)
    worst = 0.0
    for start in range(0, flat[0].numel(), _BLOCK):
        c, exact_c, exact_ref, ref = (value[start : start + _BLOCK].double() for value in flat)
        part = None if mask is None else mask[start : start + _BLOCK]
        worst = max(worst, additivity(c - ref, c - exact_c, exact_c - exact_ref, exact_ref - ref, where=part))
    return worst
