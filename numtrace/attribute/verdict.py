"""The verdict of one variant, from its numbers alone; nothing here knows a pass by name."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from numtrace.attribute import reasons
from numtrace.attribute.coverage import unjudged
from numtrace.attribute.findings import listed
from numtrace.attribute.semantics import LOWERING, PASS, charge, out_of_range, semantic_findings


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
        reason = reasons.changed_mathematics(charged, brought_in, known, record)
        golden = record.get("golden")
        if golden and golden["as_compiled"]:
            return code or Judgement("inconclusive", reason + reasons.golden_as_compiled(golden))
        if charged.kind == LOWERING and record.get("undefined"):
            return code or Judgement("inconclusive", reason + reasons.undefined(record["undefined"]))
        if not charged.proven:
            return Judgement("inconclusive", f"{reason}; or the lowering did: the baseline does not compile")
        return Judgement("lowering-bug" if charged.kind == LOWERING else "pass-bug", reason)
    if constants:
        reason = f"the lowering changed the mathematics: {constants[0]['text']}{reasons.grown(constants)}"
        return Judgement("lowering-bug", reason)
    if code is not None:
        return code
    golden = record.get("golden")
    if golden and golden["off"] and record["reference"] == "self":
        return Judgement("inconclusive", reasons.golden_off(golden))
    if not record["traced_equal"] and not (record.get("repeats") or {"within": False})["within"]:
        return Judgement("inconclusive", reasons.not_traced_equal(record))
    if uncovered:
        return Judgement(
            "inconclusive", f"{len(uncovered)} sites could not be evaluated, though none reaches the output"
        )
    if brought_in:
        return Judgement(
            "inconclusive",
            f"the exact value of {listed([one['op'] for one in brought_in])} is not the source's, but nothing of "
            f"it reaches the output with these inputs; try others with --seed or --input{reasons.grown(brought_in)}",
        )
    part = "max_abs" if is_baseline or not record["split"]["baseline_known"] else "pass"
    beyond = out_of_range(record, sites, record["split"]["semantic"][part])
    output = record["output"] or {"max_abs": 0.0, "disagreeing": 0, "allclose": None}
    apart = any(one["disagreeing"] and not one.get("as_golden") for one in record["outputs"])
    if apart and not _as_known(record, [*known, *_known_before(baseline)]):
        return Judgement("over-tolerance", reasons.nonfinite(record, beyond) + reasons.golden_apart(golden))
    if tolerant and not all(one["allclose"] for one in record["outputs"]):
        fault = f"{reasons.no_fault(known)} was found" + reasons.besides(known)
        over = f"{reasons.over_tolerance(record['outputs'])} is over the given tolerance; {fault}"
        return Judgement("over-tolerance", over + reasons.near_ties(sites))
    if not tolerant and (record.get("unsure") or any(site.get("unsure") for site in sites)):
        return Judgement("inconclusive", reasons.unsure(record, sites) + reasons.golden_apart(golden))
    known_there = record["split"]["execution_max_abs"] if known else output["max_abs"]
    without = None if tolerant else unjudged(record, sites, known_there)
    if without is not None:
        return Judgement(
            "inconclusive",
            reasons.not_judged(without, sites) + reasons.near_ties(sites) + reasons.golden_apart(golden),
        )
    remarks = reasons.near_ties(sites) + reasons.unbounded(sites) + reasons.golden_apart(golden)
    return Judgement("ok", reasons.rounding_only(record, output, findings) + remarks)


def _as_known(record: dict[str, Any], known: Sequence[dict[str, Any]]) -> bool:
    """Whether the NaN and Inf of the outputs are those of the exact outputs, which known findings account for."""
    semantic = any(one["kind"] in (PASS, LOWERING) for one in known)
    return semantic and record.get("execution_disagreeing") == 0


def _known_before(baseline: dict[str, Any] | None) -> list[dict[str, Any]]:
    """What is known of the baseline's mathematics, if all of it is: what it changed is in every variant."""
    found = [one for one in (baseline or {}).get("findings", ()) if one["kind"] == LOWERING]
    return found if all(one.get("known") for one in found) else []


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
            return Judgement(verdict, f"{where}: {worst['text']}{more}{reasons.grown(found)}")
    return None
