"""``numtrace show``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from numtrace.cli.bisect import print_bisection
from numtrace.cli.output import standard_output
from numtrace.errors import UsageError


def show(
    run_directory: Annotated[Path, typer.Argument(help="A run directory, or its report.json.")],
    variant: Annotated[str, typer.Option(help="Only this variant.")] = "",
    site: Annotated[str, typer.Option(help="One site in full: its id, or an op's name.")] = "",
    json_: Annotated[
        bool, typer.Option("--json", help="Print the report document, or the part of it that is asked for.")
    ] = False,
    codegen: Annotated[
        bool, typer.Option("--codegen", help="Compile the site's dispatch alone, to see how it is lowered.")
    ] = False,
    python: Annotated[
        str, typer.Option(help="Python interpreter of the run's IREE build, for --codegen.")
    ] = "",
    top: Annotated[int, typer.Option(min=1, help="Dispatches shown per table.")] = 8,
) -> None:
    """Show a finished run again: all of it, one variant, or one site and its code; or what bisect found."""
    from numtrace.dumps import bisection
    from numtrace.dumps.rundir import load
    from numtrace.report.terminal import make_console, part_of, print_report, print_site

    if (found := bisection.load(run_directory)) is not None:
        print_bisection(found, run_directory, json_)
        return
    report = load(run_directory)
    if codegen:
        _dump_code(run_directory, variant, site, python)
    with standard_output():
        console = make_console(sys.stdout)
        if json_:
            from numtrace.report.document import write_document

            write_document(part_of(report, variant, site), sys.stdout.buffer)
        elif site:
            run = run_directory if run_directory.is_dir() else run_directory.parent
            print_site(report, console, variant or report.variants[-1].name, site, run)
        else:
            print_report(report, console, top=top, variant=variant or None)


def _dump_code(run_directory: Path, variant: str, site: str, python: str) -> None:
    from numtrace.report.progress import Progress
    from numtrace.rerun import dump_code, find

    if not site:
        raise UsageError("--codegen is about one dispatch: give its site with --site")
    with Progress() as progress:
        dump_code(find(run_directory, variant, site), progress, python=python or None)
