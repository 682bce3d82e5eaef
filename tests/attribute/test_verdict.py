"""Verdicts as a table: the first that applies."""

from __future__ import annotations

from typing import Any

import pytest

from numtrace.attribute.verdict import judge


def record(**changes: Any) -> dict[str, Any]:
    output = {"max_abs": 1e-3, "disagreeing": 0, "allclose": None}
    values: dict[str, Any] = {
        "split": semantic(0.0, 0.0),
        "findings": [],
        "tainted": False, "traced_equal": True, "changed": [], "no_longer_read": [], "output": output,
        "outputs": [output], "nonfinite_origin": None, "torch_same_dtype": None,
    }  # fmt: skip
    return values | changes


def semantic(
    pass_: float | None, lowering: float | None, *, known: bool = True, total: float | None = None
) -> dict[str, Any]:
    # A NaN on one side of either part is one on one side of the whole.
    if total is None:
        total = None if pass_ is None or lowering is None else max(pass_, lowering)
    return {
        "semantic": {"max_abs": total, "pass": pass_, "lowering": lowering, "constant": 0.0},
        "relative": {"max_abs": total, "pass": pass_, "lowering": lowering},
        "baseline_known": known,
    }


def site(match: str, **changes: Any) -> dict[str, Any]:
    return {
        "match": match, "tainted": False, "op": "conv", "reason": "no evaluation of x.y",
        "made_by": [], "made_by_names": [],
    } | changes  # fmt: skip


BASELINE = {"differing": []}
FINITE = {"max_abs": 1e-3, "disagreeing": 0, "lost": 0, "allclose": None}
NONFINITE = {"max_abs": 0.0, "disagreeing": 2, "lost": 0, "allclose": None}


def golden(*, off: bool, as_compiled: bool = False) -> dict[str, Any]:
    return {"max_abs": 0.25, "of": 1.0, "disagreeing": 0, "off": off, "as_compiled": as_compiled}


@pytest.mark.parametrize(
    ("given", "sites", "baseline", "verdict"),
    [
        (record(), [], True, "ok"),
        (record(), [], False, "ok"),
        (record(split=semantic(0.0, 1e-9)), [], True, "lowering-bug"),
        (record(split=semantic(1e-9, 0.0)), [], False, "pass-bug"),
        (record(split=semantic(1e-12, 0.0)), [], False, "ok"),
        # Both mean what the source means, as far as float64 knows, though they are apart by more.
        (record(split=semantic(1.5e-11, 0.8e-11, total=0.9e-11)), [], False, "ok"),
        # NaN or Inf on one side only is no number, and changed mathematics.
        (record(split=semantic(None, 0.0)), [], False, "pass-bug"),
        # What the lowering changed is not the pass's fault.
        (record(split=semantic(0.0, 1e-3)), [], False, "ok"),
        (record(tainted=True, split=semantic(1.0, 0.0)), [site("uncovered")], False, "inconclusive"),
        (record(traced_equal=False), [], False, "inconclusive"),
        (record(), [site("differs")], False, "inconclusive"),
        (record(), [site("uncovered")], False, "inconclusive"),
        (record(outputs=[NONFINITE]), [], False, "over-tolerance"),
        # the user expects them so
        (record(outputs=[NONFINITE | {"as_golden": True}]), [], False, "ok"),
        (record(outputs=[NONFINITE | {"as_golden": True}, NONFINITE]), [], False, "over-tolerance"),
        # another result than the one with the largest error
        (record(outputs=[FINITE, NONFINITE]), [], False, "over-tolerance"),
        # What float64 does not hold either is no change of the mathematics.
        (
            record(split=semantic(None, 0.0), outputs=[NONFINITE], beyond_float64=[7]),
            [site("differs", made_by=[3, 7], made_by_names=["conv", "exp"])],
            False,
            "over-tolerance",
        ),
        (
            record(split=semantic(None, 0.0), outputs=[NONFINITE], beyond_float64=[7]),
            [site("differs", made_by=[3], made_by_names=["conv"])],
            False,
            "pass-bug",
        ),
        # An expected output that the input stage does not mean says that one of the two is wrong.
        (record(golden=golden(off=True), reference="self"), [], False, "inconclusive"),
        (record(golden=golden(off=True), reference="self", split=semantic(1e-9, 0)), [], False, "pass-bug"),
        (record(golden=golden(off=True), reference="torch"), [], False, "ok"),
        (record(golden=golden(off=False), reference="self"), [], False, "ok"),
        # Of two witnesses that contradict each other neither is believed.
        (
            record(golden=golden(off=True, as_compiled=True), reference="onnx", split=semantic(0.0, 0.25)),
            [],
            True,
            "inconclusive",
        ),
    ],
)
def test_the_first_that_applies(given: dict, sites: list, baseline: bool, verdict: str) -> None:
    before = None if baseline else BASELINE
    assert judge(given, sites, is_baseline=baseline, baseline=before, tolerant=False).verdict == verdict


