"""What a variant is accused of in exact arithmetic: whose mathematics differs, and one finding per source op."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from numtrace.attribute.findings import PROVEN, SUSPECT, listed
from numtrace.attribute.floor import SEMANTIC_FLOOR
from numtrace.attribute.worth import costly_constants

#: Kinds of findings: the pass changed the mathematics, or IREE's own lowering did.
PASS, LOWERING = "pass-semantics", "lowering-semantics"
#: The op of a finding that nothing can be said of but that the outputs differ.
OUTPUTS = "(outputs)"
#: Of two maxima of the same exact difference, evaluated in another order; far above what float64 leaves of one.
_SAME = 1e-6


@dataclass(frozen=True, slots=True)
class Charge:
    """A semantic difference that reaches the outputs: whose, how large there, and whether that is sure.

    ``part`` is its name in the split. ``max_abs`` is None where it is a NaN or Inf on one side only.
    """

    kind: str
    part: str
    max_abs: float | None
    proven: bool = True


def charge(
    record: dict[str, Any],
    sites: Sequence[dict[str, Any]],
    *,
    is_baseline: bool,
    baseline: dict[str, Any] | None,
) -> Charge | None:
    """The semantic difference at the outputs of a variant that ran; None where there is none.

    Args as of :func:`numtrace.attribute.verdict.judge`.
    """
    split, relative = record["split"]["semantic"], record["split"]["relative"]
    known = is_baseline or record["split"]["baseline_known"]
    part = "max_abs" if is_baseline or not known else "pass"
    # Two that both mean what the source means are the same, though they may be apart by twice the floor.
    apart = _over(relative["max_abs"]) or _over(relative["lowering"])
    if apart and _over(relative[part]) and not out_of_range(record, sites, split[part]):
        return Charge(LOWERING if is_baseline else PASS, part, split[part], known)
    if not is_baseline and known and baseline is None and _over(relative["lowering"]):
        return Charge(LOWERING, "lowering", split["lowering"])
    return None


def out_of_range(record: dict[str, Any], sites: Sequence[dict[str, Any]], gap: float | None) -> bool:
    """Whether a gap that is no number is only that float64 does not hold what the program was lowered to."""
    beyond = set(record.get("beyond_float64", ()))
    return gap is None and any(beyond & set(site["made_by"]) for site in differing(sites))


def differing(sites: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The sites whose exact value is known not to be the source's."""
    return [site for site in sites if site["match"] == "differs" and not site["tainted"]]


def semantic_findings(
    record: dict[str, Any],
    sites: Sequence[dict[str, Any]],
    *,
    is_baseline: bool,
    baseline: dict[str, Any] | None,
    blamed: Collection[str] = (),
) -> list[dict[str, Any]]:
    """One finding for each source op that the difference was brought in at, in the order of the program.

    ``proven`` where it reaches the outputs, ``suspect`` where nothing of it does, or where something upstream could
    not be evaluated. A difference at the outputs that no site accounts for is a finding of its own: where the sites
    are known findings, it is what is left.

    Args as of :func:`numtrace.attribute.verdict.judge`.
    """
    found = charge(record, sites, is_baseline=is_baseline, baseline=baseline)
    constants = _constants(record) if is_baseline else []
    kind = found.kind if found else LOWERING if is_baseline else PASS
    certainty = PROVEN if found and found.proven and not record["tainted"] else SUSPECT
    changed = record["changed"]
    beyond = () if found else record.get("beyond_float64", ())
    there = differing(sites)
    own = _brought_in(there, changed, baseline) or (there if found else [])
    own = [site for site in own if not set(beyond) & set(site["made_by"])]
    norm = record["split"].get("rel_l2", {}).get(found.part) if found else None
    common = {
        "kind": kind,
        "certainty": certainty,
        "output_max_abs": found.max_abs if found else 0.0,
        "output_rel_l2": norm if found else 0.0,
    }
    findings = [common | at_op for at_op in _by_op(own, changed or record.get("read_otherwise", ()), blamed)]
    if found and not record["tainted"] and (not findings or _unsited(record, baseline)):
        findings.append(common | _at_outputs(record, found if not findings else None))
    return [*findings, *constants]


def _over(relative: float | None) -> bool:
    """Whether a gap between exact outputs is changed mathematics; None is a NaN or Inf on one side only."""
    return relative is None or relative > SEMANTIC_FLOOR


def _brought_in(
    sites: Sequence[dict[str, Any]], changed: Collection[int], baseline: dict[str, Any] | None
) -> list[dict[str, Any]]:
    """Those that do not differ alike in the baseline: what differs there already is the lowering's.

    Alike is what the pass did not touch, where that is known, or what differs by as much.
    """
    before: dict[str, list[dict[str, Any]]] = {}
    for site in baseline["differing"] if baseline else ():
        before.setdefault(site["op"], []).append(site)

    def as_before(site: dict[str, Any]) -> bool:
        others = before.get(site["op"], [])
        if others and changed and not set(changed) & set(site["made_by"]):
            return True
        return any(_same(_semantic(site)["max_abs"], _semantic(other)["max_abs"]) for other in others)

    return [site for site in sites if not as_before(site)]


