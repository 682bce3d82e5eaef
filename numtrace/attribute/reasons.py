"""What is said of a verdict: the sentences, from a variant's record, its sites and its findings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numtrace.attribute.amendments import UNDECIDED
from numtrace.attribute.coverage import Unjudged
from numtrace.attribute.findings import EXPLAINED, listed
from numtrace.attribute.semantics import LOWERING, OUTPUTS, Charge


def over_tolerance(outputs: Sequence[dict[str, Any]]) -> str:
    """The greatest distance that does not meet the tolerance: from what is expected, where something is."""
    over = [one for one in outputs if not one["allclose"]]
    golden = any(one.get("golden_max_abs") is not None for one in over)
    gaps = [one.get("golden_max_abs" if golden else "max_abs") for one in over]
    finite = [gap for gap in gaps if gap is not None]
    size = number(max(finite) if len(finite) == len(gaps) else None)
    return f"max abs {size}{' from the expected output' if golden else ''}"


def nonfinite(record: dict[str, Any], out_of_range: bool) -> str:
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


def golden_off(golden: dict[str, Any]) -> str:
    """That what is expected is not what the input stage means."""
    return (
        f"the expected output is not what the program means where IREE begins with it: {_apart(golden)} from the "
        "exact value of the input stage, more than rounding; either the import to that stage is wrong, or the "
        "expected output is of another program"
    )


def golden_as_compiled(golden: dict[str, Any]) -> str:
    """Appended to an accusation: that what is expected is what was compiled."""
    return (
        f"; but the expected output is the compiled program's, and {_apart(golden)} from the reference: either "
        "numtrace reads the source wrong, or the expected output was made by the same lowering"
    )


def golden_apart(golden: dict[str, Any] | None) -> str:
    """A remark where the expected output is not the reference's; empty where there is none."""
    return f"; the expected output is {_apart(golden)} from the reference" if golden and golden["off"] else ""


def _apart(golden: dict[str, Any]) -> str:
    if golden["disagreeing"]:
        return f"{golden['disagreeing']} elements of NaN or Inf apart"
    return f"{number(golden['max_abs'])} of {number(golden['of'])}"


def changed_mathematics(
    charged: Charge,
    brought_in: Sequence[dict[str, Any]],
    known: Sequence[dict[str, Any]],
    record: dict[str, Any],
) -> str:
    """How much reaches the output in exact arithmetic, and where it was brought in."""
    what = "the lowering" if charged.kind == LOWERING else "the pass"
    size = "a NaN or Inf" if charged.max_abs is None else number(charged.max_abs)
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
    return text + grown(brought_in)


def counted(known: Sequence[dict[str, Any]]) -> str:
    """``2 known findings (convolution_1, add)``."""
    names = listed([one["op"] for one in known])
    return f"{len(known)} known finding{'s' * (len(known) > 1)} ({names})"


def grown(findings: Sequence[dict[str, Any]], most: int = 3) -> str:
    """What known findings have grown to, the first few of them; empty where none has."""
    found = [f"{one['op']} ({one['grown']})" for one in findings if one.get("grown")]
    if not found:
        return ""
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return f"; grown since it was accepted: {', '.join(found[:most])}{more}"


def number(value: float | None) -> str:
    """Three digits; None is the size of what has no finite element."""
    return "of nothing finite" if value is None else f"{value:.3g}"


def no_fault(known: Sequence[dict[str, Any]]) -> str:
    """``no fault``, or that none is new."""
    return "no new fault" if known else "no fault"


def besides(known: Sequence[dict[str, Any]]) -> str:
    """A remark on what is known; empty where nothing is."""
    return f" besides {counted(known)}" if known else ""


def near_ties(sites: Sequence[dict[str, Any]]) -> str:
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


def unsure(record: dict[str, Any], sites: Sequence[dict[str, Any]]) -> str:
    """What differs visibly, and float64 does not know well enough to say why."""
    found = [site for site in sites if site.get("unsure")]
    count = sum(site["unsure"] for site in found) + record.get("unsure", 0)
    where = listed([site["op"] for site in found]) if found else "the outputs"
    return (
        f"{count} element{'s' * (count > 1)} of {where} {'are' if count > 1 else 'is'} not the source's in exact "
        "arithmetic, and noise of float64's rounding moves the program's as far: whether the source hangs on it as "
        "well is not known; try other inputs with --seed or --input"
    )


def undefined(what: Sequence[str]) -> str:
    """That the source itself leaves open what it means."""
    more = f", and {len(what) - 1} more" if len(what) > 1 else ""
    return f"; but the source has no defined result there: {what[0]}{more}"


def not_judged(found: Unjudged, sites: Sequence[dict[str, Any]]) -> str:
    """Which code has no bound, why, and that the rest does not outweigh it."""
    count = len(found.sites)
    open_ = sum(site.get("free") or 0 for site in found.sites)
    of_some = f" for {open_} elements" if all(site.get("free") for site in found.sites) else ""
    off = "" if found.max_abs is None else f", up to {found.max_abs:.3g}"
    # 2^24 ulps and more are of what should be all but zero: they are as many as its exponent is small.
    off += "" if found.max_ulp is None or found.max_ulp >= 2.0**24 else f" or {found.max_ulp:.3g} ulp"
    why = next((site.get("unbounded_reason") for site in found.sites if site.get("unbounded_reason")), None)
    return (
        f"the code of {listed([site['op'] for site in found.sites])} has no error bound"
        f"{of_some}{f' ({why})' if why else ''}, and what it brought in{off}, is no less than what all that was "
        f"judged did: that the error is rounding is not known of {count} of {len(sites)} sites"
    )


def unbounded(sites: Sequence[dict[str, Any]]) -> str:
    """What the verdict says nothing of."""
    count = sum(site.get("code") == "unbounded" for site in sites)
    if not count:
        return ""
    return f"; the code of {count} of {len(sites)} sites has no error bound and is not judged"


def rounding_only(record: dict[str, Any], output: dict[str, Any], findings: Sequence[dict[str, Any]]) -> str:
    """That there is no fault, the error's size, torch's beside it, and what costs the most."""
    known = [one for one in findings if one.get("known")]
    found = f"{no_fault(known)} found{besides(known)}"
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
    text = f"{found}; {rest} max abs {number(error)}"
    torch_error = record["torch_same_dtype"]
    if torch_error and torch_error["max_abs"] is not None:
        text += f" (torch in {torch_error['dtype']}: {torch_error['max_abs']:.3g})"
    sums = [one for one in findings if one["certainty"] == EXPLAINED]
    if sums:
        text += (
            f"; the order of a sum costs the most at {listed([one['op'] for one in sums])}, see its finding"
        )
    return text


def not_traced_equal(record: dict[str, Any]) -> str:
    """How far the traced program is from the plain one, and that from itself."""
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
