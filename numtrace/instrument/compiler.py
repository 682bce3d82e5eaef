"""The one module that calls IREE's compiler: ``iree-compile`` as a child process, and its phases."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from numtrace.errors import CompileError, ModelError, UsageError
from numtrace.passes.renames import unknown_flag

#: Keeps the stamps: without it locations are lost between the phases.
DEBUG_INFO = "--mlir-print-debuginfo"

_LOCATION = re.compile(r"^(?P<where>.*?): error: (?P<message>.*)$", re.MULTILINE)
_UNKNOWN_CPU = re.compile(r"Unknown CPU .*")


def iree_compile() -> str:
    """The path of the ``iree-compile`` that belongs to this interpreter's IREE."""
    from iree.compiler.tools.binaries import find_tool

    return find_tool("iree-compile")


def compile_file(source: Path, target: Path, flags: Sequence[str], *, timeout: float | None = None) -> str:
    """Runs ``iree-compile source flags -o target`` and returns what it printed.

    Raises:
        UsageError: a flag is unknown (with the compiler's suggestion).
        ModelError: the source does not parse (with the compiler's line).
        CompileError: the compiler reported an error, crashed or took longer than ``timeout`` seconds.
    """
    command = [iree_compile(), str(source), *flags, "-o", str(target)]
    partial = target.with_name(target.name + ".partial")
    command[-1] = str(partial)
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    try:
        printed, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise CompileError(
            f"iree-compile was still running after {timeout:.0f} s and was stopped; give it more time with --compile-timeout"
        ) from None
    except BaseException:
        process.kill()
        process.communicate()
        raise
    if process.returncode == 0:
        partial.replace(target)
        return printed
    partial.unlink(missing_ok=True)
    raise _failure(process.returncode, printed)


def _failure(code: int, printed: str) -> Exception:
    flag = unknown_flag(printed)
    if flag:
        return UsageError(_one_line(flag))
    if cpu := _UNKNOWN_CPU.search(printed):
        accepted = printed[cpu.start() :].splitlines()[1:2]
        return UsageError(f"iree-compile does not know the target CPU. {_one_line(' '.join(accepted))}")
    if code < 0:
        name = signal.Signals(-code).name
        return CompileError(f"iree-compile crashed with {name}: {_last_words(printed)}")
    error = _LOCATION.search(printed)
    if error is None:
        return CompileError(f"iree-compile failed with exit code {code}: {_last_words(printed)}")
    where, message = _stamped(error["where"]), _one_line(error["message"])
    failure = CompileError(f"{message} (at {where})" if where else message)
    failure.location = error["where"]  # type: ignore[attr-defined]
    failure.printed = printed  # type: ignore[attr-defined]
    return failure


def _stamped(where: str) -> str:
    return os.path.basename(where) if os.sep in where else where


def _last_words(printed: str) -> str:
    lines = [line.strip() for line in printed.splitlines() if line.strip() and not line.startswith((" #", "Stack dump"))]
    return _one_line(lines[-1]) if lines else "it printed nothing"


def _one_line(text: str) -> str:
    return " ".join(text.split())[:400]


def phase(source: Path, target: Path, start: str | None, end: str | None, flags: Sequence[str], timeout: float | None = None) -> str:
    """Compiles from phase ``start`` (None: the source) to phase ``end`` (None: the whole way), keeping locations."""
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
    message = detail.split("error:", 1)[-1].split(":", 2)[-1].strip() if where is None else re.split(r'"[^"]*":\d+:\d+:\s*', detail, maxsplit=1)[-1]
    place = f"line {where[1]}, column {where[2]}" if where else "no line given"
    return ModelError(f"{path.name} is not MLIR that the installed IREE parses: {place}: {_one_line(message)}")
