"""What the lowering computed itself, and rounded: taken as exact where that explains why a result differs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from torch import Tensor

from numtrace.attribute.lanes import REFERENCE, Lanes, Tag
from numtrace.attribute.near_ties import Values
from numtrace.attribute.places import Place, places, rounding
from numtrace.attribute.scalars import (
    Constants,
    Scalars,
    as_in_source,
    derived_constants,
    rounded_constants,
)
from numtrace.attribute.source_bits import SourceBits
from numtrace.attribute.verification import Result, Verification
from numtrace.evaluate.complex_numbers import as_parts
from numtrace.evaluate.dispatch import entry_point, evaluate_dispatch
from numtrace.evaluate.op import Op
from numtrace.evaluate.program import Program


def differing(results: Sequence[Result]) -> set[int]:
    return {index for index, result in enumerate(results) if result.match == "differs"}


def guessed_places(body: Op, scalars: Scalars, derived: bool) -> Constants:
    """The index arithmetic of ``body`` that becomes data, and the constants that nothing else reads.

    Those that the source states; with ``derived`` what the others may stand for too: they may be the source's own.
    """
    found = places(body)
    if not found:
        return []
    stated = rounded_constants(body, scalars, found)
    guessed = derived_constants(body, [op for op, _ in stated], found) if derived else []
    return [*stated, *guessed, *((op, Place()) for op in found)]


class Guesses:
    """Judges a dispatch again with constants, and then places, as the source may have them."""

    def __init__(
        self,
        program: Program,
        lanes: Lanes,
        source: SourceBits,
        verification: Verification,
        scalars: Scalars,
    ):
        self._program, self._lanes, self._source = program, lanes, source
        self._verification, self._scalars = verification, scalars

    def explain(
        self,
        op: Op,
        source: Values,
        before: list[Result],
        results: list[Result],
        upstream: Tag,
        known: Constants,
    ) -> tuple[list[Result], Constants]:
        """The results judged with what explains some that differ, and that; as they were, and nothing, if none does.

        ``before``: as they were before near ties were settled, by ``source``. ``known``: what is taken already.
        """
        body = self._program.executables[entry_point(op)]
        inputs = [self._lanes.get(REFERENCE, slot) for slot in op.operands]

        def judged(guesses: Constants) -> list[Result]:
            with as_in_source([*known, *guesses]):
                made = evaluate_dispatch(self._lanes.machines[REFERENCE], op, inputs)
            again = [
                replace(result, corrected=value, match="unmatched", reference=None, layout=None, healed=False)
                for result, value in zip(before, map(as_parts, made), strict=True)
            ]
            for result in again:
                self._verification.match(result, upstream)
            self._source.settle(op, source, again, upstream, [*known, *guesses])
            return again

        best, believed = results, []
        derived = derived_constants(body, [constant for constant, _ in known])
        if derived:
            made, needed = self._fewest(judged, derived)
            if differing(made) < differing(best):
                best, believed = made, [*needed]
        for guess_more in (False, True):
            found = guessed_places(body, self._scalars, guess_more) if differing(best) else []
            made = judged([*believed, *found]) if found else best
            if differing(made) < differing(best) and _is_rounding(found, best, made, inputs):
                return made, [*believed, *found]
        return best, believed

    @staticmethod
    def _fewest(judged, derived: Constants) -> tuple[list[Result], Constants]:
        """Without those that are the source's own number in another's op: fewer results differ without."""
        best = judged(derived)
        for pair in derived:
            fewer = [other for other in derived if other is not pair]
            if fewer and differing(best) and differing(again := judged(fewer)) < differing(best):
                best, derived = again, fewer
        return best, derived


def _is_rounding(found: Constants, before: list[Result], made: list[Result], inputs: list[Tensor]) -> bool:
    """Whether what is explained is no more than places are off by rounding: another pixel is another meaning."""
    for index in differing(before) - differing(made):
        was, now = before[index].corrected, made[index].corrected
        gap = float((was - now).abs().nan_to_num(nan=float("inf")).max())
        floats = [value for value in (*map(as_parts, inputs), now) if value.is_floating_point()]
        if gap > rounding([op for op, _ in found], floats):
            return False
    return True
