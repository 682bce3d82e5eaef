"""The command line: parse, call, print, exit code. No logic. A file a command."""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path
from typing import Annotated

import typer

from numtrace import __version__
from numtrace.cli.accept import accept
from numtrace.cli.bisect import bisect
from numtrace.cli.doctor import doctor
from numtrace.cli.imports import import_model
from numtrace.cli.options import COMPILER_ARGUMENTS
from numtrace.cli.passes import list_passes
from numtrace.cli.rerun import rerun
from numtrace.cli.run import run
from numtrace.cli.show import show
from numtrace.errors import ExitCode, NumtraceError

app = typer.Typer(
    name="numtrace",
    help="Which compiler pass and which op brought how much of a model's numerical error.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},  # of every command: theirs come from here
)

app.command()(run)
app.command()(bisect)
app.command()(show)
app.command()(accept)
app.command()(rerun)
app.command("import")(import_model)
app.command("passes")(list_passes)
app.command()(doctor)


def _version(value: bool) -> None:
    if value:
        print(f"numtrace {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    pass


def main() -> None:
    """The console script. Every error leaves with its exit code; only ``--debug`` shows a traceback."""
    # Closed streams (``>&-``): what nobody reads must not end a run.
    sys.stdout = sys.stdout or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    arguments = sys.argv[1:]
    at = arguments.index("--") if "--" in arguments else len(arguments)
    arguments, COMPILER_ARGUMENTS[:] = arguments[:at], arguments[at + 1 :]
    debug = "--debug" in arguments
    arguments = arguments or ["--help"]
    try:
        code = app(arguments, standalone_mode=False) or 0
        if code == ExitCode.INTERRUPTED:  # typer makes it of a KeyboardInterrupt
            print("numtrace: interrupted", file=sys.stderr)
    except typer.TyperException as error:
        print(f"numtrace: {error.format_message().rstrip('.')}; see numtrace --help", file=sys.stderr)
        code = ExitCode.USAGE
    except NumtraceError as error:
        if debug:
            traceback.print_exc()
        print(f"numtrace: {error}", file=sys.stderr)
        code = error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        print("numtrace: interrupted", file=sys.stderr)
        code = ExitCode.INTERRUPTED
    except Exception as error:
        if debug:
            traceback.print_exc()
        print(
            f"numtrace: a fault of numtrace ({type(error).__name__}: {error}); "
            "run again with --debug and report it",
            file=sys.stderr,
        )
        code = ExitCode.INTERNAL
    sys.exit(int(code))
