"""The verdict of one variant, from its numbers alone; nothing here knows a pass by name."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from numtrace.attribute.amendments import UNDECIDED
from numtrace.attribute.coverage import Unjudged, unjudged
from numtrace.attribute.findings import EXPLAINED, listed
from numtrace.attribute.semantics import (
    LOWERING,
    OUTPUTS,
    PASS,
    Charge,
    charge,
    out_of_range,
    semantic_findings,
)


@dataclass(frozen=True, slots=True)
class Judgement:
    verdict: str
    reason: str


def judge(
    record: dict[str, Any],
    sites: Sequence[dict[str, Any]],
    *,
    is_baseline: bool,
    baseline: dict[str, Any] | None,
    tolerant: bool,
    blamed: Collection[str] = (),
    findings: Sequence[dict[str, Any]] | None = None,
) -> Judgement:
    """The first verdict of design section 6 that applies to a variant that ran.

    Args:
        record: the worker's ``variant`` event.
        sites: its site records, amended.
        is_baseline: whether this is the variant without passes.
        baseline: the baseline's event; None when this is the baseline, or when it has no result.
        tolerant: whether a tolerance was given.
        blamed: the ops that one of the variant's passes was found to change the mathematics of, alone. Where
            there are some, the other passes' ops are not named beside them.
        findings: all that the variant is accused of, with the known ones marked, which make no verdict. Without,
            the record's own and those of the sites, none of them known.
    """
    meaning: dict[str, Any] = {"is_baseline": is_baseline, "baseline": baseline}
    if findings is None:
        findings = [*semantic_findings(record, sites, **meaning, blamed=blamed), *record["findings"]]
    known = [one for one in findings if one.get("known")]
    counting = [one for one in findings if not one.get("known")]
    uncovered = [site for site in sites if site["match"] == "uncovered"]
    code = _code(counting)
    if record["tainted"]:
        if code is not None:  # judged on what each dispatch really got: no matter what is upstream
            return code
        ops = ", ".join(sorted({site["reason"] for site in uncovered})) or "an op"
        return Judgement(
            "inconclusive",
            f"{len(uncovered)} sites could not be evaluated ({ops}); what comes after them proves nothing",
        )
    charged = charge(record, sites, **meaning)
    semantic = [one for one in counting if one["kind"] in (PASS, LOWERING)]
    constants = [one for one in semantic if one.get("constants")]
    brought_in = [one for one in semantic if not one.get("constants")]
    if charged is not None and brought_in:
        reason = _semantic(charged, brought_in, known, record)
        golden = record.get("golden")
        if golden and golden["as_compiled"]:
            return Judgement("inconclusive", reason + _golden_as_compiled(golden))
        if not charged.proven:
            return Judgement("inconclusive", f"{reason}; or the lowering did: the baseline does not compile")
        return Judgement("lowering-bug" if charged.kind == LOWERING else "pass-bug", reason)
    if constants:
        reason = f"the lowering changed the mathematics: {constants[0]['text']}{_grown(constants)}"
        return Judgement("lowering-bug", reason)
    if code is not None:
        return code
    golden = record.get("golden")
    if golden and golden["off"] and record["reference"] == "self":
        return Judgement("inconclusive", _golden_off(golden))
    if not record["traced_equal"] and not (record.get("repeats") or {"within": False})["within"]:
        return Judgement("inconclusive", _traced(record))
    if uncovered:
        return Judgement(
            "inconclusive", f"{len(uncovered)} sites could not be evaluated, though none reaches the output"
        )
    if brought_in:
        return Judgement(
            "inconclusive",
            f"the exact value of {listed([one['op'] for one in brought_in])} is not the source's, but nothing of "
            f"it reaches the output with these inputs; try others with --seed or --input{_grown(brought_in)}",
        )
    part = "max_abs" if is_baseline or not record["split"]["baseline_known"] else "pass"
    beyond = out_of_range(record, sites, record["split"]["semantic"][part])
    output = record["output"] or {"max_abs": 0.0, "disagreeing": 0, "allclose": None}
    apart = any(one["disagreeing"] and not one.get("as_golden") for one in record["outputs"])
    if apart and not _as_known(record, [*known, *_known_before(baseline)]):
        return Judgement("over-tolerance", _nonfinite(record, beyond) + _golden_apart(golden))
    if tolerant and not all(one["allclose"] for one in record["outputs"]):
        fault = f"{_no_fault(known)} was found" + _remark(known)
        over = f"{_over(record['outputs'])} is over the given tolerance; {fault}"
        return Judgement("over-tolerance", over + _near_ties(sites))
    known_there = record["split"]["execution_max_abs"] if known else output["max_abs"]
    without = None if tolerant else unjudged(record, sites, known_there)
    if without is not None:
        return Judgement(
            "inconclusive", _not_judged(without, sites) + _near_ties(sites) + _golden_apart(golden)
        )
    remarks = _near_ties(sites) + _unbounded(sites) + _golden_apart(golden)
    return Judgement("ok", _rounding(record, output, findings) + remarks)


def _over(outputs: Sequence[dict[str, Any]]) -> str:
    """The greatest distance that does not meet the tolerance: from what is expected, where something is."""
    over = [one for one in outputs if not one["allclose"]]
    golden = any(one.get("golden_max_abs") is not None for one in over)
    gaps = [one.get("golden_max_abs" if golden else "max_abs") for one in over]
    finite = [gap for gap in gaps if gap is not None]
    size = _number(max(finite) if len(finite) == len(gaps) else None)
    return f"max abs {size}{' from the expected output' if golden else ''}"


def _as_known(record: dict[str, Any], known: Sequence[dict[str, Any]]) -> bool:
    """Whether the NaN and Inf of the outputs are those of the exact outputs, which known findings account for."""
    semantic = any(one["kind"] in (PASS, LOWERING) for one in known)
    return semantic and record.get("execution_disagreeing") == 0


def _known_before(baseline: dict[str, Any] | None) -> list[dict[str, Any]]:
    """What is known of the baseline's mathematics, if all of it is: what it changed is in every variant."""
    found = [one for one in (baseline or {}).get("findings", ()) if one["kind"] == LOWERING]
    return found if all(one.get("known") for one in found) else []


