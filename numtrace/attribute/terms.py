"""The error terms of one site, each evaluated separately: total = introduced + inherited + semantic.

One pass over the four tensors in blocks that fit the caches: a site may have 67 million elements. The terms
hold over the elements that are defined and finite in all four; the others are counted by kind.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import torch
from torch import Tensor

from numtrace.attribute.chunks import position
from numtrace.evaluate.formats import in_ulps, is_float_type
from numtrace.evaluate.tensors import defined

#: Elements of one block.
_BLOCK = 1 << 18
#: The pairs of operands (C, d_R(x_C), d_R(x_ref), ref) whose difference each term is.
_TERMS = {"total": (0, 3), "introduced": (0, 1), "inherited": (1, 2), "semantic": (2, 3)}
#: With d_Q(x_C) as the fifth operand, what is introduced has two parts.
_PARTS = {"rounding": (4, 1), "codegen": (0, 4)}
#: Errors of the compiled program have a size in its own units; inherited and semantic ones are exact values'.
_IN_ULPS = ("total", "introduced", "rounding", "codegen")
_EPS = 2.0**-52
#: The greatest ``additivity`` of terms that are float64 differences of shared operands. With M the largest
#: |term|, u = 2^-53 and eps = 2u: the four rounded differences are off by u·M each. `_residual` subtracts
#: from total, in this order, introduced, which leaves d_R(x_C) - ref = inherited + semantic, at most 2M, so
#: rounded by 2u·M; inherited, which leaves semantic, rounded by u·M; semantic, which leaves a few u·M, rounded
#: by a u of that. A term that is missing is exactly 0 and adds nothing. 7u·M = 3.5 eps·M to first order.
ADDITIVITY_BOUND = 4.0


def site_terms(
    compiled: Tensor,
    exact_compiled: Tensor,
    exact_reference: Tensor,
    reference: Tensor,
    dtype: str,
    typed: Tensor | None = None,
) -> dict[str, Any]:
    """``total``, ``introduced``, ``inherited``, ``semantic`` and ``additivity`` of the report's site.

    With ``typed``, ``rounding`` and ``codegen`` too.

    Args:
        compiled: C, what the dispatch made.
        exact_compiled: d_R(x_C), the exact dispatch on the inputs that it really got.
        exact_reference: d_R(x_ref), the exact dispatch on the reference trajectory.
        reference: ref, the reference value in the site's layout.
        dtype: the site's element type, for ULPs.
        typed: d_Q(x_C), the typed dispatch on the same inputs.

    All of one shape. ``rel_l2`` is relative to the reference's norm, ``additivity`` in units of 2^-52.
    """
    operands = [compiled, exact_compiled, exact_reference, reference]
    pairs = dict(_TERMS)
    if typed is not None:
        operands.append(typed)
        pairs |= _PARTS
    same = {name: operands[a] is operands[b] for name, (a, b) in pairs.items()}
    sums = {name: _Sum(dtype if name in _IN_ULPS and is_float_type(dtype) else None) for name in pairs}
    cross, norms, worst = 0.0, [0.0, 0.0], 0.0
    mask = _defined(exact_compiled, exact_reference, reference)
    flat = [value.reshape(-1) for value in operands]
    for start in range(0, flat[0].numel(), _BLOCK):
        block = [value[start : start + _BLOCK].double() for value in flat]
        keep = None if mask is None else mask[start : start + _BLOCK]
        if not math.isfinite(sum(float(value.sum()) for value in block)):
            keep = _screen(block, keep, sums, pairs)
        if keep is not None:
            block = [torch.where(keep, value, 0.0) for value in block]
        count = block[0].numel() if keep is None else int(keep.sum())
        terms = {name: block[a] - block[b] for name, (a, b) in pairs.items() if not same[name]}
        for name, total in sums.items():
            total.count += count
            if name in terms:
                total.add(terms[name], start, block[3])
        worst = max(worst, _residual("total", terms, _TERMS))
        if typed is not None:
            worst = max(worst, _residual("introduced", terms, _PARTS))
        cross += float(torch.dot(block[0], block[3]))
        norms = [
            norm + float(torch.dot(value, value))
            for norm, value in zip(norms, (block[0], block[3]), strict=True)
        ]
    record = {name: total.term(tuple(compiled.shape), math.sqrt(norms[1])) for name, total in sums.items()}
    product = math.sqrt(norms[0]) * math.sqrt(norms[1])
    record["total"]["cosine"] = max(-1.0, min(1.0, cross / product)) if product else None
    return record | {"additivity": worst}


def _defined(*values: Tensor) -> Tensor | None:
    """A flat mask of the elements that the program defines in all ``values``; None when all are."""
    masks = [part.reshape(-1) for value in values if (part := defined(value)) is not None]
    return torch.stack(masks).all(dim=0) if masks else None


def _screen(
    block: list[Tensor], keep: Tensor | None, sums: dict[str, _Sum], pairs: dict[str, tuple[int, int]]
) -> Tensor:
    """The elements finite in all operands; counts the others in every term, NaN before infinity."""
    finite = torch.stack([torch.isfinite(value) for value in block]).all(dim=0)
    looked = finite if keep is None else keep
    for name, (a, b) in pairs.items():
        nan = torch.isnan(block[a]) | torch.isnan(block[b])
        infinite = (torch.isinf(block[a]) | torch.isinf(block[b])) & ~nan
        if keep is not None:
            nan, infinite = nan & keep, infinite & keep
        sums[name].nan += int(nan.sum())
        sums[name].inf += int(infinite.sum())
    return finite & looked


def _residual(whole: str, terms: dict[str, Tensor], parts: Collection[str]) -> float:
    """The greatest |whole - the sum of its parts| over the largest of them there, in units of 2^-52."""
    if whole not in terms:
        return 0.0
    summands = [terms[name] for name in parts if name in terms and name != whole]
    rest = terms[whole].clone()
    largest = terms[whole].abs()
    for part in summands:
        rest -= part
        torch.maximum(largest, part.abs(), out=largest)
    return (
        float((rest.abs_() / largest).nan_to_num_(nan=0.0, posinf=0.0).max()) / _EPS if rest.numel() else 0.0
    )


class _Sum:
    """Statistics of one term over the blocks seen so far."""

    def __init__(self, dtype: str | None):
        self._dtype = dtype
        self._max, self._at, self._sum, self._square, self._ulp = 0.0, -1, 0.0, 0.0, 0.0
        self.count = self.nan = self.inf = 0

    def add(self, term: Tensor, start: int, reference: Tensor) -> None:
        size = term.abs()
        largest = float(size.max()) if size.numel() else 0.0
        if largest > self._max:
            self._max, self._at = largest, start + int(size.argmax())
        if largest:
            self._sum += float(size.sum())
            self._square += float(torch.dot(term, term))
            if self._dtype is not None:
                self._ulp = max(self._ulp, float(in_ulps(size, reference, self._dtype).max()))

    def term(self, shape: tuple[int, ...], norm: float) -> dict[str, Any]:
        l2 = math.sqrt(self._square)
        return {
            "max_abs": self._max if self.count or not (self.nan or self.inf) else None,
            "at": None if self._at < 0 else list(position(self._at, shape) or ()),
            "mean_abs": self._sum / self.count if self.count else 0.0,
            "rel_l2": l2 / norm if norm else (0.0 if l2 == 0 else None),
            "cosine": None,
            "max_ulp": None if self._dtype is None else self._ulp,
            "nan": self.nan,
            "inf": self.inf,
        }
