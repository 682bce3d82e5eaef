"""The source's own bits beside the reference trajectory, and the elements that hang on nothing else."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from numtrace.attribute.agreement import alike
from numtrace.attribute.decisions import decided_on, decides_itself
from numtrace.attribute.doubts import Doubt, Off, decided, drawn, made
from numtrace.attribute.lanes import NOISY, REFERENCE, SOURCE, Lanes, Tag
from numtrace.attribute.matching import Formed
from numtrace.attribute.near_ties import MARGIN, Snapping, Values, floats, noise_of, within_noise
from numtrace.attribute.noise import SAMPLING, Noisy, measured, undecided, visible
from numtrace.attribute.reference import Reference
from numtrace.attribute.scalars import Constants, as_in_source
from numtrace.attribute.verification import Result, Verification
from numtrace.evaluate.complex_numbers import as_parts, of_parts
from numtrace.evaluate.dispatch import evaluate_dispatch
from numtrace.evaluate.machine import Machine
from numtrace.evaluate.op import Op
from numtrace.evaluate.program import Program


class SourceBits:
    """Keeps the ``source`` lane and which of it is noisy, and settles near ties by the two."""

    def __init__(self, program: Program, lanes: Lanes, reference: Reference):
        self._program, self._lanes, self._reference = program, lanes, reference
        self._verification = Verification(reference)
        self._decided_on = decided_on(program)
        self._doubts: dict[int, Doubt] = {}

    def begin(self, formed: Formed, results: list[Result]) -> Values:
        """What the decisions of a dispatch hang on in the source, where one of its results differs.

        It must be called for each dispatch, before :meth:`keep` is for its results: the reference hands out once.
        """
        self._doubts = {}
        if any(result.match == "differs" for result in results):
            return floats({stamp: self._verification.values(stamp) for stamp in formed.decided_on})
        for stamp in formed.decided_on:
            self._reference.release(stamp)
        return {}

    def settle(
        self, op: Op, source: Values, results: list[Result], upstream: Tag, constants: Constants
    ) -> None:
        """Sets the elements that hang on rounding to the source's, and judges their results again."""
        differing = [index for index, result in enumerate(results) if result.match == "differs"]
        if not differing:
            return
        ties = measured(source, self._program, lambda make: self._with_noise(op, constants, make({})))
        snapped = [result.corrected for result in results]
        if source or self._lanes.differs(op.operands, SOURCE):
            snapped = [*map(as_parts, self._again(op, constants, Snapping(self._program, ties)))]

        @lru_cache(maxsize=1)
        def with_noise(seed: int) -> list[Tensor]:
            return [*map(as_parts, self._with_noise(op, constants, Noisy(self._program, ties, seed)))]

        doubts = self._lanes.doubted(op.operands).values()
        decides = decides_itself(self._program, op) or decided(doubts)
        for index in differing:
            result = results[index]
            assert result.reference is not None
            tied = undecided(result.corrected, snapped[index], result.reference, with_noise, index, decides)
            result.near_ties = int(tied.sum())
            by_noise = tied & ~alike(snapped[index], result.reference)
            error = result.compiled.double() - result.exact_compiled.double()
            result.unsure = int((by_noise & visible(result.corrected, result.reference, error)).sum())
            if result.near_ties:
                same = result.corrected is result.exact_reference
                result.corrected = torch.where(tied, result.reference, result.corrected)
                result.exact_reference = (
                    result.corrected if same else torch.where(tied, result.reference, result.exact_reference)
                )
                result.match, result.layout, result.reference = "unmatched", None, None
                self._verification.match(result, upstream)

    def keep(self, op: Op, index: int, result: Result, constants: Constants) -> None:
        """Keeps the source's bits of a value that a decision hangs on, what is made of them, and what is noisy.

        The value must be in the reference lane.
        """
        lanes, slot = self._lanes, op.results[index]
        whole = lanes.get(REFERENCE, slot)
        if result.match == "differs":
            return  # it is set back
        if result.match in ("unmatched", "moved"):
            if lanes.differs(op.operands, SOURCE):
                lanes.set(SOURCE, slot, self._again(op, constants, Machine(self._program))[index])
            if result.match == "unmatched" or lanes.differs(op.operands, NOISY):
                lanes.set(NOISY, slot, self._made(op, constants)[slot])
            return
        value = as_parts(whole)
        if not value.is_floating_point():
            return  # exact
        between = of_parts if whole.is_complex() else None
        source = result.reference
        assert source is not None
        off = value != source
        if not bool(off.any()):
            return
        off &= ~(value.isnan() & source.isnan())
        size = None
        if slot in self._decided_on and not result.healed:
            doubt = self._made(op, constants)[slot]
            noise = noise_of(value, [as_parts(drawn([doubt], seed)[0]) for seed in SAMPLING])
            near = within_noise(value, source, noise)
            value = torch.where(near, source, value)
            lanes.set(SOURCE, slot, between(value) if between else value)
            off &= ~near
            if not bool(off.any()):
                return
            size = noise.div_(MARGIN)
        lanes.set(NOISY, slot, Off(value, off, size, between))

    def _made(self, op: Op, constants: Constants) -> dict[int, Doubt]:
        if not self._doubts:  # all results of a dispatch are drawn at once
            self._doubts = made(self._program, op, self._lanes.doubted(op.operands), constants)
        return self._doubts

    def _again(self, op: Op, constants: Constants, machine: Machine) -> list[Tensor]:
        """The results of ``op`` as ``machine`` has them, from what is the source's bit for bit, as far as there is."""
        operands = [self._lanes.get(SOURCE, slot) for slot in op.operands]
        with as_in_source(constants):
            return evaluate_dispatch(machine, op, operands)

    def _with_noise(self, op: Op, constants: Constants, machine: Noisy) -> list[Tensor]:
        """As above, from what the operands may be for all that is known of them."""
        doubts = self._lanes.doubted(op.operands)
        operands = drawn((doubts[slot] for slot in op.operands), machine.seed)
        with as_in_source(constants):
            return evaluate_dispatch(machine, op, operands)
