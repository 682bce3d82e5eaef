"""What ``numtrace passes --audit`` found, on a terminal, from the document alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from numtrace.audit.document import OUTCOMES, Audit, Audited, Finding
from numtrace.passes.listing import PREPROCESSING
from numtrace.report.figures import number
from numtrace.report.layout import Column, heading, labelled, paragraph, table
from numtrace.report.progress import duration
from numtrace.report.terminal import show_lines, width_of

#: Programs that are named under one reason.
MOST = 4
#: What differs between the reasons of two programs of other sizes and types.
_SIZES = re.compile(r"'tensor<[^']*'|\d+")
_STYLES = {"changes": "bold red", "crashes": "red", "fails": "yellow", "untold": "yellow"}
_SAID = {
    "changes": "changes the mathematics",
    "crashes": "takes the compiler down",
    "fails": "fails to compile",
    "untold": "cannot be evaluated",
}


def print_audit(document: Audit, folder: Path, console: Console) -> None:
    """Print the table of passes, and what is to be said of each; ``folder`` is where the files are."""
    show_lines(audit_lines(document, folder, width_of(console)), console)


def audit_lines(document: Audit, folder: Path, width: int) -> list[Text]:
    tool = document.tool
    shown = [row for row in document.passes if not row.same_as]
    active = [row for row in shown if row.counts["nothing"] < document.programs]
    idle = [row for row in shown if row.counts["nothing"] == document.programs]
    lines = [Text(f"{tool.name} {tool.version} · audit of the preprocessing passes", style="bold")]
    lines += labelled("versions", f"iree {document.iree_compiler}", width)
    lines += labelled(
        "passes",
        f"{len({_name(row) for row in document.passes})}, in {len(document.passes)} spellings",
        width,
    )
    lines += labelled("programs", f"{document.programs}, in {duration(document.seconds)}", width)
    lines += [Text(), *_table(active, width)]
    for row in active:
        lines += _details(row, document.passes, folder, width)
    if idle:
        names = ", ".join(
            dict.fromkeys(_name(row) for row in idle if _name(row) not in {_name(r) for r in active})
        )
        lines += [Text(), *paragraph(f"do nothing to any of these programs: {names}", width)]
    for refused in document.refused:
        lines += paragraph(f"note: {refused.name} is not run: {refused.reason}", width, style="yellow")
    return [*lines, Text(), *_closing(document, width)]


def worse_lines(found: Sequence[tuple[str, Finding]], width: int) -> list[Text]:
    """What is worse than in an earlier audit."""
    if not found:
        return [Text("nothing is worse than in the earlier audit", style="bold")]
    lines = [Text(f"worse than in the earlier audit: {len(found)}", style="bold red")]
    for name, finding in found:
        text = f"{name} · {finding.program}: {_SAID[finding.outcome]}" + _because(finding)
        lines += paragraph(text, width, indent=2)
    return lines


def _table(rows: Sequence[Audited], width: int) -> list[Text]:
    """The passes under their families, whose name is not repeated."""
    if not rows:
        return [Text("no pass does anything to any program")]
    name = Column("pass", shrinks=True)
    counts = {outcome: Column(outcome, right=True) for outcome in OUTCOMES}
    for row in rows:
        name.add("  " + row.name.removeprefix(_family(row)))
        for outcome, column in counts.items():
            count = row.counts[outcome]
            column.add(str(count) if count else "·", _STYLES.get(outcome, "") if count else "dim")
    header, lines = table((name, *counts.values()), width)
    shown, family = [header], None
    for row, line in zip(rows, lines, strict=True):
        if _family(row) != family:
            family = _family(row)
            shown.append(Text(f"{family}…" if family else "others", style="dim"))
        shown.append(line)
    return shown


def _family(row: Audited) -> str:
    """What the names of many passes begin with."""
    families = (pattern.removesuffix("*") for pattern in PREPROCESSING)
    return next((family for family in families if row.name.startswith(family)), "")


def _details(row: Audited, rows: Sequence[Audited], folder: Path, width: int) -> list[Text]:
    if not row.findings:
        return []
    lines = [Text(), heading(row.name, width)]
    same = [
        other.name.removeprefix(_name(row)) or "without options"
        for other in rows
        if other.same_as == row.name
    ]
    if same:
        lines += labelled("the same", ", ".join(same), width)
    changes = [finding for finding in row.findings if finding.outcome == "changes"]
    if changes:
        lines += _changes(changes, width)
        smallest = min(changes, key=lambda finding: (len(finding.program), finding.program))
        lines += labelled("before", str(folder / smallest.before), width)
        lines += labelled("after", str(folder / smallest.after), width)
    for outcome in ("crashes", "fails", "untold"):
        alike: dict[str, list[Finding]] = {}
        for finding in row.findings:
            if finding.outcome == outcome:
                alike.setdefault(_SIZES.sub("", finding.reason), []).append(finding)
        for findings in alike.values():
            names = ", ".join(finding.program for finding in findings[:MOST])
            more = f" and {len(findings) - MOST} more" if len(findings) > MOST else ""
            lines += labelled(outcome, f"{names}{more}: {findings[0].reason}", width, style=_STYLES[outcome])
    return lines


def _changes(changes: Sequence[Finding], width: int) -> list[Text]:
    program, size = Column("changes", shrinks=True), Column("max abs", right=True)
    relative, run = Column("relative", right=True), Column("compiled and run", right=True)
    for finding in changes:
        program.add(finding.program, "bold red")
        for column, value in ((size, finding.max_abs), (relative, finding.rel), (run, finding.ran)):
            column.add("NaN or Inf" if value is None else number(value))
    header, lines = table((program, size, relative, run), width, indent=2)
    return [header, *lines]


def _closing(document: Audit, width: int) -> list[Text]:
    lines: list[Text] = []
    for outcome, said in _SAID.items():
        names = list(dict.fromkeys(_name(row) for row in document.passes if row.counts[outcome]))
        pairs = sum(row.counts[outcome] for row in document.passes if not row.same_as)
        if names:
            programs = "once" if pairs == 1 else f"{pairs} times"
            text = f"{said}: {', '.join(names)} ({programs})"
            lines += paragraph(text, width, style="bold red" if outcome == "changes" else "bold")
    return lines or [Text("every pass keeps the mathematics of every program", style="bold")]


def _because(finding: Finding) -> str:
    if finding.outcome != "changes":
        return f": {finding.reason}"
    return "" if finding.max_abs is None else f", by {number(finding.max_abs)}"


def _name(row: Audited) -> str:
    return row.name.partition("{")[0]
