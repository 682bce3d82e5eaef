"""The one module that calls IREE's compiler: ``iree-compile`` as a child process, and its phases."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from numtrace.errors import CompileError, ModelError
from numtrace.instrument.crash import stamps_at_crash
from numtrace.instrument.failure import compile_failure, one_line

#: Keeps the stamps: without it locations are lost between the phases.
DEBUG_INFO = "--mlir-print-debuginfo"


def iree_compile() -> str:
    """The path of the ``iree-compile`` that belongs to this interpreter's IREE."""
    from iree.compiler.tools.binaries import find_tool

    return find_tool("iree-compile")


def compile_file(source: Path, target: Path, flags: Sequence[str], *, timeout: float | None = None) -> str:
    """Runs ``iree-compile source flags -o target`` and returns what it printed.

    What a failing compiler printed goes to stderr in full: the worker's log.

    Raises:
        UsageError: a flag is unknown (with the compiler's suggestion).
        OutputError: ``target`` cannot be written.
        CompileError: the compiler reported an error, crashed or took longer than ``timeout`` seconds.
    """
    partial = target.with_name(target.name + ".partial")
    # Absolute: a relative path may begin with a dash.
    command = [iree_compile(), str(source.absolute()), *flags, "-o", str(partial.absolute())]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    try:
        printed, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        partial.unlink(missing_ok=True)
        raise CompileError(
            f"iree-compile was still running after {timeout:.0f} s, on the way to {_aim(flags)}, "
            "and was stopped; give it more time with --compile-timeout",
            kind="compiler-time-out",
        ) from None
    except BaseException:
        process.kill()
        process.communicate()
        raise
    if process.returncode == 0:
        partial.replace(target)
        return printed
    partial.unlink(missing_ok=True)
    sys.stderr.write(printed)
    error = compile_failure(process.returncode, printed, _aim(flags), target)
    if isinstance(error, CompileError) and error.kind == "compiler-crash" and DEBUG_INFO in flags:
        error.stamps = error.stamps or stamps_at_crash(command, timeout)
    raise error


def _aim(flags: Sequence[str]) -> str:
    """The phase that a compilation ends with, in words."""
    phases = [flag.partition("=")[2] for flag in flags if flag.startswith("--compile-to=")]
    return phases[-1] if phases else "the executable"


def phase(
    source: Path,
    target: Path,
    start: str | None,
    end: str | None,
    flags: Sequence[str],
    timeout: float | None = None,
) -> str:
    """Compiles from phase ``start`` (None: the source) to phase ``end`` (None: the end), with locations."""
    bounds = []
    if start is not None:
        bounds.append(f"--compile-from={start}")
    if end is not None:
        bounds.append(f"--compile-to={end}")
    return compile_file(source, target, [*flags, *bounds, DEBUG_INFO], timeout=timeout)


def parse_error(error: Exception, path: Path) -> ModelError:
    """A parse failure of the bindings as one sentence with the file's line and column."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    detail = next((line for line in lines if "error:" in line), lines[-1] if lines else "no message")
    where = re.search(r'"[^"]*":(\d+):(\d+)', detail)
    message = (
        detail.split("error:", 1)[-1].split(":", 2)[-1].strip()
        if where is None
        else re.split(r'"[^"]*":\d+:\d+:\s*', detail, maxsplit=1)[-1]
    )
    place = f"line {where[1]}, column {where[2]}" if where else "no line given"
    return ModelError(f"{path.name} is not MLIR that the installed IREE parses: {place}: {one_line(message)}")
