"""Findings on changed mathematics: whose they are, at which op, how sure."""

from __future__ import annotations

from typing import Any

import pytest

from numtrace.attribute.semantics import LOWERING, OUTPUTS, PASS, semantic_findings
from numtrace.attribute.verdict import judge


def record(gap: float | None, **changes: Any) -> dict[str, Any]:
    """A variant whose pass moves the exact output by ``gap`` of 1; its lowering does nothing."""
    part = {"max_abs": gap, "pass": gap, "lowering": 0.0}
    split = {"semantic": part | {"constant": 0.0}, "relative": part, "rel_l2": part, "baseline_known": True}
    output = {"max_abs": gap, "disagreeing": 0, "allclose": None}
    return {
        "split": split | {"execution_max_abs": 1e-6},
        "changed": [], "findings": [], "tainted": False, "traced_equal": True, "no_longer_read": [],
        "output": output, "outputs": [output], "nonfinite_origin": None, "torch_same_dtype": None,
    } | changes  # fmt: skip


def site(id_: str, op: str, size: float | None, *made_by: tuple[int, str], **changes: Any) -> dict[str, Any]:
    return {
        "id": id_, "op": op, "module": f"net.{op}", "location": "", "match": "differs", "tainted": False,
        "dispatch": f"d{id_}", "ops": [op], "dtype": "f32", "elements": 4,
        "made_by": [stamp for stamp, _ in made_by], "made_by_names": [name for _, name in made_by],
        "made_by_modules": [f"net.{name}" for _, name in made_by],
        "semantic": {"max_abs": size, "rel_l2": size, "nan": 0, "inf": 0},
    } | changes  # fmt: skip


def found(given: dict, sites: list, baseline: dict | None = None, **more: Any) -> list[dict[str, Any]]:
    baseline = {"differing": []} if baseline is None else baseline
    return semantic_findings(given, sites, is_baseline=False, baseline=baseline, **more)


def test_one_finding_an_op_with_the_figures_of_its_worst_site() -> None:
    sites = [
        site("main/1.0", "conv", 0.25, (7, "conv")),
        site("main/2.0", "conv_1", 0.125, (8, "conv_1"), (9, "add")),
        site("main/4.0", "conv", 0.5, (7, "conv")),
    ]
    first, second = found(record(0.75, changed=[7, 8]), sites)
    assert (first["op"], first["module"], first["sites"]) == ("conv", "net.conv", ["main/4.0", "main/1.0"])
    assert (first["max_abs"], first["rel_l2"], first["output_max_abs"]) == (0.5, 0.5, 0.75)
    assert (first["kind"], first["certainty"]) == (PASS, "proven")
    assert (second["op"], second["max_abs"]) == ("conv_1", 0.125)


def test_a_site_that_two_changed_ops_made_counts_for_both() -> None:
    both = site("main/3.0", "add", 0.5, (7, "conv"), (8, "conv_1"), (9, "add"))
    first, second = found(record(0.5, changed=[7, 8]), [both])
    assert [first["op"], second["op"]] == ["conv", "conv_1"]
    assert first["module"] == "net.conv"
    assert first["text"].endswith("together with conv_1") and second["text"].endswith("together with conv")


def test_two_ops_of_one_name_are_two_findings() -> None:
    sites = [
        site("main/1.0", "generic", 0.5, (3, "generic")),
        site("main/2.0", "generic", 0.25, (5, "generic")),
    ]
    assert [one["max_abs"] for one in found(record(0.5, changed=[3, 5]), sites)] == [0.5, 0.25]


def test_what_the_baseline_has_alike_is_not_the_pass() -> None:
    lowered = site("main/0.0", "argmax", 0.5, (2, "argmax"))
    dropped = site("main/1.0", "conv", 0.25, (7, "conv"))
    baseline = {"differing": [lowered]}
    assert [one["op"] for one in found(record(0.5, changed=[7]), [lowered, dropped], baseline)] == ["conv"]
    # By flags it is not known what changed: then by size.
    assert [one["op"] for one in found(record(0.5), [lowered, dropped], baseline)] == ["conv"]
    worse = site("main/0.0", "argmax", 0.75, (2, "argmax"))
    assert [one["op"] for one in found(record(0.5), [worse, dropped], baseline)] == ["argmax", "conv"]
    assert [one["op"] for one in found(record(0.5, changed=[2, 7]), [worse], baseline)] == ["argmax"]


def test_nothing_at_the_outputs_is_suspect() -> None:
    (one,) = found(record(0.0), [site("main/0.0", "conv", 0.5)])
    assert (one["certainty"], one["output_max_abs"]) == ("suspect", 0.0)
    (one,) = found(record(0.5, tainted=True), [site("main/0.0", "conv", 0.5)])
    assert one["certainty"] == "suspect"
    assert found(record(1e-12), []) == []


def test_a_difference_of_no_site_is_a_finding_of_its_own() -> None:
    (one,) = found(record(0.5), [])
    assert (one["op"], one["sites"], one["max_abs"]) == (OUTPUTS, [], 0.5)
    (one,) = found(record(0.5, misfits=[{"op": "permute", "read": 96, "of": 192}]), [])
    assert one["op"] == "permute"