def _nonfinite(record: dict[str, Any], out_of_range: bool) -> str:
    """Which outputs are NaN or Inf on one side only, who made the first, and what is known of why."""
    total = sum(one["disagreeing"] for one in record["outputs"])
    lost = sum(one.get("lost", 0) for one in record["outputs"])
    found = []
    if total > lost:
        origin = record["nonfinite_origin"]
        made = f"; the first was made by {origin['op']} ({origin['site']})" if origin else ""
        why = (
            "what it was lowered to leaves the range of float64 as well"
            if out_of_range
            else "in exact arithmetic it is finite, in the types of the program it is not"
        )
        found.append(f"{total - lost} outputs are NaN or Inf, not as in the reference{made}; {why}")
    if lost:
        found.append(f"{lost} outputs are no NaN or Inf where the reference is")
    return "; ".join(found)


def _golden_off(golden: dict[str, Any]) -> str:
    return (
        f"the expected output is not what the program means where IREE begins with it: {_apart(golden)} from the "
        "exact value of the input stage, more than rounding; either the import to that stage is wrong, or the "
        "expected output is of another program"
    )


def _golden_as_compiled(golden: dict[str, Any]) -> str:
    return (
        f"; but the expected output is the compiled program's, and {_apart(golden)} from the reference: either "
        "numtrace reads the source wrong, or the expected output was made by the same lowering"
    )


def _golden_apart(golden: dict[str, Any] | None) -> str:
    """A remark where the expected output is not the reference's; empty where there is none."""
    return f"; the expected output is {_apart(golden)} from the reference" if golden and golden["off"] else ""


def _apart(golden: dict[str, Any]) -> str:
    if golden["disagreeing"]:
        return f"{golden['disagreeing']} elements of NaN or Inf apart"
    return f"{_number(golden['max_abs'])} of {_number(golden['of'])}"


def _code(findings: Sequence[dict[str, Any]]) -> Judgement | None:
    """The verdict on the code, of the findings that are not accounted for: proven ones first."""
    for certainty, verdict, what in (
        ("proven", "codegen-bug", "the code of {op} is wrong"),
        ("suspect", "codegen-suspect", "the code of {op} may be wrong"),
    ):
        found = [one for one in findings if one["kind"] == "codegen" and one["certainty"] == certainty]
        if found:
            worst = found[0]
            more = f"; {len(found) - 1} more such findings" if len(found) > 1 else ""
            where = f"{what.format(op=worst['op'])} ({worst['sites'][0]})"
            return Judgement(verdict, f"{where}: {worst['text']}{more}{_grown(found)}")
    return None


def _semantic(
    charged: Charge,
    brought_in: Sequence[dict[str, Any]],
    known: Sequence[dict[str, Any]],
    record: dict[str, Any],
) -> str:
    what = "the lowering" if charged.kind == LOWERING else "the pass"
    size = "a NaN or Inf" if charged.max_abs is None else _number(charged.max_abs)
    text = f"{what} changed the mathematics: {size} at the output even in exact arithmetic"
    at_sites = [one["op"] for one in brought_in if one["sites"]]
    if at_sites:
        text += f", brought in at {listed(at_sites)}"
    elif brought_in[0]["op"] != OUTPUTS:
        text += f", brought in at {brought_in[0]['op']}: {brought_in[0]['text']}"
    elif known:
        text += f", {brought_in[0]['text']}"
    if known:  # which of the parameters are theirs cannot be told
        text += f", besides {counted(known)}"
    elif record["no_longer_read"]:
        text += f"; the program no longer reads {listed(record['no_longer_read'])}"
    return text + _grown(brought_in)


