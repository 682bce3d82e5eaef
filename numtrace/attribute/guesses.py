"""What the lowering computed itself, and rounded: taken as exact where that explains why a result differs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from torch import Tensor

from numtrace.attribute.lanes import REFERENCE, Lanes, Tag
from numtrace.attribute.near_ties import Values
from numtrace.attribute.places import Place, are_rounding, places
from numtrace.attribute.scalars import (
    Constants,
    Scalars,
    as_in_source,
    derived_constants,
    rounded_constants,
)
from numtrace.attribute.source_bits import SourceBits
from numtrace.attribute.verification import Result, Verification
from numtrace.errors import UncoveredOp
from numtrace.evaluate.complex_numbers import as_parts
from numtrace.evaluate.dispatch import entry_point, evaluate_dispatch
from numtrace.evaluate.machine import Machine, MakeMachine
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
    ) -> tuple[list[Result], Constants, Constants]:
        """The results judged with what explains some that differ; and that, constants and places.

        They are as they were where nothing does. Places are believed of this dispatch only: of the next one of its body
        they may pick others.

        Args:
            source: what near ties were settled by.
            before: the results before they were.
            known: what is taken already.
        """
        body = self._program.executables[entry_point(op)]

        def judged(guesses: Constants) -> list[Result]:
            again = [
                replace(result, corrected=value, match="unmatched", reference=None, layout=None, healed=False)
                for result, value in zip(before, self._made(op, [*known, *guesses]), strict=True)
            ]
            for result in again:
                self._verification.match(result, upstream)
            self._source.settle(op, source, again, upstream, [*known, *guesses])
            return again

        best: list[Result] = results
        constants: Constants = []
        derived = derived_constants(body, [constant for constant, _ in known])
        if derived:
            made, needed = self._fewest(judged, derived)
            if differing(made) < differing(best):
                best, constants = made, needed
        for guess_more in (False, True):
            found = guessed_places(body, self._scalars, guess_more) if differing(best) else []
            if not found:
                break
            try:
                made = judged([*constants, *found])
            except UncoveredOp:
                continue  # they pick what there is not
            if differing(made) < differing(best) and self._are_rounding(op, [*known, *constants], found):
                return made, constants, found
        return best, constants, []

    def _are_rounding(self, op: Op, constants: Constants, found: Constants) -> bool:
        taken = [*constants, *found]

        def evaluate(make: MakeMachine) -> list[Tensor]:
            return self._made(op, taken, make({}))

        was, now = self._made(op, constants), self._made(op, taken)
        return are_rounding(was, now, self._program, [place for place, _ in found], evaluate)

    def _made(self, op: Op, constants: Constants, machine: Machine | None = None) -> list[Tensor]:
        inputs = [self._lanes.get(REFERENCE, slot) for slot in op.operands]
        with as_in_source(constants):
            made = evaluate_dispatch(machine or self._lanes.machines[REFERENCE], op, inputs)
        return [*map(as_parts, made)]

    @staticmethod
    def _fewest(
        judged: Callable[[Constants], list[Result]], derived: Constants
    ) -> tuple[list[Result], Constants]:
        """Without those that are the source's own number in another's op: fewer results differ without."""
        best = judged(derived)
        for pair in derived:
            fewer = [other for other in derived if other is not pair]
            if fewer and differing(best) and differing(again := judged(fewer)) < differing(best):
                best, derived = again, fewer
        return best, derived
