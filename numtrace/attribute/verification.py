"""Which value of the source a result of a dispatch holds, and whether it is that value."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from numtrace.attribute.agreement import agrees, nearest, placed_in
from numtrace.attribute.lanes import Tag
from numtrace.attribute.layout import Layout, layouts
from numtrace.attribute.matching import Holding
from numtrace.attribute.reference import Reference
from numtrace.evaluate.typed.value import Typed


@dataclass(slots=True)
class Result:
    """One result of a dispatch in the lanes, while its site is being judged; tensors of one shape."""

    compiled: Tensor
    exact_compiled: Tensor
    exact_reference: Tensor
    exact: Tensor | None
    corrected: Tensor  # as exact_reference, with the source's constants
    typed: Typed | None  # d_Q(x_C) with its bound; None where there is no bound
    loose: bool  # whether the bound was made wider to save work
    holding: Holding
    candidates: list[tuple[Tensor, Layout]] | None = None  # source values that it may hold, and how they lie
    reference: Tensor | None = None
    match: str = "unmatched"
    layout: Layout | None = None
    healed: bool = False
    constant: bool = False
    near_ties: int = 0
    unsure: int = 0  # of those, how many noise alone acquits of what can be seen


class Verification:
    """Holds results against the values of ``reference``."""

    def __init__(self, reference: Reference):
        self._reference = reference

    def values(self, stamp: int) -> list[Tensor]:
        """What the source op ``stamp`` makes. The reference hands it out once."""
        return [value for value in self._reference.values(stamp) if isinstance(value, Tensor)]

    def match(self, result: Result, upstream: Tag) -> None:
        """Finds the reference value of a result and sets ``match``, ``reference`` and ``layout``."""
        holding = result.holding
        basis = result.corrected
        if result.candidates is None:  # the reference hands its values out once
            asks = holding.final and holding.stamp is not None
            result.candidates = self._candidates(result, upstream) if asks else []
        candidates = result.candidates
        for source, layout in candidates:
            if agrees(layout.view(basis), layout.place(source, basis)):
                self._accept(result, basis, source, layout, candidates)
                result.constant = basis is not result.exact_reference
                return
        if result.exact is not None and upstream.differing:
            for source, layout in candidates:
                if agrees(layout.view(result.exact), layout.place(source, result.exact)):
                    # The value before it was not the source's, this one is: the program was rewritten.
                    self._accept(result, result.exact, source, layout, candidates)
                    result.exact_reference = result.corrected = result.exact
                    result.healed = True
                    return
        # What is only moved holds what it was given, unless that was an intermediate of the same source op.
        made = not holding.moved or upstream.stamp == holding.stamp
        known = [candidate for candidate in candidates if candidate[1].known]
        if known and made and not upstream.tainted:
            source, layout = nearest(basis, known)
            result.match, result.layout = "differs", layout
            result.reference = placed_in(basis, layout, source)
            return
        if holding.moved:
            result.match = "moved"
        result.reference = basis

    def _candidates(self, result: Result, upstream: Tag) -> list[tuple[Tensor, Layout]]:
        stamp = result.holding.stamp
        values = self.values(stamp)  # type: ignore[arg-type]
        shape = tuple(result.exact_reference.shape)
        return [
            (value, layout)
            for value in values
            for layout in layouts(
                tuple(value.shape), shape, result.holding.window, permuted=upstream.permuted
            )
        ]

    def _accept(
        self, result: Result, basis: Tensor, source: Tensor, layout: Layout, candidates: list
    ) -> None:
        others = [
            (other, at)
            for other, at in candidates
            if (other is not source or at != layout) and agrees(at.view(basis), at.place(other, basis))
        ]
        result.match = "ambiguous" if others else "verified"
        result.layout = layout
        result.reference = placed_in(basis, layout, source)
