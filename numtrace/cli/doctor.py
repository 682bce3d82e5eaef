"""``numtrace doctor``."""

from __future__ import annotations

import sys

import typer

from numtrace.errors import ExitCode


def doctor() -> None:
    """Show versions, devices and CPU features, and what will not work here."""
    from numtrace.report.doctor import print_doctor
    from numtrace.report.terminal import make_console

    raise typer.Exit(0 if print_doctor(make_console(sys.stdout)) else int(ExitCode.FAILED))
