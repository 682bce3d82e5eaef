"""``numtrace passes``, and its audit."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from numtrace.cli.options import more_flags
from numtrace.cli.output import standard_output
from numtrace.errors import UsageError


def list_passes(
    python: Annotated[
        str, typer.Option(help="Python interpreter of the environment with the IREE build to ask.")
    ] = "",
    audit: Annotated[
        bool, typer.Option("--audit", help="Run every preprocessing pass over small programs, and judge it.")
    ] = False,
    patterns: Annotated[
        list[str],
        typer.Option(
            "--pass", metavar="GLOB", help="Audit these of the passes that iree-opt lists; repeatable."
        ),
    ] = [],  # noqa: B006
    programs: Annotated[
        list[str],
        typer.Option("--program", metavar="GLOB", help="Audit with these programs only; repeatable."),
    ] = [],  # noqa: B006
    against: Annotated[
        Path | None,
        typer.Option(help="The JSON of an earlier audit: only what is worse than there counts for the exit."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Directory of an audit; numtrace-audit without.")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print the document of an audit.")] = False,
) -> None:
    """List the passes, what they touch, and whether the installed IREE has them.

    With --audit: what each of IREE's preprocessing passes does to a corpus of small programs. Exits with 1 if one
    changes the mathematics of a program, with 3 if one fails, with 4 if it could not be told of one, and with 70 if
    numtrace itself failed. Compiler flags go after `--`.
    """
    from numtrace.report.passes import print_passes
    from numtrace.report.terminal import make_console

    if audit:
        raise typer.Exit(
            _audit(patterns, programs, against, out or Path("numtrace-audit"), json_, python or None)
        )
    if patterns or programs or against or out or json_:
        raise UsageError("--pass, --program, --against, --out and --json belong to --audit; add it")
    with standard_output():
        print_passes(make_console(sys.stdout), python or None)


def _audit(
    patterns: list[str], programs: list[str], against: Path | None, out: Path, json_: bool, python: str | None
) -> int:
    from numtrace.audit.audit import audit, exit_code
    from numtrace.audit.corpus import matching
    from numtrace.audit.document import encode, load, worse
    from numtrace.report.audit import print_audit, worse_lines
    from numtrace.report.progress import Progress
    from numtrace.report.terminal import make_console, show_lines, width_of

    earlier = load(against) if against else None
    with Progress() as progress:
        document = audit(
            out,
            progress,
            patterns=patterns,
            programs=matching(programs),
            python=python,
            flags=more_flags(python),
        )
    found = None if earlier is None else worse(document, earlier)
    with standard_output():
        if json_:
            sys.stdout.buffer.write(encode(document))
        else:
            console = make_console(sys.stdout)
            print_audit(document, out, console)
            if found is not None:
                show_lines(worse_lines(found, width_of(console)), console)
    return int(exit_code(document, None if found is None else [finding for _, finding in found]))
