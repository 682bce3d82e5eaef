"""``numtrace rerun``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from numtrace.cli.options import more_flags
from numtrace.cli.output import standard_output


def rerun(
    run_directory: Annotated[Path, typer.Argument(help="A run directory, or its report.json.")],
    site: Annotated[str, typer.Option(help="The site: its id, or an op's name.")],
    variant: Annotated[str, typer.Option(help="The variant; the last one without.")] = "",
    routes: Annotated[
        bool, typer.Option("--routes", help="Compile it in other ways too: another backend, no vectors, …")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Where the dispatch alone is put; in the run directory without.")
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=1, help="Seconds for one compilation or run of the dispatch alone.")
    ] = 120,
    python: Annotated[str, typer.Option(help="Python interpreter of the run's IREE build.")] = "",
    json_: Annotated[bool, typer.Option("--json", help="Print the record and nothing else.")] = False,
) -> None:
    """Run one dispatch of a finished run alone, on its real inputs, and judge it.

    Compiler flags after `--` are added to the run's own, and win.
    """
    from numtrace.report.progress import Progress
    from numtrace.rerun import code_of, exit_code, find
    from numtrace.rerun import rerun as rerun_site

    found = find(run_directory, variant, site, out)
    more = more_flags(python or None)
    with Progress() as progress:
        record = rerun_site(found, progress, more=more, routes=routes, timeout=timeout, python=python or None)
    with standard_output():
        if json_:
            import json

            print(json.dumps(record, indent=2))
        else:
            from numtrace.report.rerun import print_rerun
            from numtrace.report.terminal import make_console

            print_rerun(record, code_of(found, record), make_console(sys.stdout))
    raise typer.Exit(int(exit_code(record)))
