"""Options that several commands have, and what stands after ``--``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from numtrace.errors import UsageError

Model = Annotated[
    str,
    typer.Argument(
        help="A built-in model; an .mlir, .mlirbc, .onnx or .pt2 file; or package.module:factory.",
        show_default=False,
    ),
]
Command = Annotated[str, typer.Option(help="A file with an iree-compile command line (`-` is stdin).")]
Params = Annotated[list[str], typer.Option(metavar="SCOPE=FILE", help="A parameter archive; repeatable.")]
Inputs = Annotated[
    list[str],
    typer.Option("--input", help="An input as in iree-run-module; repeatable. Seeded random without."),
]
Function = Annotated[str, typer.Option(help="The entry function.")]
Form = Annotated[str, typer.Option(help="Form of a built-in model's attention: decomposed or op.")]
Seed = Annotated[int, typer.Option(help="Seed of random inputs.")]
Target = Annotated[
    str, typer.Option(help="What to compile for: llvm-cpu (the default), vmvx, or another of iree-compile's.")
]
ReferenceDevice = Annotated[
    str, typer.Option(help="Torch device that the float64 reference is evaluated on, such as cuda.")
]
Python = Annotated[
    str, typer.Option(help="Python interpreter of the environment with the IREE build to use.")
]
Out = Annotated[Path | None, typer.Option("--out", "-o", help="Run directory.")]
#: No executor of IREE has more threads than 256, and a process with very many can start no compiler.
Threads = Annotated[int, typer.Option(min=0, max=256, help="Threads of IREE and of torch; 0 is all cores.")]
CompileTimeout = Annotated[float, typer.Option(min=1, help="Seconds for one compilation.")]
RunTimeout = Annotated[float, typer.Option(min=1, help="Seconds without a sign of life.")]

#: What stands after ``--``: compiler flags, or a whole iree-compile command line.
COMPILER_ARGUMENTS: list[str] = []


def command_text(command: str) -> str:
    if not command:
        return ""
    if command == "-":
        return sys.stdin.read()
    try:
        return Path(command).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"--command {command} cannot be read: {error}; give a text file, or - for stdin"
        ) from None


def more_flags(python: str | None) -> list[str]:
    """The compiler flags after ``--``."""
    from numtrace.passes import commandline, probe

    if not COMPILER_ARGUMENTS:
        return []
    given = commandline.parse_arguments(COMPILER_ARGUMENTS, probe.compiler_flags(python))
    if given.model or given.pipeline:
        raise UsageError("a dispatch alone takes compiler flags only: no model, and no pass before `flow`")
    for notice in given.notices:
        print(f"note: {notice}", file=sys.stderr)
    return list(given.flags)
