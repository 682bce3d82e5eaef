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
    spreads, distances = [], []
    for index, output in enumerate(traced):  # each by itself: one that varies excuses none that does not
        ours = [one[index] for one in runs]
        apart = [semantic_gap([a], [b]) for a, b in combinations(ours, 2)]
        away = [gap for gap in (semantic_gap([output], [one]) for one in ours) if gap is not None]
        spreads.append(None if None in apart else max(gap for gap in apart if gap is not None))
        distances.append(min(away, default=None))
    within = all(
        spread is not None and distance is not None and distance <= 2 * spread
        for spread, distance in zip(spreads, distances, strict=True)
    )
    return {"runs": len(runs), "spread": _most(spreads), "traced": _most(distances), "within": within}


def _most(gaps: Sequence[float | None]) -> float | None:
    known = [gap for gap in gaps if gap is not None]
    return max(known, default=0.0) if len(known) == len(gaps) else None
