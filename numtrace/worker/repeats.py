"""Whether a program gives the same values each time, asked when the traced program's output is not the plain one's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

from torch import Tensor

from numtrace.worker.outcome import semantic_gap
from numtrace.worker.witness import same_bits

#: Plain runs after the first.
AGAIN = 4


def repeats(
    run: Callable[[], Sequence[Tensor]], plain: Sequence[Tensor], traced: Sequence[Tensor]
) -> dict[str, Any] | None:
    """How far plain runs are apart, and how far the traced one is from the nearest of them; None if they are equal.

    ``spread`` and ``traced`` are max abs over all outputs; None for a NaN or Inf that is not in all of them.
    ``within``: the traced output is no further from a plain one than twice the spread. The values of all possible
    runs lie around those seen; what tracing itself may change, such as the tiles of a dispatch, is of their size.
    """
    runs = [list(plain), *(list(run()) for _ in range(AGAIN))]
    if all(same_bits(one, plain, None) for one in runs[1:]):
        return None
    apart = [semantic_gap(a, b) for a, b in combinations(runs, 2)]
    away = [gap for gap in (semantic_gap(list(traced), one) for one in runs) if gap is not None]
    spread = None if None in apart else max(gap for gap in apart if gap is not None)
    nearest = min(away, default=None)
    return {
        "runs": len(runs),
        "spread": spread,
        "traced": nearest,
        "within": spread is not None and nearest is not None and nearest <= 2 * spread,
    }
