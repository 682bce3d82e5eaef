"""The command line: parse, call, print, exit code. No logic."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from numtrace import __version__
from numtrace.errors import ExitCode, NumtraceError, OutputError, UsageError

app = typer.Typer(
    name="numtrace",
    help="Which compiler pass and which op brought how much of a model's numerical error.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

#: Options that several commands have.
_Model = Annotated[
    str,
    typer.Argument(
        help="A built-in model; an .mlir, .mlirbc, .onnx or .pt2 file; or package.module:factory.",
        show_default=False,
    ),
]
_Command = Annotated[str, typer.Option(help="A file with an iree-compile command line (`-` is stdin).")]
_Params = Annotated[list[str], typer.Option(metavar="SCOPE=FILE", help="A parameter archive; repeatable.")]
_Inputs = Annotated[
    list[str],
    typer.Option("--input", help="An input as in iree-run-module; repeatable. Seeded random without."),
]
_Function = Annotated[str, typer.Option(help="The entry function.")]
_Form = Annotated[str, typer.Option(help="Form of a built-in model's attention: decomposed or op.")]
_Seed = Annotated[int, typer.Option(help="Seed of random inputs.")]
_Python = Annotated[
    str, typer.Option(help="Python interpreter of the environment with the IREE build to use.")
]
_Out = Annotated[Path | None, typer.Option("--out", "-o", help="Run directory.")]
_CompileTimeout = Annotated[float, typer.Option(min=1, help="Seconds for one compilation.")]
_RunTimeout = Annotated[float, typer.Option(min=1, help="Seconds without a sign of life.")]

#: What stands after ``--``: compiler flags, or a whole iree-compile command line.
_COMPILER_ARGUMENTS: list[str] = []


@app.command(context_settings={"help_option_names": ["-h", "--help"]})
def run(
    model: _Model = "",
    passes: Annotated[
        list[str],
        typer.Option("--pass", help="A pass by name or pipeline text; repeatable. See `numtrace passes`."),
    ] = [],  # noqa: B006
    command: _Command = "",
    params: _Params = [],  # noqa: B006
    inputs: _Inputs = [],  # noqa: B006
    expected: Annotated[list[Path], typer.Option(help="A golden output (.npy), one per result.")] = [],  # noqa: B006
    function: _Function = "",
    attention: _Form = "",
    seed: _Seed = 0,
    seeds: Annotated[int, typer.Option(min=1, help="Run this many seeds and report the worst.")] = 1,
    modes: Annotated[
        str, typer.Option("--variants", help="Which variants: of alone, pairs, all.")
    ] = "alone,pairs,all",
    device: Annotated[str, typer.Option(help="IREE device to run on.")] = "local-task",
    threads: Annotated[int, typer.Option(min=0, help="Threads of IREE and of torch; 0 is all cores.")] = 0,
    python: _Python = "",
    out: _Out = None,
    atol: Annotated[float | None, typer.Option(min=0, help="Absolute tolerance of the outputs.")] = None,
    rtol: Annotated[float | None, typer.Option(min=0, help="Relative tolerance of the outputs.")] = None,
    psnr: Annotated[float | None, typer.Option(help="Least PSNR of the outputs, in dB.")] = None,
    image: Annotated[bool, typer.Option("--image", help="Tolerate one 8-bit step.")] = False,
    known: Annotated[
        Path | None, typer.Option(help="Findings accepted before (see `numtrace accept`): no bug verdict.")
    ] = None,
    compile_timeout: _CompileTimeout = 1800,
    run_timeout: _RunTimeout = 3600,
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
        model=model, passes=passes, command=_command_text(command), arguments=_COMPILER_ARGUMENTS,
        params=params, inputs=inputs, expected=expected, function=function, attention=attention, seed=seed,
        seeds=seeds, modes=modes, device=device, threads=threads or len(os.sched_getaffinity(0)),
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
    with _standard_output():
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


@app.command(context_settings={"help_option_names": ["-h", "--help"]})
def bisect(
    model: _Model = "",
    passes: Annotated[
        list[str], typer.Option("--pass", help="A pass by name or pipeline text; repeatable, in order.")
    ] = [],  # noqa: B006
    command: _Command = "",
    params: _Params = [],  # noqa: B006
    inputs: _Inputs = [],  # noqa: B006
    function: _Function = "",
    attention: _Form = "",
    seed: _Seed = 0,
    threads: Annotated[int, typer.Option(min=0, help="Threads of torch; 0 is all cores.")] = 0,
    every: Annotated[
        bool, typer.Option("--every", help="Evaluate after every pass of every stage, not a few: slow.")
    ] = False,
    python: _Python = "",
    out: _Out = None,
    compile_timeout: _CompileTimeout = 1800,
    run_timeout: _RunTimeout = 3600,
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
        model=model, passes=passes, command=_command_text(command), arguments=_COMPILER_ARGUMENTS,
        params=params, inputs=inputs, expected=[], function=function, attention=attention, seed=seed,
        seeds=1, modes="all", device="local-task", threads=threads or len(os.sched_getaffinity(0)),
        python=python, out=out, atol=None, rtol=None, psnr=None, image=False,
        compile_timeout=compile_timeout, run_timeout=run_timeout,
    )  # fmt: skip
    with Progress() as progress:
        document, run_directory = search(request, progress, every=every)
    _print_bisection(document, run_directory, json_)
    print(f"run directory: {run_directory}", file=sys.stderr)
    raise typer.Exit(int(exit_code(document)))


def _print_bisection(document: Any, run_directory: Path, json_: bool) -> None:
    with _standard_output():
        if json_:
            from numtrace.dumps.bisection import encode

            sys.stdout.buffer.write(encode(document))
        else:
            from numtrace.report.bisection import print_bisection
            from numtrace.report.terminal import make_console

            print_bisection(document, run_directory, make_console(sys.stdout))


@contextmanager
def _standard_output() -> Iterator[None]:
    """For printing the result. A reader who leaves early (``| head``) changes nothing, not the exit code.

    Raises:
        OutputError: what standard output goes to is full.
    """
    try:
        yield
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit):  # rich makes the one the other
        _discard_standard_output()
    except OSError as error:
        _discard_standard_output()
        raise OutputError(
            f"cannot write to standard output: {error.strerror}; the report is in the run directory too"
        ) from None


def _discard_standard_output() -> None:
    """Python flushes once more at exit; let that go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _command_text(command: str) -> str:
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


