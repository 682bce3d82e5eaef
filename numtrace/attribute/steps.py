"""Where along a row of programs the meaning changes, from as few evaluations as will do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

#: What a program means, as a number that is the same for equal meanings; None when it cannot be told.
Meaning = int | None


@dataclass(frozen=True, slots=True)
class Step:
    """The meaning is one at position ``before`` and another at ``after``; none between them can be told."""

    before: int
    after: int


@dataclass(slots=True)
class Search:
    """What was found, the meanings of the positions that were looked at, and whether all of them were."""

    steps: list[Step]
    known: dict[int, Meaning] = field(default_factory=dict)
    exhaustive: bool = False


def find_steps(count: int, meaning: Callable[[int], Meaning], *, every: bool = False) -> Search:
    """The steps at which the meaning changes on the way from position 0 to ``count - 1``.

    Bisection finds one, with a known meaning on either side. When everything that was met beyond it means what the
    last one means, it accounts for the whole change. If not, the changes are not one step, and every position is
    looked at.

    Args:
        count: positions; the meaning of the first and of the last must be known.
        meaning: evaluates a position; called once for each at most.
        every: look at every position, also when both ends mean the same (a fault brought in and repaired).
    """
    known: dict[int, Meaning] = {}

    def at(position: int) -> Meaning:
        if position not in known:
            known[position] = meaning(position)
        return known[position]

    last = count - 1
    if not every:
        if at(0) == at(last):
            return Search([], known)
        step = _bisect(0, last, at)
        beyond = {told for position, told in known.items() if position >= step.after}
        if beyond <= {at(last), None}:
            return Search([step], known)
    return Search(_changes(count, at), known, exhaustive=True)


def _bisect(low: int, high: int, at: Callable[[int], Meaning]) -> Step:
    """One step between ``low`` and ``high``, whose meanings differ: at ``low`` it is always that of the beginning."""
    good = at(low)
    while True:
        middle = next((i for i in _outwards(low, high) if at(i) is not None), None)
        if middle is None:
            return Step(low, high)
        if at(middle) == good:
            low = middle
        else:
            high = middle


def _outwards(low: int, high: int) -> Iterator[int]:
    """The positions strictly between the two, from the middle outwards."""
    middle = (low + high) // 2
    for distance in range(high - low):
        for position in dict.fromkeys((middle - distance, middle + distance)):
            if low < position < high:
                yield position


def _changes(count: int, at: Callable[[int], Meaning]) -> list[Step]:
    told = [position for position in range(count) if at(position) is not None]
    return [Step(a, b) for a, b in pairwise(told) if at(a) != at(b)]
