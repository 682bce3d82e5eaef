"""The one module that calls IREE's compiler: ``iree-compile`` as a child process, and its phases."""

from __future__ import annotations

import re
import subprocess
import sys
import time
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


class Compilation:
    """``iree-compile source flags -o target`` at work, in a process of its own.

    What a failing compiler printed goes to stderr in full: the worker's log. As a context it stops what is still
    at work in the end.
    """

    def __init__(self, source: Path, target: Path, flags: Sequence[str], *, timeout: float | None = None):
        """``timeout``: in seconds from now."""
        self._target, self._flags, self._timeout = target, flags, timeout
        self._partial = target.with_name(target.name + ".partial")
        # Absolute: a relative path may begin with a dash.
        paths = [str(path.absolute()) for path in (source, self._partial)]
        self._command = [iree_compile(), paths[0], *flags, "-o", paths[1]]
        self._started = time.monotonic()
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )

    def __enter__(self) -> Compilation:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._stop()

    def wait(self) -> str:
        """What it printed, once ``target`` is there.

        Raises:
            UsageError: a flag is unknown (with the compiler's suggestion).
            OutputError: ``target`` cannot be written.
            CompileError: the compiler reported an error, crashed or took too long.
        """
        try:
            printed, _ = self._process.communicate(timeout=self._left())
        except subprocess.TimeoutExpired:
            self._stop()
            raise CompileError(
                f"iree-compile was still running after {self._timeout:.0f} s, on the way to {_aim(self._flags)}, "
                "and was stopped; give it more time with --compile-timeout",
                kind="compiler-time-out",
            ) from None
        except BaseException:
            self._stop()
            raise
        if self._process.returncode == 0:
            self._partial.replace(self._target)
            return printed
        self._partial.unlink(missing_ok=True)
        sys.stderr.write(printed)
        error = compile_failure(self._process.returncode, printed, _aim(self._flags), self._target)
        if isinstance(error, CompileError) and error.kind == "compiler-crash" and DEBUG_INFO in self._flags:
            error.stamps = error.stamps or stamps_at_crash(self._command, self._timeout)
        raise error

    def _left(self) -> float | None:
        """Seconds until it is too long, and enough to read what a compiler printed that is done."""
        if self._timeout is None:
            return None
        return max(1.0, self._started + self._timeout - time.monotonic())

    def _stop(self) -> None:
        self._process.kill()
        self._process.communicate()
        self._partial.unlink(missing_ok=True)


def compile_file(source: Path, target: Path, flags: Sequence[str], *, timeout: float | None = None) -> str:
    """Runs ``iree-compile`` and returns what it printed; see :class:`Compilation`."""
    with Compilation(source, target, flags, timeout=timeout) as compilation:
        return compilation.wait()


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