@app.command()
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
        _print_bisection(found, run_directory, json_)
        return
    report = load(run_directory)
    if codegen:
        _dump_code(run_directory, variant, site, python)
    with _standard_output():
        console = make_console(sys.stdout)
        if json_:
            from numtrace.report.document import write_document

            write_document(part_of(report, variant, site), sys.stdout.buffer)
        elif site:
            run = run_directory if run_directory.is_dir() else run_directory.parent
            print_site(report, console, variant or report.variants[-1].name, site, run)
        else:
            print_report(report, console, top=top, variant=variant or None)


@app.command()
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
    with _standard_output():
        print(done.sentence(path))


def _dump_code(run_directory: Path, variant: str, site: str, python: str) -> None:
    from numtrace.report.progress import Progress
    from numtrace.rerun import dump_code, find

    if not site:
        raise UsageError("--codegen is about one dispatch: give its site with --site")
    with Progress() as progress:
        dump_code(find(run_directory, variant, site), progress, python=python or None)


@app.command(context_settings={"help_option_names": ["-h", "--help"]})
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
    more = _more_flags(python or None)
    with Progress() as progress:
        record = rerun_site(found, progress, more=more, routes=routes, timeout=timeout, python=python or None)
    with _standard_output():
        if json_:
            import json

            print(json.dumps(record, indent=2))
        else:
            from numtrace.report.rerun import print_rerun
            from numtrace.report.terminal import make_console

            print_rerun(record, code_of(found, record), make_console(sys.stdout))
    raise typer.Exit(int(exit_code(record)))


def _more_flags(python: str | None) -> list[str]:
    """The compiler flags after ``--``."""
    from numtrace.passes import commandline, probe

    if not _COMPILER_ARGUMENTS:
        return []
    given = commandline.parse_arguments(_COMPILER_ARGUMENTS, probe.compiler_flags(python))
    if given.model or given.pipeline:
        raise UsageError("a dispatch alone takes compiler flags only: no model, and no pass before `flow`")
    for notice in given.notices:
        print(f"note: {notice}", file=sys.stderr)
    return list(given.flags)


@app.command("import")
def import_model(
    source: Annotated[str, typer.Argument(help="An .onnx or .pt2 file, or package.module:factory.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The MLIR file; the others are put beside it.")
    ] = None,
    python: _Python = "",
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
    with _standard_output():
        print(files.command())


@app.command("passes")
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
    changes the mathematics of a program, with 3 if one fails. Compiler flags go after `--`.
    """
    from numtrace.report.passes import print_passes
    from numtrace.report.terminal import make_console

    if audit:
        raise typer.Exit(_audit(patterns, against, out or Path("numtrace-audit"), json_, python or None))
    if patterns or against or out or json_:
        raise UsageError("--pass, --against, --out and --json belong to --audit; add it")
    with _standard_output():
        print_passes(make_console(sys.stdout), python or None)


def _audit(patterns: list[str], against: Path | None, out: Path, json_: bool, python: str | None) -> int:
    from numtrace.audit.audit import audit, exit_code
    from numtrace.audit.document import encode, load, worse
    from numtrace.report.audit import print_audit, worse_lines
    from numtrace.report.progress import Progress
    from numtrace.report.terminal import make_console, show_lines, width_of

    earlier = load(against) if against else None
    with Progress() as progress:
        document = audit(out, progress, patterns=patterns, python=python, flags=_more_flags(python))
    found = None if earlier is None else worse(document, earlier)
    with _standard_output():
        if json_:
            sys.stdout.buffer.write(encode(document))
        else:
            console = make_console(sys.stdout)
            print_audit(document, out, console)
            if found is not None:
                show_lines(worse_lines(found, width_of(console)), console)
    return int(exit_code(document, None if found is None else [finding for _, finding in found]))


@app.command()
def doctor() -> None:
    """Show versions, devices and CPU features, and what will not work here."""
    from numtrace.report.doctor import print_doctor
    from numtrace.report.terminal import make_console

    raise typer.Exit(0 if print_doctor(make_console(sys.stdout)) else int(ExitCode.FAILED))


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
    arguments, _COMPILER_ARGUMENTS[:] = arguments[:at], arguments[at + 1 :]
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
