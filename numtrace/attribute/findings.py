"""What a variant is accused of: one finding per fault, with all that speaks for and against it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

#: How sure a finding is. What is explained makes no verdict: the error is accounted for.
PROVEN, SUSPECT, EXPLAINED = "proven", "suspect", "explained"


def listed(names: Sequence[str], most: int = 3) -> str:
    """The first few names, once each, and how many more there are."""
    unique = list(dict.fromkeys(names))
    return ", ".join(unique[:most]) + (f" and {len(unique) - most} more" if len(unique) > most else "")


def accused(records: Iterable[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The sites beyond their bound, by executable: code that many dispatches share is one finding. Worst first."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        if record.get("code") in ("suspect", "proven"):
            groups.setdefault(record["dispatch"], []).append(record)
    ranked = [sorted(group, key=_severity, reverse=True) for group in groups.values()]
    return sorted(ranked, key=lambda group: _severity(group[0]), reverse=True)


def _severity(record: dict[str, Any]) -> tuple[bool, float, float]:
    """Proven before suspect, then by ratio; a ratio that is null is infinite."""
    ratio, proven = record["bound_ratio"], record["proven_ratio"]
    infinite = float("inf")
    return (
        record["code"] == "proven",
        infinite if proven is None else proven,
        infinite if ratio is None else ratio,
    )


def codegen_finding(
    sites: Sequence[dict[str, Any]], witness: dict[str, Any] | None, *, in_order: bool, confirmed: bool
) -> dict[str, Any]:
    """The finding on one executable.

    Args:
        sites: its accused sites, worst first.
        witness: what ``worker/witness.py`` found of the worst; None when it could not be heard.
        in_order: the error is no larger than that of summing in the order of the IR.
        confirmed: torch's reference agrees with the evaluator's reading of the dispatch.
    """
    worst = sites[0]
    routes = [] if witness is None else witness["routes"]
    others = [route for route in routes if route["name"] != "own" and route["status"] == "ran"]
    gone = [route["name"] for route in others if route["measure"].get("code") == "within"]
    stays = [route["name"] for route in others if route["measure"].get("code") in ("suspect", "proven")]
    unsteady = witness is not None and witness["deterministic"] is False
    finding = {
        "kind": "codegen",
        "certainty": _certainty(worst["code"], bool(gone) or unsteady, in_order, confirmed),
        "op": worst["op"],
        "roots": list(dict.fromkeys(site["op"] for site in sites)),
        "ops": worst["ops"],
        "module": worst["module"],
        "dispatch": worst["dispatch"],
        "sites": [site["id"] for site in sites],
        "dtype": worst["dtype"],
        "max_abs": worst["codegen"]["max_abs"],
        "rel_l2": worst["codegen"]["rel_l2"],
        "nonfinite": worst["codegen"]["nan"] + worst["codegen"]["inf"],
        "bound_ratio": worst["bound_ratio"],
        "proven_ratio": worst["proven_ratio"],
        "over_bound": worst["over_bound"],
        "elements": worst["elements"],
        "gone_by": gone,
        "stays_by": stays,
        "deterministic": None if witness is None else witness["deterministic"],
        "as_traced": None if witness is None else witness["as_traced"],
        "in_order": in_order,
        "confirmed": confirmed,
        "routes": [
            {key: route[key] for key in ("name", "status", "reason")}
            | {"bound_ratio": (route["measure"] or {}).get("bound_ratio")}
            | {"code": (route["measure"] or {}).get("code")}
            for route in routes
        ],
    }
    return finding | {"text": _text(finding)}


def _certainty(code: str, contradicted: bool, in_order: bool, confirmed: bool) -> str:
    """``proven`` needs a second witness: other code of the same dispatch that is right, or torch's reference."""
    if in_order and code == "suspect":
        return EXPLAINED
    if code == "proven" and (contradicted or confirmed):
        return PROVEN
    return SUSPECT


def _text(finding: dict[str, Any]) -> str:
    ratio = finding["bound_ratio"]
    times = "differ where they may not" if ratio is None else f"are up to {ratio:.3g} times their bound away"
    parts = [f"{finding['over_bound']} of {finding['elements']} elements {times} from correct code's values"]
    if finding["proven_ratio"] is not None and finding["proven_ratio"] <= 1:
        parts.append(
            f"rounding errors could add up to it, with probability below 1e-9 (at most {finding['proven_ratio']:.2g} "
            "of the bound that holds for any)"
        )
    if finding["certainty"] == EXPLAINED:
        parts.append(
            "summing in the order of the IR, in its type, is as far off: the error is the summation's"
        )
    if finding["deterministic"] is False:
        parts.append("two runs of it differ")
    if finding["as_traced"] is False:
        parts.append("alone it does not make what it made in the program")
    if finding["gone_by"]:
        parts.append(f"gone with {', '.join(finding['gone_by'])}")
    if finding["stays_by"]:
        parts.append(f"the same with {', '.join(finding['stays_by'])}")
    return "; ".join(parts)