def _same(a: float | None, b: float | None) -> bool:
    return a == b if a is None or b is None else abs(a - b) <= _SAME * max(abs(a), abs(b))


def _semantic(site: dict[str, Any]) -> dict[str, Any]:
    return site.get("semantic") or {"max_abs": None, "rel_l2": None}


def _by_op(
    sites: Sequence[dict[str, Any]], changed: Collection[int], blamed: Collection[str]
) -> Iterable[dict[str, Any]]:
    """By the source op that can have made a site differ: of those at work in it the changed ones (in a baseline, those
    that IREE reads otherwise), else its root.

    A site that several can have made counts for each of them: none may hide behind another.
    """
    ops: dict[Any, tuple[str, str]] = {}  # name and module
    groups: dict[Any, list[dict[str, Any]]] = {}
    for site in sites:
        modules = site.get("made_by_modules") or [""] * len(site["made_by"])
        made = zip(site["made_by"], site["made_by_names"], modules, strict=True)
        touched: dict[Any, tuple[str, str]] = {n: (name, module) for n, name, module in made if n in changed}
        touched = {stamp: op for stamp, op in touched.items() if op[0] in blamed} or touched
        for key, op in (touched or {_root(site): (site["op"], site.get("module", ""))}).items():
            ops[key] = op
            groups.setdefault(key, []).append(site)
    for key, group in groups.items():
        at = sorted(group, key=_size, reverse=True)
        beside = [ops[other][0] for other in groups if other != key and _has(groups[other], at[0])]
        yield _finding(*ops[key], at, beside)


def _has(sites: Sequence[dict[str, Any]], site: dict[str, Any]) -> bool:
    return any(site is one for one in sites)


def _root(site: dict[str, Any]) -> tuple[str, ...]:
    """What tells two ops of one name apart."""
    return tuple(site.get(key, "") for key in ("op", "module", "location"))


def _size(site: dict[str, Any]) -> float:
    largest = _semantic(site)["max_abs"]
    return float("inf") if largest is None else largest


def _finding(op: str, module: str, sites: Sequence[dict[str, Any]], others: Sequence[str]) -> dict[str, Any]:
    worst = sites[0]
    term = _semantic(worst)
    size = "no element is" if term["max_abs"] is None else f"up to {term['max_abs']:.3g} from"
    norm = "" if term["rel_l2"] is None else f", rel L2 {term['rel_l2']:.3g}"
    beside = f", together with {listed(others)}" if others else ""
    return {
        "op": op,
        "ops": worst.get("ops", [op]),
        "module": module,
        "dispatch": worst.get("dispatch", ""),
        "sites": [site["id"] for site in sites if "id" in site],
        "dtype": worst.get("dtype", ""),
        "max_abs": term["max_abs"],
        "rel_l2": term["rel_l2"],
        "nonfinite": term.get("nan", 0) + term.get("inf", 0),
        "elements": worst.get("elements", 0),
        "text": f"even in exact arithmetic {size} the source's value{norm}{beside}",
    }


def _unsited(record: dict[str, Any], baseline: dict[str, Any] | None) -> bool:
    """Whether the outputs differ with every site set back, by more than the baseline's do."""
    elsewhere = record["split"].get("elsewhere")
    if elsewhere is None or not _over(elsewhere["relative"]):
        return False
    before = (baseline or {}).get("split", {}).get("elsewhere") or {"max_abs": 0.0}
    return not _same(elsewhere["max_abs"], before["max_abs"])


def _constants(record: dict[str, Any]) -> list[dict[str, Any]]:
    """The finding on constants and places that the lowering rounded, where they cost more than rounding."""
    if not costly_constants(record):
        return []
    named = [one["op"] for one in (*record["constants"], *record["folded"])]
    ops = list(dict.fromkeys((*named, *record["places"]))) or [OUTPUTS]
    worth, torch_error = record["split"]["semantic"]["constant"], record["torch_same_dtype"]
    text = (
        f"the constants that it rounded are worth {worth:.3g} at the output, where torch in "
        f"{torch_error['dtype']} is {torch_error['max_abs']:.3g} off; they belong to {listed(ops)}"
    )
    return [
        {"kind": LOWERING, "certainty": PROVEN, "op": ops[0], "ops": ops, "sites": [], "constants": True}
        | {"max_abs": worth, "rel_l2": None, "output_max_abs": worth, "text": text}
    ]


def _at_outputs(record: dict[str, Any], whole: Charge | None) -> dict[str, Any]:
    """The finding on what no site accounts for: ``whole`` where there are no sites at all."""
    gap = whole.max_abs if whole else record["split"]["elsewhere"]["max_abs"]
    misfits = record.get("misfits", ())
    size = "a NaN or Inf" if gap is None else f"{gap:.3g}"
    text = f"{size} of it at the outputs is of no dispatch that differs"
    if misfits:
        first = misfits[0]
        text = f"a reshape of it takes {first['read']} elements from a tensor of {first['of']}"
    op = misfits[0]["op"] if misfits else OUTPUTS
    return {"op": op, "ops": [op], "sites": [], "max_abs": gap, "rel_l2": None, "text": text}
