"""What a variant is accused of, a line for each fault in its code and one for each kind of changed mathematics."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from numtrace.attribute.findings import listed
from numtrace.dumps.schema import Finding
from numtrace.report.figures import number
from numtrace.report.layout import labelled

_LABELS = {"codegen": "code", "pass-semantics": "semantics", "lowering-semantics": "semantics"}


def finding_lines(findings: Sequence[Finding], width: int) -> list[Text]:
    """All findings; those that are alike in kind, certainty and what is known of them together, names first."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for place, finding in enumerate(findings):
        # Faults in code that are not known differ in all that speaks for and against them: each has its own line.
        alone = finding.kind == "codegen" and not finding.known
        key = place if alone else (finding.kind, finding.certainty, finding.known, bool(finding.grown))
        groups.setdefault((key,), []).append(finding)
    lines: list[Text] = []
    for group in groups.values():
        first = group[0]
        text = _one(first) if len(group) == 1 else _several(group)
        lines += labelled(_LABELS[first.kind], f"{_standing(first)}: {text}", width)
    return lines


def _standing(finding: Finding) -> str:
    if isinstance(finding.known, str):
        return f"known ({finding.known})"
    return "known" if finding.known else finding.certainty


def _one(finding: Finding) -> str:
    shared = f" and {len(finding.sites) - 1} more sites" if len(finding.sites) > 1 else ""
    where = f", {finding.sites[0]}{shared}" if finding.sites else ""
    grown = f"; grown since it was accepted: {finding.grown}" if finding.grown else ""
    return f"{finding.op}{where}: {finding.text}{grown}"


def _several(group: Sequence[Finding]) -> str:
    worst = max(group, key=lambda one: float("inf") if one.max_abs is None else one.max_abs)
    size = f"{number(worst.max_abs)} at {worst.op}" + (f" ({worst.sites[0]})" if worst.sites else "")
    grown = f"; grown since it was accepted: {worst.grown}" if worst.grown else ""
    return f"{len(group)} findings at {listed([one.op for one in group])}: up to {size}{grown}"
