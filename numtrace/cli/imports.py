"""``numtrace import``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from numtrace.cli.options import Python
from numtrace.cli.output import standard_output


def import_model(
    source: Annotated[str, typer.Argument(help="An .onnx or .pt2 file, or package.module:factory.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The MLIR file; the others are put beside it.")
    ] = None,
    python: Python = "",
) -> None:
    """Write SOURCE as MLIR, with its parameters and example inputs, and print the line that runs it.

    `numtrace run SOURCE` does the same first. A factory and a .pt2 file are code that runs with your rights.
    """
    from numtrace.importing import import_to
    from numtrace.report.progress import Progress

    with Progress() as progress:
        files = import_to(source, out, progress, python=python or None)
        for notice in files.notices:
            progress.notice(notice)
    with standard_output():
        print(files.command())
