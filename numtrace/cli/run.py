"""``numtrace run``."""

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


def run(
    model: Model = "",
    passes: Annotated[
        list[str],
        typer.Option("--pass", help="A pass by name or pipeline text; repeatable. See `numtrace passes`."),
    ] = [],  # noqa: B006
    command: Command = "",
    params: Params = [],  # noqa: B006
    inputs: Inputs = [],  # noqa: B006
    expected: Annotated[list[Path], typer.Option(help="A golden output (.npy), one per result.")] = [],  # noqa: B006
    function: Function = "",
    attention: Form = "",
    seed: Seed = 0,
    seeds: Annotated[int, typer.Option(min=1, help="Run this many seeds and report the worst.")] = 1,
    modes: Annotated[
        str, typer.Option("--variants", help="Which variants: of alone, pairs, all.")
    ] = "alone,pairs,all",
    target: Target = "",
    device: Annotated[
        str, typer.Option(help="IREE device to run on, such as local-sync; the target's usual one without.")
    ] = "",
    threads: Threads = 0,
    reference_device: ReferenceDevice = "cpu",
    python: Python = "",
    out: Out = None,
    atol: Annotated[float | None, typer.Option(min=0, help="Absolute tolerance of the outputs.")] = None,
    rtol: Annotated[float | None, typer.Option(min=0, help="Relative tolerance of the outputs.")] = None,
    psnr: Annotated[float | None, typer.Option(help="Least PSNR of the outputs, in dB.")] = None,
    image: Annotated[bool, typer.Option("--image", help="Tolerate one 8-bit step.")] = False,
    known: Annotated[
        Path | None, typer.Option(help="Findings accepted before (see `numtrace accept`): no bug verdict.")
    ] = None,
    compile_timeout: CompileTimeout = 1800,
    run_timeout: RunTimeout = 3600,
    json_: Annotated[
        bool, typer.Option("--json", help="Print the report document and nothing else.")
    ] = False,
    top: Annotated[int, typer.Option(min=1, help="Dispatches shown per table.")] = 8,
) -> None:
    """Compile MODEL with each pass on its own, trace every dispatch, and attribute the error.

    Compiler flags, or a whole iree-compile command line, go after `--`.
    """
    from numtrace.request import make_request

    request = make_request(
        model=model, passes=passes, command=command_text(command), arguments=COMPILER_ARGUMENTS,
        params=params, inputs=inputs, expected=expected, function=function, attention=attention, seed=seed,
        seeds=seeds, modes=modes, target=target, device=device, reference_device=reference_device, runs=True,
        threads=threads or len(os.sched_getaffinity(0)),
        python=python, out=out, atol=atol, rtol=rtol, psnr=psnr, image=image,
        known=known, compile_timeout=compile_timeout, run_timeout=run_timeout,
    )  # fmt: skip
    raise typer.Exit(_run(request, json_, top))


def _run(request: Any, json_: bool, top: int) -> int:
    from numtrace.next_steps import next_steps
    from numtrace.report.progress import Progress
    from numtrace.session import Session

    with Progress() as progress:
        session = Session(request, progress)
        for notice in request.notices:
            progress.notice(notice)
        report = session.run()
    with standard_output():
        if json_:
            from numtrace.report.document import write_document

            write_document(report, sys.stdout.buffer)
        else:
            from numtrace.report.terminal import make_console, print_report

            print_report(report, make_console(sys.stdout), top=top)
    assert session.directory is not None
    print(f"run directory: {session.directory.path}", file=sys.stderr)
    for command in next_steps(request, report, session.directory.path):
        print(f"next: {command}", file=sys.stderr)
    if session.stopped:
        print(f"numtrace: {session.stopped}", file=sys.stderr)
    return int(session.exit_code())
