"""The source's own bits beside the reference trajectory, and the elements that hang on nothing else."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from numtrace.attribute.decisions import decided_on
from numtrace.attribute.lanes import REFERENCE, SOURCE, Lanes, Tag
from numtrace.attribute.matching import Formed
from numtrace.attribute.near_ties import Snapping, without_noise
from numtrace.attribute.noise import Noisy, undecided
from numtrace.attribute.reference import Reference
from numtrace.attribute.scalars import Rounded, as_in_source
from numtrace.attribute.summary import Summary
from numtrace.attribute.verification import Result, Verification
from numtrace.evaluate.dispatch import evaluate_dispatch
from numtrace.evaluate.machine import Machine
from numtrace.evaluate.program import Op, Program

#: The scalars of a dispatch that the lowering rounded, with what the source has for them.
Constants = list[tuple[Op, Rounded]]


class SourceBits:
    """Keeps the ``source`` lane, the source's own bits or values tagged ``noisy``, and settles near ties by it."""

    def __init__(self, program: Program, lanes: Lanes, reference: Reference, summary: Summary):
        self._program, self._lanes, self._reference, self._summary = program, lanes, reference, summary
        self._verification = Verification(reference)
        self._decided_on = decided_on(program)

    def settle(
        self, op: Op, formed: Formed, results: list[Result], upstream: Tag, constants: Constants
    ) -> None:
        """Sets the elements that hang on rounding to the source's, and judges their results again."""
        differing = [index for index, result in enumerate(results) if result.match == "differs"]
        if not differing:
            for stamp in formed.decided_on:
                self._reference.release(stamp)
            return
        source = [
            value
            for stamp in formed.decided_on
            for value in self._verification.values(stamp)
            if value.dtype == torch.float64
        ]
        snapped = [result.corrected for result in results]
        if source or self._lanes.differs(op.operands, SOURCE):
            snapped = self._again(op, constants, Snapping(self._program, source))

        @lru_cache(maxsize=1)
        def with_noise(seed: int) -> list[Tensor]:
            return self._again(op, constants, Noisy(self._program, source, seed))

        for index in differing:
            result = results[index]
            assert result.reference is not None
            tied = undecided(result.corrected, snapped[index], result.reference, with_noise, index)
            result.near_ties = int(tied.sum())
            if result.near_ties:
                self._summary.near_ties += result.near_ties
                same = result.corrected is result.exact_reference
                result.corrected = torch.where(tied, result.reference, result.corrected)
                result.exact_reference = (
                    result.corrected if same else torch.where(tied, result.reference, result.exact_reference)
                )
                result.match, result.layout, result.reference = "unmatched", None, None
                self._verification.match(result, upstream)

    def keep(self, op: Op, index: int, result: Result, upstream: Tag, constants: Constants) -> bool:
        """Keeps the source's bits of a value that a decision hangs on, and what is made of them.

        Returns:
            Whether its bits may be others than the source's all the same.
        """
        lanes, slot = self._lanes, op.results[index]
        if result.match == "differs":
            return False  # it is set back
        value, noisy = None, True
        if result.match in ("unmatched", "moved"):
            noisy = upstream.noisy or result.match == "unmatched"
            if lanes.differs(op.operands, SOURCE):
                value = self._again(op, constants, Machine(self._program))[index]
        elif slot in self._decided_on:
            assert result.reference is not None
            value, noisy = without_noise(result.corrected, result.reference), False
        if value is not None and not _same_bits(value, lanes.get(REFERENCE, slot)):
            lanes.set(SOURCE, slot, value)
        return noisy

    def _again(self, op: Op, constants: Constants, machine: Machine) -> list[Tensor]:
        """The results of ``op`` as ``machine`` has them, from what is the source's bit for bit, as far as there is."""
        operands = [self._lanes.get(SOURCE, slot) for slot in op.operands]
        if isinstance(machine, Noisy):
            operands = [
                machine.noisy(value) if self._lanes.tags([slot]).noisy else value
                for slot, value in zip(op.operands, operands, strict=True)
            ]
        with as_in_source(constants):
            return evaluate_dispatch(machine, op, operands)


def _same_bits(a: Tensor, b: Tensor) -> bool:
    return a is b or torch.equal(a, b)
