"""Matching findings with accepted ones: what is the same, what has grown."""

from __future__ import annotations

from typing import Any

import pytest

from numtrace.attribute.known import recognise


def entry(max_abs: float | None = 0.5, **changes: Any) -> dict[str, Any]:
    size = {"max_abs": max_abs, "rel_l2": None, "bound_ratio": None, "nonfinite": 0}
    return {
        "kind": "pass-semantics", "op": "conv", "module": "net", "passes": ["winograd"], "certainty": "proven",
        "size": size | changes.pop("size", {}), "note": "",
    } | changes  # fmt: skip


def finding(max_abs: float | None = 0.5, **changes: Any) -> dict[str, Any]:
    return {
        "kind": "pass-semantics", "op": "conv", "module": "net", "certainty": "proven", "max_abs": max_abs,
        "rel_l2": 0.1, "bound_ratio": None, "nonfinite": 0,
    } | changes  # fmt: skip


def told(finding_: dict, entry_: dict, passes: tuple[str, ...] = ("winograd",)) -> str | bool:
    """True or the note where it is known, what has grown, False for neither."""
    (one,), _ = recognise([finding_], passes, [entry_])
    return one.get("grown") or one.get("known", False)


@pytest.mark.parametrize(
    ("given", "accepted", "known"),
    [
        (finding(), entry(), True),
        (finding(), entry(note="issue 7"), "issue 7"),
        (finding(0.1), entry(), True),
        (finding(1.0), entry(), True),
        (finding(1.001), entry(), "max abs from 0.5 to 1"),
        (finding(2.0), entry(), "max abs from 0.5 to 2"),
        (finding(rel_l2=0.3), entry(size={"rel_l2": 0.1}), "rel L2 from 0.1 to 0.3"),
        (finding(rel_l2=None), entry(size={"rel_l2": 0.1}), True),
        (finding(None), entry(), "max abs from 0.5 to what is not finite"),
        (finding(nonfinite=3), entry(), "NaN or Inf from 0 to 3"),
        (finding(nonfinite=3), entry(size={"nonfinite": 2}), True),
        # A figure that is null is not compared.
        (finding(9.0), entry(None), True),
        (finding(), entry(certainty="suspect"), "from suspect to proven"),
        (finding(certainty="suspect"), entry(), True),
        (finding(certainty="explained"), entry(), False),
        # Another fault.
        (finding(op="conv_1"), entry(), False),
        (finding(kind="lowering-semantics"), entry(), False),
        (finding(module="other"), entry(), False),
        (finding(module="other"), entry(module=""), True),
        (finding(), entry(passes=["demote-bf16"]), False),
    ],
)
def test_what_is_known(given: dict, accepted: dict, known: str | bool) -> None:
    assert told(given, accepted) == known


def test_more_passes_are_the_same_finding_fewer_are_not() -> None:
    assert told(finding(), entry(), ("demote-bf16", "winograd")) is True
    assert told(finding(), entry(passes=["demote-bf16", "winograd"])) is False
    assert told(finding(), entry(passes=[]), ()) is True


def test_shared_code_is_known_by_any_of_its_roots() -> None:
    code = finding(kind="codegen", bound_ratio=3.0, roots=["conv", "conv_4"])
    assert told(code, entry(kind="codegen", op="conv_4", size={"bound_ratio": 2.0})) is True
    grown = told(code, entry(kind="codegen", op="conv_4", size={"bound_ratio": 1.4}))
    assert grown == "times its bound from 1.4 to 3"
    # a ratio that is infinite has none
    beyond = finding(kind="codegen", bound_ratio=None)
    accepted = entry(kind="codegen", size={"bound_ratio": 1.4})
    assert told(beyond, accepted) == "times its bound from 1.4 to what is not finite"


def test_an_entry_stands_for_one_finding_of_a_variant() -> None:
    """A second op of the same name is new; and the larger finding does not take the place of the smaller."""
    both, stands = recognise([finding(0.5), finding(0.4)], ["winograd"], [entry()])
    assert [one.get("known", False) for one in both] == [True, False]
    assert stands == {0: 0}
    both, stands = recognise([finding(0.1), finding(0.5)], ["winograd"], [entry(0.5), entry(0.1)])
    assert [one["known"] for one in both] == [True, True]
    assert stands == {0: 1, 1: 0}


def test_the_entry_with_the_most_passes_in_common_comes_first() -> None:
    entries = [entry(note="alone"), entry(note="both", passes=["winograd", "demote-bf16"])]
    (one,), stands = recognise([finding()], ["winograd", "demote-bf16"], entries)
    assert (one["known"], stands) == ("both", {0: 1})
    # but a larger finding of both does not hide behind that of one
    (one,), _ = recognise([finding(2.0)], ["winograd", "demote-bf16"], entries[:1])
    assert one["grown"] == "max abs from 0.5 to 2" and "known" not in one