def counted(known: Sequence[dict[str, Any]]) -> str:
    """``2 known findings (convolution_1, add)``."""
    names = listed([one["op"] for one in known])
    return f"{len(known)} known finding{'s' * (len(known) > 1)} ({names})"


def _grown(findings: Sequence[dict[str, Any]], most: int = 3) -> str:
    """What known findings have grown to, the first few of them; empty where none has."""
    grown = [f"{one['op']} ({one['grown']})" for one in findings if one.get("grown")]
    if not grown:
        return ""
    more = f" and {len(grown) - most} more" if len(grown) > most else ""
    return f"; grown since it was accepted: {', '.join(grown[:most])}{more}"


def _number(value: float | None) -> str:
    return "of nothing finite" if value is None else f"{value:.3g}"


def _no_fault(known: Sequence[dict[str, Any]]) -> str:
    return "no new fault" if known else "no fault"


def _remark(known: Sequence[dict[str, Any]]) -> str:
    return f" besides {counted(known)}" if known else ""


def _near_ties(sites: Sequence[dict[str, Any]]) -> str:
    """What differs in exact arithmetic, and is no change of the mathematics."""
    near = [site for site in sites if site.get("near_ties")]
    text = ""
    if near:
        count = sum(site["near_ties"] for site in near)
        text = (
            f"; near ties: {count} element{'s' * (count > 1)} of {listed([site['op'] for site in near])} hang on the "
            "rounding of float64 (a decision, or numbers that cancel), which is nobody's fault"
        )
    noise = [site["op"] for site in sites if site.get("reason") == UNDECIDED]
    if noise:
        text += f"; what differs at {listed(noise)} is no more than noise of float64's rounding becomes at the outputs"
    return text


def _not_judged(found: Unjudged, sites: Sequence[dict[str, Any]]) -> str:
    count = len(found.sites)
    off = "" if found.max_abs is None else f", up to {found.max_abs:.3g}"
    off += "" if found.max_ulp is None else f" or {found.max_ulp:.3g} ulp"
    why = next((site.get("unbounded_reason") for site in found.sites if site.get("unbounded_reason")), None)
    return (
        f"the code of {listed([site['op'] for site in found.sites])} has no error bound"
        f"{f' ({why})' if why else ''}, and what it brought in{off}, is no less than what all that was judged did: "
        f"that the error is rounding is not known of {count} of {len(sites)} sites"
    )


def _unbounded(sites: Sequence[dict[str, Any]]) -> str:
    """What the verdict says nothing of."""
    count = sum(site.get("code") == "unbounded" for site in sites)
    if not count:
        return ""
    return f"; the code of {count} of {len(sites)} sites has no error bound and is not judged"


def _rounding(record: dict[str, Any], output: dict[str, Any], findings: Sequence[dict[str, Any]]) -> str:
    known = [one for one in findings if one.get("known")]
    found = f"{_no_fault(known)} found{_remark(known)}"
    apart = sum(one["disagreeing"] for one in record["outputs"])
    if apart and all(one.get("as_golden") for one in record["outputs"] if one["disagreeing"]):
        found += f"; {apart} elements are NaN or Inf where the reference is not, as in the expected output"
    elif apart:  # known findings account for them
        found += f"; {apart} elements of the outputs are NaN or Inf on one side only, as in exact arithmetic"
    elif output["max_abs"] is None:
        return f"{found}; no element of the output is finite, in the reference as in the compiled program"
    if any(one["kind"] == "codegen" for one in known):
        rest = "the error of execution, the known code's included, is"
    else:
        rest = "the rest of the error is of execution," if known else "the error is of execution,"
    error = record["split"]["execution_max_abs"] if known else output["max_abs"]
    text = f"{found}; {rest} max abs {_number(error)}"
    torch_error = record["torch_same_dtype"]
    if torch_error and torch_error["max_abs"] is not None:
        text += f" (torch in {torch_error['dtype']}: {torch_error['max_abs']:.3g})"
    sums = [one for one in findings if one["certainty"] == EXPLAINED]
    if sums:
        text += (
            f"; the order of a sum costs the most at {listed([one['op'] for one in sums])}, see its finding"
        )
    return text


def _traced(record: dict[str, Any]) -> str:
    repeats = record.get("repeats")
    if not repeats:
        return "the traced program's output is not bit-equal to the plain one's"
    apart, away = (
        "a NaN or Inf" if repeats[key] is None else f"{repeats[key]:.3g}" for key in ("spread", "traced")
    )
    return (
        f"the traced program's output is {away} away from the plain one's, which in {repeats['runs']} runs differ "
        f"by {apart}"
    )
