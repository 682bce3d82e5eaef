"""Which findings were accepted before: by kind, op and size; and what of them has grown."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from numtrace.attribute.findings import EXPLAINED, PROVEN, SUSPECT

#: A finding has grown where a figure of it is more than this many times what was accepted: it has lost another bit.
#: One and the same fault varies less with the inputs: over 20 seeds by a factor of 1.7 in max abs and of 1.1 in rel L2
#: at most from 4096 elements on, of 2.1 with 256 (``bench/known.py``). In a tensor of 16 elements it may vary by 3.3:
#: there other inputs may make it look grown, which is to be looked at, and hides nothing.
GROWN = 2.0

#: The figures of a finding that are compared, and what each is called.
FIGURES = {
    "max_abs": "max abs",
    "rel_l2": "rel L2",
    "bound_ratio": "times its bound",
    "nonfinite": "NaN or Inf",
}


def recognise(
    findings: Iterable[dict[str, Any]], passes: Collection[str], entries: Sequence[dict[str, Any]]
) -> tuple[list[dict[str, Any]], dict[int, int]]:
    """The findings of a variant with what is known of each, and which entry stands for which (index to index).

    An entry stands for one finding of a variant whose passes are its own, or more: the op, the kind and, where it
    says one, the module are the same. ``known`` is the entry's note, or true where it has none. A finding that is
    larger than any entry left for it has ``grown``, in words, and is not known. What is explained is no finding to
    accept.

    Args:
        findings: with ``kind``, ``op``, ``module``, ``certainty``, the figures of :data:`FIGURES`; ``roots``, the
            root ops of its sites, where code is shared.
        passes: the variant's.
        entries: of a file of known findings.
    """
    given = [dict(finding) for finding in findings]
    stands: dict[int, int] = {}
    used: set[int] = set()
    # The largest first, each to the least entry that holds it: so that no finding takes a larger one's place.
    for index in sorted(range(len(given)), key=lambda i: _order(given[i]), reverse=True):
        finding = given[index]
        if finding["certainty"] == EXPLAINED:
            continue
        left = [
            number
            for number, entry in enumerate(entries)
            if number not in used and is_of(entry, finding) and set(entry["passes"]) <= set(passes)
        ]
        if not left:
            continue
        growth = {number: _growth(finding, entries[number]) for number in left}
        chosen = min(left, key=lambda n: _preference(growth[n], entries[n]))
        used.add(chosen)
        stands[index] = chosen
        if growth[chosen]:
            finding["grown"] = growth[chosen]
        else:
            finding["known"] = entries[chosen].get("note") or True
    return given, stands


def is_of(entry: dict[str, Any], finding: dict[str, Any]) -> bool:
    """Whether an entry speaks of a finding, whatever the sizes and the passes."""
    if entry["kind"] != finding["kind"]:
        return False
    if entry["op"] == finding["op"]:
        return not entry["module"] or entry["module"] == finding.get("module", "")
    return entry["op"] in finding.get("roots", ())  # code that is shared: the worst site may be another


def _preference(growth: str, entry: dict[str, Any]) -> tuple[bool, int, float]:
    """Entries that hold the finding come first, then those of the most passes, then the least of them.

    Of those that do not hold it the largest is the one that it has grown from.
    """
    size = _order(entry["size"])
    return bool(growth), -len(set(entry["passes"])), -size if growth else size


def _order(figures: dict[str, Any]) -> float:
    largest = figures.get("max_abs")
    return float("inf") if largest is None else largest


def _growth(finding: dict[str, Any], entry: dict[str, Any]) -> str:
    """From what to what a finding has grown, in words; empty where it has not."""
    parts = []
    if entry["certainty"] == SUSPECT and finding["certainty"] == PROVEN:
        parts.append("from suspect to proven")
    for key, name in FIGURES.items():
        before, now = entry["size"][key], finding.get(key, 0 if key == "nonfinite" else None)
        if before is None or (key == "rel_l2" and now is None):  # relative to nothing
            continue
        if now is None or now > GROWN * before:
            parts.append(
                f"{name} from {before:.3g} to {'what is not finite' if now is None else f'{now:.3g}'}"
            )
    return ", ".join(parts)
