"""Findings as lines: alike ones together, names first."""

from __future__ import annotations

from typing import Any

from numtrace.dumps.schema import Finding
from numtrace.report.findings import finding_lines


def finding(op: str, **changes: Any) -> Finding:
    given: dict[str, Any] = {
        "kind": "pass-semantics", "certainty": "proven", "op": op, "text": "far off", "sites": ["main/1.0"],
        "max_abs": 0.25,
    }  # fmt: skip
    return Finding(**given | changes)


def lines(*findings: Finding) -> list[str]:
    return [line.plain for line in finding_lines(findings, 200)]


def test_many_of_one_kind_are_one_line() -> None:
    many = [finding(f"conv_{i}", max_abs=0.25 + i) for i in range(25)]
    assert lines(*many) == [
        "  semantics  proven: 25 findings at conv_0, conv_1, conv_2 and 22 more: up to 2.42e+01 at conv_24 (main/1.0)"
    ]
    assert lines(many[0]) == ["  semantics  proven: conv_0, main/1.0: far off"]


def test_known_ones_and_grown_ones_are_apart() -> None:
    assert lines(
        finding("a", known="issue 7"),
        finding("b", known="issue 7"),
        finding("c", known=True),
        finding("d"),
        finding("e", grown="max abs from 0.1 to 0.25"),
    ) == [
        "  semantics  known (issue 7): 2 findings at a, b: up to 2.50e-01 at a (main/1.0)",
        "  semantics  known: c, main/1.0: far off",
        "  semantics  proven: d, main/1.0: far off",
        "  semantics  proven: e, main/1.0: far off; grown since it was accepted: max abs from 0.1 to 0.25",
    ]


def test_faults_in_code_have_a_line_each_until_they_are_known() -> None:
    code = [finding(name, kind="codegen", sites=["main/1.0", "main/2.0"]) for name in "ab"]
    assert lines(*code) == [
        "  code       proven: a, main/1.0 and 1 more sites: far off",
        "  code       proven: b, main/1.0 and 1 more sites: far off",
    ]
    accepted = [finding(name, kind="codegen", known=True) for name in "ab"]
    assert lines(*accepted) == ["  code       known: 2 findings at a, b: up to 2.50e-01 at a (main/1.0)"]
