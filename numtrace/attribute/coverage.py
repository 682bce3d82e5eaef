"""Whether the code that no bound was found for could carry the error that matters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numtrace.attribute.worth import is_rounding


@dataclass(frozen=True, slots=True)
class Unjudged:
    """Code that is not judged: the sites, the most that one of them is off, and in ulps of its type."""

    sites: list[dict[str, Any]]
    max_abs: float | None
    max_ulp: float | None


def unjudged(record: dict[str, Any], sites: Sequence[dict[str, Any]], error: float | None) -> Unjudged | None:
    """The code that could carry the error at the outputs, and is not judged; None where there is none.

    An error at the outputs no larger than torch's own in the type is rounding, whatever made it. If it is larger, or
    torch has none to compare with, what all the sites brought in is set side by side, each relative to its values: the
    squares, as of independent errors. Where what was not judged is no less than what was, it may be most of it.

    A value that is off by one ulp at most is one of the two numbers next to the exact one: that is what its type asks
    for, and needs no bound.

    Args:
        record: the worker's ``variant`` event.
        sites: its site records.
        error: max abs at the outputs; None where no element is finite.
    """
    torch_error = (record.get("torch_same_dtype") or {}).get("max_abs")
    if not error or (
        torch_error is not None and is_rounding(error, torch_error, record.get("output_size") or 0.0)
    ):
        return None
    parts = [_squares(site) for site in sites]
    without = sum(part for part, _ in parts)
    if without == 0 or without < sum(part for _, part in parts):
        return None
    found = [site for site, (part, _) in zip(sites, parts, strict=True) if part]
    found.sort(key=lambda site: _squares(site)[0], reverse=True)
    return Unjudged(
        found, *(_most(site["introduced"][key] for site in found) for key in ("max_abs", "max_ulp"))
    )


def _squares(site: dict[str, Any]) -> tuple[float, float]:
    """Of what a site brought in, relative to its value, the square that is not judged, and the one that is.

    Where there is a typed value, how far the code is from that is to be judged, and the rest is what the types ask for.
    """
    introduced, code = site.get("introduced"), site.get("code")
    if introduced is None or code is None:
        return 0.0, 0.0
    term = site.get("codegen")
    if term is None:
        if site.get("disagreeing"):
            return math.inf, 0.0
        term = introduced
    share = 1.0 if code == "unbounded" else site.get("free_share", 0.0)
    without = 0.0 if not share or _needs_none(term) else share * _square(term)
    judged = 0.0 if code == "unbounded" and term is introduced else _square(introduced) - without
    return without, max(0.0, judged)


def _needs_none(term: dict[str, Any]) -> bool:
    if not term["max_abs"]:
        return True
    return term["max_ulp"] is not None and term["max_ulp"] <= 1


def _square(term: dict[str, Any]) -> float:
    """Infinite where the value is zero and what was brought in is not."""
    if term["rel_l2"] is None:
        return math.inf if term["max_abs"] else 0.0
    return term["rel_l2"] ** 2


def _most(values: Any) -> float | None:
    return max((value for value in values if value is not None), default=None)
