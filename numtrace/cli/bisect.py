"""``numtrace bisect``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from numtrace.cli.options import (
    COMPILER_ARGUMENTS,
    Command,
    CompileTimeout,
    Form,
    Function,
    Inputs,
    Model,
    Out,
    Params,
    Python,
    ReferenceDevice,
    RunTimeout,
    Seed,
    Target,
    Threads,
    command_text,
)
from numtrace.cli.output import standard_output


def bisect(
    model: Model = "",
    passes: Annotated[
        list[str], typer.Option("--pass", help="A pass by name or pipeline text; repeatable, in order.")
    ] = [],  # noqa: B006
    command: Command = "",
    params: Params = [],  # noqa: B006
    inputs: Inputs = [],  # noqa: B006
    function: Function = "",
    attention: Form = "",
    seed: Seed = 0,
    target: Target = "",
    threads: Threads = 0,
    every: Annotated[
        bool, typer.Option("--every", help="Evaluate after every pass of every stage, not a few: slow.")
    ] = False,
    reference_device: ReferenceDevice = "cpu",
    python: Python = "",
    out: Out = None,
    compile_timeout: CompileTimeout = 1800,
    run_timeout: RunTimeout = 3600,
    json_: Annotated[
        bool, typer.Option("--json", help="Print the document of the search and nothing else.")
    ] = False,
) -> None:
    """Find the compiler pass that changes what MODEL means, in exact arithmetic.

    With --pass in the pipeline of these passes from the `input` stage on; without, in IREE's own from the source
    on. Down to `flow`. Compiler flags, or a whole iree-compile command line, go after `--`.
    """
    from numtrace.bisect import bisect as search
    from numtrace.bisect import exit_code
    from numtrace.report.progress import Progress
    from numtrace.request import make_request

    request = make_request(
        model=model, passes=passes, command=command_text(command), arguments=COMPILER_ARGUMENTS,
        params=params, inputs=inputs, expected=[], function=function, attention=attention, seed=seed,
        seeds=1, modes="all", target=target, device="", reference_device=reference_device, runs=False,
        threads=threads or len(os.sched_getaffinity(0)),
        python=python, out=out, atol=None, rtol=None, psnr=None, image=False,
        compile_timeout=compile_timeout, run_timeout=run_timeout,
    )  # fmt: skip
    with Progress() as progress:
        document, run_directory = search(request, progress, every=every)
    print_bisection(document, run_directory, json_)
    print(f"run directory: {run_directory}", file=sys.stderr)
    raise typer.Exit(int(exit_code(document)))


def print_bisection(document: Any, run_directory: Path, json_: bool) -> None:
    with standard_output():
        if json_:
            from numtrace.dumps.bisection import encode

            sys.stdout.buffer.write(encode(document))
        else:
            from numtrace.report.bisection import print_bisection
            from numtrace.report.terminal import make_console

            print_bisection(document, run_directory, make_console(sys.stdout))
