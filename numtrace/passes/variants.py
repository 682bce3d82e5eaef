"""Which combinations of the passes are compiled."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import combinations

from numtrace.errors import UsageError
from numtrace.passes.model import Pass, Variant
from numtrace.passes.registry import distinct

MODES = ("alone", "pairs", "all")


def parse_modes(text: str) -> frozenset[str]:
    """The modes of ``alone,pairs,all``. Raises UsageError for another word."""
    modes = [word.strip() for word in text.split(",") if word.strip()]
    for word in modes:
        if word not in MODES:
            raise UsageError(f"--variants {text}: {word!r} is not one of {', '.join(MODES)}")
    return frozenset(modes)


def variants(passes: Sequence[Pass], modes: Collection[str] = MODES) -> list[Variant]:
    """The baseline, then what ``modes`` ask for: each alone, every pair, all together; none twice.

    Passes keep the order of the command line, one that is repeated there counts once.
    """
    chosen = tuple(distinct(passes))
    combined: list[tuple[Pass, ...]] = [()]
    if "alone" in modes:
        combined += [(p,) for p in chosen]
    if "pairs" in modes:
        combined += combinations(chosen, 2)
    if "all" in modes:
        combined.append(chosen)
    return [Variant.of(passes) for passes in dict.fromkeys(combined)]
