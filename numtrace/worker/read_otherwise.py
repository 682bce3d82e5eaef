"""The source ops that IREE reads otherwise: what its own program begins with means something else already.

A dispatch computes several source ops and stores what the last of them makes: that it differs does not tell which one
is wrong. At the ``input`` stage, before dispatches are formed, each op still has a value of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

from torch import Tensor

from numtrace.attribute.agreement import agrees
from numtrace.attribute.guesses import guessed_places
from numtrace.attribute.reference import Reference
from numtrace.attribute.scalars import Constants, derived_constants
from numtrace.attribute.semantics import differing
from numtrace.errors import UncoveredOp
from numtrace.evaluate.op import Op
from numtrace.worker.compilation import Variant
from numtrace.worker.exact import make_reference, source_function


def read_otherwise(
    variant: Variant, records: list[dict[str, Any]], params, inputs: list[Tensor]
) -> list[int]:
    """The stamps of the first ops that differ at the ``input`` stage, of those that may have made a site differ.

    Empty where each such site is of one op, or none of them differs there yet, or that cannot be told.
    """
    if not variant.job["is_baseline"] or variant.job["reference"] == "self":
        return []
    several = [site for site in differing(records) if len(site["made_by"]) > 1]
    suspects = {stamp for site in several for stamp in site["made_by"]}
    if not suspects:
        return []
    variant.channel.stage("look for the op in dispatches that differ", timed=True)
    wanted = sorted(suspects)
    source = make_reference(variant, params, inputs, wanted, stage="source")
    lowered = [
        make_reference(variant, params, inputs, wanted, stage="input", guess=guess)
        for guess in (None, partial(derived_constants, known=[]), _with_places, _with_all)
    ]
    try:
        return _first(source_function(variant), source, lowered, suspects)
    except UncoveredOp:
        return []


def _with_places(body: Op) -> Constants:
    return guessed_places(body, {}, derived=False)


def _with_all(body: Op) -> Constants:
    return [*derived_constants(body, []), *guessed_places(body, {}, derived=True)]


def _first(
    function: Op, source: Reference, lowered: Sequence[Reference], suspects: Collection[int]
) -> list[int]:
    """Those that differ, in every reading of ``lowered``, though nothing that they are made of does."""
    found: list[int] = []
    off: set[int] = set()
    for op in function.regions[0].ops:
        inherited = not off.isdisjoint(op.operands)
        differs = None
        for stamp in op.stamps[:1]:
            if stamp in suspects:
                differs = _differs(source.values(stamp), [reading.values(stamp) for reading in lowered])
                if differs and not inherited:
                    found.append(stamp)
        if inherited if differs is None else differs:
            off.update(op.results)
    return found


def _differs(source: list[Tensor], readings: list[list[Tensor]]) -> bool | None:
    """Whether in each of ``readings`` some value of ``source`` has none that is the same; None where some has nothing
    to be held against."""
    told = []
    for lowered in readings:
        pairs = [(want, [made for made in lowered if made.numel() == want.numel()]) for want in source]
        if not pairs or not all(made for _, made in pairs):
            return None
        told.append(
            any(not any(agrees(one.reshape(want.shape), want) for one in made) for want, made in pairs)
        )
    return all(told)