def test_a_tolerance_is_asked_of_every_output() -> None:
    good, bad = ({"max_abs": 1.0, "disagreeing": 0, "allclose": ok} for ok in (True, False))
    given = record(output=bad, outputs=[good, bad])
    assert judge(given, [], is_baseline=False, baseline=BASELINE, tolerant=True).verdict == "over-tolerance"
    assert (
        judge(record(outputs=[good]), [], is_baseline=False, baseline=BASELINE, tolerant=True).verdict == "ok"
    )


def test_without_a_baseline_the_pass_is_not_accused_of_what_the_lowering_may_have_done() -> None:
    unknown = semantic(None, None, known=False)
    unknown["semantic"]["max_abs"] = unknown["relative"]["max_abs"] = 1.0
    given = record(split=unknown)
    assert judge(given, [], is_baseline=False, baseline=None, tolerant=False).verdict == "inconclusive"
    right = semantic(None, None, known=False, total=0.0)
    assert judge(record(split=right), [], is_baseline=False, baseline=None, tolerant=False).verdict == "ok"
    lowered = record(split=semantic(0.0, 1.0))
    assert judge(lowered, [], is_baseline=False, baseline=None, tolerant=False).verdict == "lowering-bug"


def test_the_reason_names_the_ops_that_the_pass_changed() -> None:
    differing = site("differs", op="add", made_by=[7, 9], made_by_names=["convolution_3", "add"])
    given = record(split=semantic(0.5, 0.0), changed=[7], no_longer_read=["w.bias"])
    reason = judge(given, [differing], is_baseline=False, baseline=BASELINE, tolerant=False).reason
    assert "convolution_3" in reason and "w.bias" in reason and "add" not in reason


def reason(given: dict, sites: list[dict], **changes: Any) -> str:
    arguments: dict[str, Any] = {"is_baseline": True, "baseline": None, "tolerant": False} | changes
    return judge(given, sites, **arguments).reason


def test_outputs_that_are_not_finite_on_one_side() -> None:
    origin = {"op": "asinh", "site": "main/0.0"}
    made = record(outputs=[NONFINITE], nonfinite_origin=origin)
    assert reason(made, []) == (
        "2 outputs are NaN or Inf, not as in the reference; the first was made by asinh (main/0.0); "
        "in exact arithmetic it is finite, in the types of the program it is not"
    )
    beyond = record(
        outputs=[NONFINITE], nonfinite_origin=origin, split=semantic(0.0, 0.0), beyond_float64=[7]
    )
    beyond["split"]["semantic"]["max_abs"] = beyond["split"]["relative"]["max_abs"] = None
    assert "leaves the range of float64 as well" in reason(
        beyond, [site("differs", made_by=[7], made_by_names=["asinh"])]
    )
    lost = record(outputs=[NONFINITE | {"disagreeing": 3, "lost": 3}], nonfinite_origin=origin)
    assert reason(lost, []) == "3 outputs are no NaN or Inf where the reference is"


