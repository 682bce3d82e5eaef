"""How far a sum may be off, whatever the order in which code takes its terms, with products fused or not.

Let A = Σ|terms| and S the sum. The computed sum differs from S by Σ δ·p over the products and Σ δ·s over the
additions, with p a product, s what an addition makes before it is rounded, and |δ| <= u. Two bounds follow, and the
smaller one holds:

* growth·A, from |p| summed and |s| <= A.
* From a smaller s. The terms of a partial sum are some of the terms, so it is at most the sum of all positive or of
  all negative ones: M = (A + |S|)/2, half of A where terms cancel. It is itself off by growth·A at most: with
  m = M + growth·A, n additions are off by u·n·m if all errors fall together; with probability 1 - FAILURE/2 by
  λ·u·√n·m if each is zero on average whatever those before it were (Azuma's inequality: the δ·s are bounded martingale
  differences; E. Hallman and I. C. F. Ipsen, "Precision-aware deterministic and probabilistic error bounds for
  floating point summation", Numer. Math. 155, 2023).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from numtrace.evaluate.formats import FORMATS, float_format
from numtrace.evaluate.typed.rounding import smallest, unit

#: The probability that one site's rounding errors exceed the probabilistic bound though the code is right.
FAILURE = 2.0**-30

_F32_MAX = FORMATS["f32"].max_finite


@dataclass(frozen=True, slots=True)
class Summation:
    """Sums of ``terms`` terms, ``results`` of them, each running sum rounded to some of ``types``.

    ``types``: what a product, a running sum and the result are rounded to. ``deterministic``: the bounds hold for
    every rounding error, instead of with probability 1 - FAILURE for all of a site's together.
    """

    terms: int
    results: int
    types: Sequence[str]
    deterministic: bool

    @property
    def unit(self) -> float:
        return max(unit(type_) for type_ in self.types)

    @property
    def growth(self) -> float:
        """The relative error per unit of Σ|terms|.

        Deterministic: n·u, which holds without a restriction on n (C.-P. Jeannerod and S. M. Rump, "Improved
        error bounds for inner products in floating-point arithmetic", SIAM J. Matrix Anal. Appl. 34(2), 2013).
        Probabilistic: exp(λ√n·u + n·u²/(1-u)) - 1 (N. J. Higham and T. Mary, "A new approach to probabilistic
        rounding error analysis", SIAM J. Sci. Comput. 41(5), 2019, theorem 2.4).
        """
        u = self.unit
        worst = self._sides * self.terms * u
        if self.deterministic:
            return worst
        exponent = self._chance / (1 - u) * math.sqrt(self.terms) * u + self.terms * u * u / (1 - u)
        return min(worst, self._sides * math.expm1(exponent)) if exponent < 700 else worst

    @property
    def limit(self) -> float:
        """The largest number of every type."""
        return min(float_format(type_).max_finite for type_ in self.types)

    @property
    def _chance(self) -> float:
        """λ: all ``results`` sums keep to λ standard deviations, with probability 1 - FAILURE/2: 2·N·exp(-λ²/2)."""
        return math.sqrt(2 * math.log(4 * max(self.results, 1) / FAILURE))

    @property
    def _sides(self) -> int:
        """Of f64 the typed meaning, which is summed in float64, is as far off as the code."""
        return 2 if self.unit <= 2.0**-53 else 1

    def bound(self, sizes: Tensor, typed: Tensor, inherited: Tensor | None = None) -> Tensor:
        """At least |computed - typed|, float32.

        Args:
            sizes: Σ|terms|, float32 and summed in float32; it is written over.
            typed: the sum, rounded once to the type of the result, the last of ``types``.
            inherited: what the bounds of the terms add up to, summed in float32.
        """
        summed = 1 + 2 * self.terms * 2.0**-24  # for what is lost in float32
        sizes.mul_(summed)
        total = typed.float().abs()
        own = total * unit(self.types[-1])
        if inherited is not None:
            inherited = inherited * summed
            sizes += inherited
            total = total + inherited
        growth, u = self.growth, self.unit * self._sides
        # Products, then additions: a·A + b·|S|.
        additions = u * (self.terms if self.deterministic else self._chance * math.sqrt(self.terms))
        products = u if self.deterministic else u * self._chance
        of_sizes, of_total = products + additions * (0.5 + growth), additions / 2
        limit = self.limit
        overflows = None
        if limit < _F32_MAX:
            overflows = (sizes * (0.5 + growth)).add_(total, alpha=0.5) >= limit
        error = torch.minimum(sizes * growth, (sizes * of_sizes).add_(total, alpha=of_total))
        error.add_(own).add_(self.terms * max(smallest(type_) for type_ in self.types))
        if inherited is not None:
            error += inherited
        if overflows is not None and bool(overflows.any()):
            error[overflows] = torch.inf  # a running sum may
        return error
