"""Whether a fault is large enough to be told from rounding, worked out beside numtrace.

A fault below what correct code may be off by is no fault that anyone can see in the numbers. The rule: with n terms in
each sum, u = 2^-24 and s = Σ|terms|, the change that the fault makes must exceed twice n·u·s somewhere (nothing that
correct code does explains it: a bug), or else twice λ·√n·u·s (rounding errors would have to conspire, at odds of
2^-30: suspect). Twice, since the compiled code has its own rounding on top.
"""

from __future__ import annotations

import math

import numpy as np

U = 2.0**-24
ODDS = 2.0**-30


def verdict(right: np.ndarray, wrong: np.ndarray, sizes: np.ndarray, terms: int) -> str | None:
    """What code that makes ``wrong`` must be called; None when it cannot be told from correct code.

    Args:
        right, wrong: float64, the exact value and the one with the fault.
        sizes: the sum of the absolute values of the terms of each.
    """
    effect = np.abs(wrong - right) / np.maximum(sizes, np.finfo(float).tiny)
    most = float(effect.max())
    if most > 2 * terms * U:
        return "codegen-bug"
    chance = math.sqrt(2 * math.log(2 * right.size / ODDS))
    return "codegen-suspect" if most > 2 * chance * math.sqrt(terms) * U else None


def truncated(value: float, bits: int) -> float:
    """``value`` with the mantissa cut off after ``bits`` bits."""
    mantissa, exponent = math.frexp(value)
    return math.ldexp(math.trunc(mantissa * 2.0**bits) / 2.0**bits, exponent)