def test_an_expected_output_that_is_not_the_reference_is_said() -> None:
    own = reason(record(golden=golden(off=True), reference="self"), [])
    assert "0.25 of 1 from the exact value of the input stage" in own
    torch = reason(record(golden=golden(off=True), reference="torch"), [])
    assert torch.endswith("; the expected output is 0.25 of 1 from the reference")


def test_a_reshape_that_does_not_fit_is_named_where_no_site_is() -> None:
    given = record(split=semantic(0.0, 0.5), misfits=[{"op": "permute", "read": 96, "of": 192}])
    assert reason(given, []).endswith(
        "brought in at permute: a reshape of it takes 96 elements from a tensor of 192"
    )
    assert "96 elements" not in reason(given, [site("differs")])


def test_what_the_source_leaves_open_accuses_nobody() -> None:
    """But a pass that moves it does: with the same program before it the lowering's part is none."""
    said = {"undefined": ["onnx.Cast of nan (at Cast)"]}
    found = judge(
        record(split=semantic(0.0, 1.0), **said), [], is_baseline=True, baseline=None, tolerant=False
    )
    assert found.verdict == "inconclusive"
    assert found.reason.endswith("; but the source has no defined result there: onnx.Cast of nan (at Cast)")
    passed = record(split=semantic(1.0, 0.0), **said)
    assert judge(passed, [], is_baseline=False, baseline=BASELINE, tolerant=False).verdict == "pass-bug"


@pytest.mark.parametrize(("worth", "verdict"), [(2.38, "lowering-bug"), (3e-6, "ok"), (0.0, "ok")])
def test_constants_that_cost_more_than_rounding(worth: float, verdict: str) -> None:
    """Of an output of size 2, f32 rounding is 2.4e-7 a time; torch's own error is 1e-6."""
    given = record(
        split=semantic(0.0, 0.0),
        torch_same_dtype={"dtype": "f32", "max_abs": 1e-6},
        output_size=2.0,
        constants=[{"op": "div"}],
        folded=[{"op": "mul"}],
        places=["arange"],
    )
    given["split"]["semantic"]["constant"] = worth
    found = judge(given, [], is_baseline=True, baseline=None, tolerant=False)
    assert found.verdict == verdict
    if verdict != "ok":
        assert (
            "2.38 at the output, where torch in f32 is 1e-06 off; they belong to div, mul, arange"
            in found.reason
        )


def finding(**changes: Any) -> dict[str, Any]:
    given = {
        "kind": "codegen", "certainty": "proven", "op": "mm", "sites": ["main/3.0"], "text": "far off",
    }  # fmt: skip
    return given | changes


def test_code_that_is_proven_wrong_comes_before_what_is_suspect_and_before_taint() -> None:
    suspect = finding(certainty="suspect", op="conv")
    told = judge(
        record(findings=[suspect, finding()], tainted=True),
        [],
        is_baseline=True,
        baseline=None,
        tolerant=False,
    )
    assert told.verdict == "codegen-bug"
    assert told.reason == "the code of mm is wrong (main/3.0): far off"
    assert (
        judge(record(findings=[suspect]), [], is_baseline=True, baseline=None, tolerant=False).verdict
        == "codegen-suspect"
    )


def test_an_error_that_is_accounted_for_is_no_fault_but_is_said() -> None:
    told = judge(
        record(findings=[finding(certainty="explained", op="mean")]),
        [],
        is_baseline=True,
        baseline=None,
        tolerant=False,
    )
    assert told.verdict == "ok"
    assert "the order of a sum costs the most at mean" in told.reason


def test_what_is_over_a_tolerance_and_from_what() -> None:
    over = FINITE | {"max_abs": 0.5, "allclose": False}

    def told(**changes: Any) -> str:
        given = record(outputs=[FINITE | {"allclose": True}, over | changes])
        found = judge(given, [site("verified", near_ties=2)], is_baseline=True, baseline=None, tolerant=True)
        assert found.verdict == "over-tolerance"
        return found.reason

    assert told().startswith(
        "max abs 0.5 is over the given tolerance; no fault was found; near ties: 2 elements"
    )
    assert told(golden_max_abs=0.25).startswith("max abs 0.25 from the expected output is over")
