"""The verdict of one variant, from its numbers alone; nothing here knows a pass by name."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from numtrace.attribute.findings import EXPLAINED
from numtrace.attribute.floor import SEMANTIC_FLOOR


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
    """
    split, relative = record["split"]["semantic"], record["split"]["relative"]
    differing = [site for site in sites if site["match"] == "differs" and not site["tainted"]]
    uncovered = [site for site in sites if site["match"] == "uncovered"]
    code = _code(record["findings"])
    if record["tainted"]:
        if code is not None:  # judged on what each dispatch really got: no matter what is upstream
            return code
        ops = ", ".join(sorted({site["reason"] for site in uncovered})) or "an op"
        return Judgement(
            "inconclusive",
            f"{len(uncovered)} sites could not be evaluated ({ops}); what comes after them proves nothing",
        )
    known = is_baseline or record["split"]["baseline_known"]
    part = "max_abs" if is_baseline or not known else "pass"
    own = split[part]
    beyond = set(record.get("beyond_float64", ()))
    out_of_range = own is None and any(beyond & set(site["made_by"]) for site in differing)
    if _over(relative[part]) and not out_of_range:
        reason = _semantic(own, differing, record, is_baseline, blamed)
        if not known:
            return Judgement("inconclusive", f"{reason}; or the lowering did: the baseline does not compile")
        return Judgement("lowering-bug" if is_baseline else "pass-bug", reason)
    if not is_baseline and known and baseline is None and _over(relative["lowering"]):
        return Judgement("lowering-bug", _semantic(split["lowering"], differing, record, True))
    if is_baseline and (constants := _constants(record)):
        return Judgement("lowering-bug", constants)
    if code is not None:
        return code
    golden = record.get("golden")
    if golden and golden["off"] and record["reference"] == "self":
        return Judgement("inconclusive", _golden_off(golden))
    if not record["traced_equal"]:
        return Judgement("inconclusive", "the traced program's output is not bit-equal to the plain one's")
    if uncovered:
        return Judgement(
            "inconclusive", f"{len(uncovered)} sites could not be evaluated, though none reaches the output"
        )
    before = set() if baseline is None else {site["op"] for site in baseline["differing"]}
    new = [site for site in differing if site["op"] not in before and not beyond & set(site["made_by"])]
    if new:
        return Judgement(
            "inconclusive",
            f"the exact value of {_ops(new)} is not the source's, but nothing of it reaches the output "
            "with these inputs; try others with --seed or --input",
        )
    output = record["output"] or {"max_abs": 0.0, "disagreeing": 0, "allclose": None}
    if any(one["disagreeing"] for one in record["outputs"]):
        return Judgement("over-tolerance", _nonfinite(record, out_of_range) + _golden_apart(golden))
    if tolerant and not all(one["allclose"] for one in record["outputs"]):
        return Judgement(
            "over-tolerance",
            f"max abs {_number(output['max_abs'])} is over the given tolerance; no fault was found",
        )
    return Judgement("ok", _rounding(record, output) + _golden_apart(golden))


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


#: What constants may be worth at the output, in torch's own errors and in units in the last place of f32 there:
#: each is a unit or so off, as every operation of torch's is.
_CONSTANTS_MARGIN = 8.0


def constants_are_rounding(worth: float, torch_error: float, size: float) -> bool:
    """Whether constants that were rounded cost no more than rounding does, with max abs ``worth`` at an output.

    ``torch_error`` is torch's own max abs there, ``size`` the largest element.
    """
    return worth <= _CONSTANTS_MARGIN * (torch_error + size * 2.0**-23)


def _constants(record: dict[str, Any]) -> str:
    """What to say where constants that the lowering rounded cost far more than rounding; empty where they do not.

    A scalar truncated from 4/7 to 0.571428537 moves an index from 2.0 to 1.9999999, and with it another pixel.
    """
    worth, torch_error = record["split"]["semantic"]["constant"], record["torch_same_dtype"]
    if not worth or not torch_error or torch_error["max_abs"] is None:
        return ""
    if constants_are_rounding(worth, torch_error["max_abs"], record.get("output_size") or 0.0):
        return ""
    names = [*(one["op"] for one in record["constants"]), *(one["op"] for one in record["folded"])]
    return (
        f"the lowering changed the mathematics: the constants that it rounded are worth {_number(worth)} at the "
        f"output, where torch in {torch_error['dtype']} is {_number(torch_error['max_abs'])} off; "
        f"they belong to {_listed(names)}"
    )


def _golden_off(golden: dict[str, Any]) -> str:
    return (
        f"the expected output is not what the program means where IREE begins with it: {_apart(golden)} from the "
        "exact value of the input stage, more than rounding; either the import to that stage is wrong, or the "
        "expected output is of another program"
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
            return Judgement(verdict, f"{where}: {worst['text']}{more}")
    return None


def _over(relative: float | None) -> bool:
    """Whether a gap between exact outputs is changed mathematics; None is a NaN or Inf on one side only."""
    return relative is None or relative > SEMANTIC_FLOOR


def _semantic(
    own: float | None,
    differing: Sequence[dict[str, Any]],
    record: dict[str, Any],
    lowering: bool,
    blamed: Collection[str] = (),
) -> str:
    size = "a NaN or Inf" if own is None else _number(own)
    what = "the lowering" if lowering else "the pass"
    ops = suspects(differing, record["changed"], blamed)
    misfits = record.get("misfits", ())
    if ops:
        where = f", brought in at {_listed(ops)}"
    elif misfits:
        first = misfits[0]
        where = (
            f", brought in at {first['op']}: a reshape of it takes {first['read']} elements from a tensor "
            f"of {first['of']}"
        )
    else:
        where = ""
    lost = (
        f"; the program no longer reads {_listed(record['no_longer_read'])}"
        if record["no_longer_read"]
        else ""
    )
    return f"{what} changed the mathematics: {size} at the output even in exact arithmetic{where}{lost}"


def suspects(
    differing: Sequence[dict[str, Any]], changed: Collection[int], blamed: Collection[str] = ()
) -> list[str]:
    """The source ops that can have made the differing sites: of those at work in each, the ones that were changed."""
    names: dict[str, None] = {}
    for site in differing:
        touched = [
            name
            for stamp, name in zip(site["made_by"], site["made_by_names"], strict=True)
            if stamp in changed
        ]
        touched = [name for name in touched if name in blamed] or touched or [site["op"]]
        names.update(dict.fromkeys(touched))
    return list(names)


def _ops(sites: Sequence[dict[str, Any]]) -> str:
    return _listed([site["op"] for site in sites])


def _listed(names: Sequence[str], most: int = 3) -> str:
    unique = list(dict.fromkeys(names))
    return ", ".join(unique[:most]) + (f" and {len(unique) - most} more" if len(unique) > most else "")


def _number(value: float | None) -> str:
    return "of nothing finite" if value is None else f"{value:.3g}"


def _rounding(record: dict[str, Any], output: dict[str, Any]) -> str:
    if output["max_abs"] is None:
        return (
            "no fault found; no element of the output is finite, in the reference as in the compiled program"
        )
    text = f"no fault found; the error is of execution, max abs {_number(output['max_abs'])}"
    torch_error = record["torch_same_dtype"]
    if torch_error and torch_error["max_abs"] is not None:
        text += f" (torch in {torch_error['dtype']}: {torch_error['max_abs']:.3g})"
    sums = [one for one in record["findings"] if one["certainty"] == EXPLAINED]
    if sums:
        text += (
            f"; the order of a sum costs the most at {_listed([one['op'] for one in sums])}, see its finding"
        )
    return text
