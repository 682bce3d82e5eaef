"""What ``numtrace bisect`` found, on a terminal, from the document alone."""

from __future__ import annotations

from pathlib import Path, PurePath

from rich.console import Console
from rich.text import Text

from numtrace.dumps.bisection import Bisection, Stage, Step, Untold
from numtrace.report.figures import number, visible
from numtrace.report.layout import Column, heading, labelled, paragraph, table
from numtrace.report.terminal import show_lines, width_of

#: Passes that are named where it is one of many.
MOST = 8
#: Lines of IR that are shown of a side; all of it is in the file.
LINES = 24


def print_bisection(document: Bisection, run: Path, console: Console) -> None:
    """Print the verdict, the stages, and each step with its IR; ``run`` is the run directory, for the paths."""
    show_lines(bisection_lines(document, run, width_of(console)), console)


def bisection_lines(document: Bisection, run: Path, width: int) -> list[Text]:
    tool = document.tool
    model = f"{PurePath(document.model).name} @{document.function}"
    lines = [Text(visible(f"{tool.name} {tool.version} · bisect · {model}"), style="bold")]
    lines += labelled(
        "passes", document.pipeline or " ".join(document.passes) or "none: IREE's own pipeline", width
    )
    lines += labelled("versions", f"iree {document.environment.iree_compiler}", width)
    lines += [Text(), *_stages(document.stages, width)]
    for step in document.steps:
        lines += [Text(), *_step(step, run, width)]
    for notice in document.notices:
        lines += paragraph(f"note: {notice}", width, style="yellow")
    style = "bold red" if document.verdict == "found" else "bold"
    return [*lines, Text(), *paragraph(f"{document.verdict}: {document.reason}", width, style=style)]


def _stages(stages: list[Stage], width: int) -> list[Text]:
    name, gap, relative = Column("stage"), Column("max abs", right=True), Column("relative", right=True)
    said = Column("exact outputs", shrinks=True)
    for index, stage in enumerate(stages):
        compared = stage.changed
        name.add(stage.name)
        gap.add(number(stage.max_abs) if compared else "")
        relative.add(number(stage.rel) if compared else "")
        said.add(_meaning(stage, index == 0), "bold red" if stage.changed else "")
    header, rows = table((name, gap, relative, said), width)
    return [header, *rows]


def _meaning(stage: Stage, first: bool) -> str:
    if not stage.known:
        return f"not evaluated: {stage.reason}"
    return "the first" if first else "changed" if stage.changed else "the same"


def _step(step: Step, run: Path, width: int) -> list[Text]:
    ran = [one for one in step.passes if one.name] or step.passes
    title = ran[0].name or f"the end of {step.stage}"
    lines = [heading(title if len(ran) == 1 else f"one of {len(ran)} passes", width)]
    for one in ran[:MOST]:
        label = "pass" if len(ran) == 1 else "maybe"
        lines += labelled(label, f"{one.pipeline or title}, on {one.on}", width)
    if len(ran) > MOST:
        lines += labelled(
            "", f"… and {len(ran) - MOST} more, to {ran[-1].name or 'the end of the stage'}", width
        )
    lines += labelled("stage", step.stage, width)
    looked = f"{step.evaluated} of {step.snapshots} snapshots evaluated"
    sides = "the one before means what the stage before means, the one after does not"
    lines += labelled("looked at", f"{looked}; {sides}" if not step.exhaustive else f"all {looked}", width)
    for reason, names in _reasons(step.unknown).items():
        after = names[0] + (f" and {len(names) - 1} more" if len(names) > 1 else "")
        lines += labelled("untold", f"after {after}: {reason}", width)
    if step.ops:
        first = step.ops[0]
        # A location that is made of names says what stands beside it already.
        place = ", ".join(filter(None, (first.module, "" if '"' in first.location else first.location)))
        lines += labelled("op", first.name + (f" ({place})" if place else ""), width)
        more = ", ".join(op.name for op in step.ops[1:6]) + (", …" if len(step.ops) > 6 else "")
        if more:
            lines += labelled("and", f"{len(step.ops) - 1} more that it changed: {more}", width)
    size = "a NaN or Inf on one side" if step.max_abs is None else number(step.max_abs)
    relative = "" if step.rel is None else f", relative {number(step.rel)}"
    lines += labelled("at output", f"{size}{relative}", width)
    for label, side in (("before", step.before), ("after", step.after)):
        lines += [Text(), *paragraph(f"{label} · {run / side.file}", width, style="bold")]
        text = side.ir.splitlines() or ["(nothing that carries the op's location)"]
        lines += [Text(visible(line)) for line in text[:LINES]]
        if len(text) > LINES:
            lines.append(Text(f"… {len(text) - LINES} more lines"))
    return lines


def _reasons(untold: list[Untold]) -> dict[str, list[str]]:
    """The passes whose snapshots have no value, by why."""
    found: dict[str, list[str]] = {}
    for one in untold:
        found.setdefault(one.reason, []).append(one.name)
    return found
