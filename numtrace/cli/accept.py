"""``numtrace accept``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from numtrace.cli.output import standard_output
from numtrace.errors import UsageError


def accept(
    run_directory: Annotated[Path, typer.Argument(help="A run directory, or its report.json.")],
    variant: Annotated[str, typer.Option(help="Only this variant's findings.")] = "",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The file; numtrace-known.json without.")
    ] = None,
    note: Annotated[str, typer.Option(help="A note on each new one, such as an issue's address.")] = "",
    update: Annotated[
        bool, typer.Option("--update", help="Take this run's sizes for those that are known already.")
    ] = False,
) -> None:
    """Accept the findings of a run: with `numtrace run --known FILE` they make no bug verdict any more.

    What is in the file already is kept, with its notes.
    """
    from numtrace.acceptance import accept as accept_findings
    from numtrace.dumps import bisection, known
    from numtrace.dumps.rundir import load

    if bisection.load(run_directory) is not None:
        raise UsageError(
            f"{run_directory} is of numtrace bisect, which finds steps and no findings; give a run's directory"
        )
    path = out or known.DEFAULT
    done = accept_findings(load(run_directory), path, variant=variant, note=note, update=update)
    with standard_output():
        print(done.sentence(path))