@pytest.mark.parametrize(
    ("elsewhere", "before", "ops"),
    [
        (0.0, 0.0, ["conv"]),
        (1e-12, 0.0, ["conv"]),
        (0.25, 0.0, ["conv", OUTPUTS]),
        (None, 0.0, ["conv", OUTPUTS]),
        # the lowering's own
        (0.25, 0.25, ["conv"]),
        (0.25, 0.5, ["conv", OUTPUTS]),
    ],
)
def test_what_is_left_when_every_site_is_set_back(
    elsewhere: float | None, before: float, ops: list[str]
) -> None:
    given = record(0.5, changed=[7])
    given["split"]["elsewhere"] = {"max_abs": elsewhere, "relative": elsewhere}
    baseline = {"differing": [], "split": {"elsewhere": {"max_abs": before, "relative": before}}}
    sites = [site("main/0.0", "conv", 0.5, (7, "conv"))]
    assert [one["op"] for one in found(given, sites, baseline)] == ops


def test_the_baselines_own_are_the_lowerings() -> None:
    (one,) = semantic_findings(record(0.5), [site("main/0.0", "conv", 0.5)], is_baseline=True, baseline=None)
    assert (one["kind"], one["certainty"]) == (LOWERING, "proven")


def known(findings: list[dict[str, Any]], *ops: str) -> list[dict[str, Any]]:
    return [one | ({"known": True} if one["op"] in ops else {}) for one in findings]


def verdict(given: dict, sites: list, *ops: str, **more: Any) -> tuple[str, str]:
    settings: dict[str, Any] = {"is_baseline": False, "baseline": {"differing": []}}
    findings = known(semantic_findings(given, sites, **settings), *ops) + given["findings"]
    told = judge(given, sites, **settings, tolerant=False, findings=findings, **more)
    return told.verdict, told.reason


A, B, C = (site(f"main/{i}.0", name, 0.5, (i, name)) for i, name in enumerate(("conv_a", "conv_b", "conv_c")))


def test_known_findings_make_no_verdict_and_are_said() -> None:
    assert verdict(record(0.5, changed=[0, 1]), [A, B], "conv_a", "conv_b") == (
        "ok",
        "no new fault found besides 2 known findings (conv_a, conv_b); the rest of the error is of execution, "
        "max abs 1e-06",
    )


def test_known_code_is_part_of_the_error_of_execution() -> None:
    code = {
        "kind": "codegen",
        "certainty": "proven",
        "op": "mm",
        "sites": ["main/9.0"],
        "text": "",
        "known": True,
    }
    told, reason = verdict(record(0.0, findings=[code]), [])
    assert told == "ok"
    assert "the error of execution, the known code's included, is max abs 1e-06" in reason


def test_a_new_one_counts_beside_known_ones() -> None:
    told, reason = verdict(record(0.5, changed=[0, 1, 2]), [A, B, C], "conv_a", "conv_b")
    assert told == "pass-bug"
    assert "brought in at conv_c, besides 2 known findings (conv_a, conv_b)" in reason


def test_known_findings_do_not_cover_what_no_site_accounts_for() -> None:
    given = record(0.5, changed=[0])
    given["split"]["elsewhere"] = {"max_abs": 0.25, "relative": 0.25}
    told, reason = verdict(given, [A], "conv_a")
    assert told == "pass-bug"
    assert "0.25 of it at the outputs is of no dispatch that differs" in reason


def test_one_that_has_grown_counts_and_says_from_what() -> None:
    given = record(0.5, changed=[0])
    findings = [one | {"grown": "max abs from 0.1 to 0.5"} for one in found(given, [A])]
    told = judge(given, [A], is_baseline=False, baseline={"differing": []}, tolerant=False, findings=findings)
    assert told.verdict == "pass-bug"
    assert told.reason.endswith("; grown since it was accepted: conv_a (max abs from 0.1 to 0.5)")


def test_the_next_verdict_that_applies() -> None:
    code = {"kind": "codegen", "certainty": "proven", "op": "mm", "sites": ["main/9.0"], "text": "far off"}
    assert verdict(record(0.5, changed=[0], findings=[code]), [A], "conv_a")[0] == "codegen-bug"
    assert verdict(record(0.5, changed=[0], traced_equal=False), [A], "conv_a")[0] == "inconclusive"
    # What does not reach the outputs is inconclusive, unless it is known.
    assert verdict(record(0.0), [A])[0] == "inconclusive"
    assert verdict(record(0.0), [A], "conv_a")[0] == "ok"


def test_nan_of_known_findings_is_known() -> None:
    lost = [{"max_abs": 0.0, "disagreeing": 2, "lost": 0, "allclose": None}]
    given = record(None, changed=[0], outputs=lost, execution_disagreeing=0)
    assert verdict(given, [A])[0] == "pass-bug"
    told, reason = verdict(given, [A], "conv_a")
    assert told == "ok"
    assert "2 elements of the outputs are NaN or Inf on one side only, as in exact arithmetic" in reason
    # but not where the code makes more of them
    assert verdict(given | {"execution_disagreeing": 1}, [A], "conv_a")[0] == "over-tolerance"
