"""Findings on code: what is grouped, what is proven, what is accounted for."""

from __future__ import annotations

from typing import Any

from numtrace.attribute.findings import accused, codegen_finding


def site(name: str, dispatch: str, code: str, ratio: float | None, proven: float | None) -> dict[str, Any]:
    return {
        "id": name, "dispatch": dispatch, "code": code, "bound_ratio": ratio, "proven_ratio": proven, "op": "mm",
        "ops": ["mm"], "module": "", "dtype": "f32", "over_bound": 2, "elements": 8,
        "codegen": {"max_abs": 1.0, "rel_l2": 0.1, "nan": 0, "inf": 0},
    }  # fmt: skip


def route(name: str, code: str, status: str = "ran") -> dict[str, Any]:
    return {"name": name, "status": status, "reason": None, "measure": {"code": code, "bound_ratio": 0.5}}


def witness(*routes: dict[str, Any], deterministic: bool = True) -> dict[str, Any]:
    return {
        "deterministic": deterministic,
        "as_traced": True,
        "routes": [route("own", "proven"), *routes],
    }


PROVEN = site("main/0.0", "a", "proven", 30.0, 3.0)
SUSPECT = site("main/1.0", "b", "suspect", 2.0, 0.5)


def certainty(of: dict, heard: dict | None, in_order: bool = False, confirmed: bool = False) -> str:
    return codegen_finding([of], heard, in_order=in_order, confirmed=confirmed)["certainty"]


def test_code_that_dispatches_share_is_one_finding_and_the_worst_comes_first() -> None:
    again = site("main/2.0", "b", "suspect", 5.0, 0.5)
    within = site("main/3.0", "c", "within", 0.5, None)
    groups = accused([SUSPECT, within, again, PROVEN])
    assert [[one["id"] for one in group] for group in groups] == [["main/0.0"], ["main/2.0", "main/1.0"]]


def test_proven_needs_a_second_witness() -> None:
    assert certainty(PROVEN, witness(route("vmvx", "within"))) == "proven"
    assert certainty(PROVEN, witness(route("vmvx", "proven"))) == "suspect"
    assert certainty(PROVEN, witness(route("vmvx", "proven")), confirmed=True) == "proven"
    assert certainty(PROVEN, witness(route("vmvx", "proven"), deterministic=False)) == "proven"
    assert certainty(PROVEN, None) == "suspect"


def test_only_a_suspect_is_accounted_for_by_the_order_of_a_sum() -> None:
    assert certainty(SUSPECT, None, in_order=True) == "explained"
    assert certainty(PROVEN, witness(route("vmvx", "within")), in_order=True) == "proven"


def test_the_text_names_the_routes() -> None:
    heard = witness(
        route("vmvx", "within"), route("no-vectors", "proven"), route("generic-cpu", "", "run-failed")
    )
    finding = codegen_finding([PROVEN], heard, in_order=False, confirmed=True)
    assert finding["gone_by"] == ["vmvx"] and finding["stays_by"] == ["no-vectors"]
    assert "2 of 8 elements are up to 30 times their bound" in finding["text"]
    assert "gone with vmvx; the same with no-vectors" in finding["text"]
