"""Whether two tensors are equal within an absolute and a relative tolerance, over every element.

Shapes, types, ``where`` and positions: see :mod:`numtrace.attribute.chunks`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from numtrace.attribute.chunks import chunks, count, position, subtract


@dataclass(frozen=True)
class Closeness:
    """Whether |a − e| ≤ atol + rtol·|e| holds everywhere.

    ``worst`` is where |a − e| − rtol·|e| is greatest (None when there is nothing to compare) and ``min_atol``
    that value, at least 0: the smallest atol that would pass at the given rtol, None if no atol would.
    """

    ok: bool
    violations: int
    fraction: float
    worst: tuple[int, ...] | None
    min_atol: float | None


def allclose(
    actual: Tensor,
    expected: Tensor,
    atol: float,
    rtol: float,
    *,
    equal_nan: bool = True,
    where: Tensor | None = None,
) -> Closeness:
    """Test |a − e| ≤ atol + rtol·|e|, as |a − e| − rtol·|e| ≤ atol so that ``min_atol`` surely passes.

    Equal infinities are close, any other infinity is not; NaN is close to NaN only, and with ``equal_nan``
    false to nothing. ValueError for a tolerance that is negative or not finite.
    """
    if not (0 <= atol < math.inf and 0 <= rtol < math.inf):
        raise ValueError(f"atol is {atol} and rtol is {rtol}; give finite numbers that are not negative")
    violations, total, worst, at = 0, 0, -math.inf, None
    for start, (a, e), mask in chunks((actual, expected), where):
        a, e, gap = subtract(a, e)
        total += count(a, mask)
        excess = gap - e.abs() * rtol if rtol else gap
        if not math.isfinite(excess.max().item()):
            same = (a == e) | (a.isnan() & e.isnan()) if equal_nan else a == e
            bad = ~gap.isfinite()
            excess = excess.masked_fill(bad & ~same, math.inf).masked_fill_(bad & same, -math.inf)
        if mask is not None:
            excess = excess.masked_fill(~mask, -math.inf)
        most = excess.max().item()
        if most > atol:
            violations += int((excess > atol).sum())
        if most > worst:
            worst, at = most, start + int(excess.argmax())
    return Closeness(
        ok=violations == 0,
        violations=violations,
        fraction=violations / total if total else 0.0,
        worst=position(at, actual.shape),
        min_atol=max(worst, 0.0) if worst < math.inf else None,
    )
