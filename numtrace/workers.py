"""The parent's end of a worker: starts it, reads its events, and tells how it died when it does."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from numtrace.dumps.files import output_errors
from numtrace.errors import CompileError, ExitCode, NumtraceError, OutputError, RunError, UsageError
from numtrace.worker import BOOT

#: What a signal means to a reader.
_SIGNALS = {
    "SIGILL": "an illegal instruction: the code asks for CPU features that this host lacks",
    "SIGSEGV": "a segmentation fault: memory that is not the program's",
    "SIGFPE": "an arithmetic trap, such as an integer division by zero",
    "SIGABRT": "an abort: an assertion failed",
    "SIGKILL": "killed from outside, most likely for want of memory",
    "SIGBUS": "a bus error: a file that it maps is shorter than it says",
}


#: Passive waiting: IREE's and torch's threads take turns on the same cores, and a spinning one costs the other
#: its time slice. Huge pages: tensors of a gigabyte come and go, and faulting them in page by page took a
#: quarter of the time of a large model.
ENVIRONMENT = {"OMP_WAIT_POLICY": "passive", "THP_MEM_ALLOC_ENABLE": "1"}


class Worker:
    """One job in a child process: a context manager, since leaving must end it and all its children."""

    def __init__(self, job: dict[str, Any], log: Path, python: str | None = None):
        environment = os.environ | ENVIRONMENT
        self._log = log
        self._stage, self._timed = "start", False
        self._site = ""
        interpreter = python or sys.executable
        with output_errors(log), log.open("wb") as stderr:
            try:
                self._process = subprocess.Popen(
                    [interpreter, "-X", "faulthandler", str(BOOT)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=stderr,
                    env=environment,
                    start_new_session=True,  # so that its compilers die with it
                )
            except OSError as error:
                raise UsageError(
                    f"cannot start the Python interpreter {interpreter}: {error.strerror}"
                ) from None
        assert self._process.stdin is not None
        try:
            # Not closed: its end is how the worker learns that this process is no more.
            self._process.stdin.write(json.dumps(job).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # it died at once; events() says how

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def events(self, silence: float | None = None) -> Iterator[dict[str, Any]]:
        """The worker's events as they come.

        Raises:
            RunError: it died (with the signal and what it was doing), or said nothing for ``silence`` seconds
                in a stage that has no time limit of its own.
        """
        ended = False
        for line in self._lines(silence):
            event = json.loads(line)
            if event["event"] == "stage":
                self._stage, self._timed = event["name"], event.get("timed", False)
            self._site = event["record"]["id"] if event["event"] == "site" else self._site
            ended = ended or event["event"] not in ("stage", "site")
            yield event
        code = self._process.wait()
        if code != 0 or not ended:
            raise RunError(self._death(code), kind="crash" if code < 0 else "exit")

    def _lines(self, silence: float | None) -> Iterator[bytes]:
        stream = self._process.stdout
        assert stream is not None
        rest = b""
        with selectors.DefaultSelector() as selector:
            selector.register(stream, selectors.EVENT_READ)
            heard = time.monotonic()
            while True:
                left = silence - (time.monotonic() - heard) if silence is not None and self._timed else None
                if (left is not None and left <= 0) or not selector.select(left):
                    self.stop()
                    raise RunError(
                        f"nothing happened for {silence:.0f} s while it was at: {self._doing()}; it was "
                        "stopped. Give it more time with --run-timeout",
                        kind="time-out",
                    )
                data = os.read(stream.fileno(), 1 << 20)
                if not data:
                    return
                heard = time.monotonic()
                *lines, rest = (rest + data).split(b"\n")
                yield from lines

    def _doing(self) -> str:
        return f"{self._stage}, after site {self._site}" if self._site else self._stage

    def _death(self, code: int) -> str:
        if code < 0:
            name = signal.Signals(-code).name
            means = _SIGNALS.get(name, "a signal")
            return f"the process died of {name} ({means}) at: {self._doing()}"
        return (
            f"the process ended with exit code {code} and no result at: {self._doing()}; {self._last_words()}"
        )

    def _last_words(self) -> str:
        try:
            lines = self._log.read_text(errors="replace").strip().splitlines()
        except OSError:
            lines = []
        return lines[-1][:300] if lines else "it printed nothing"

    def stop(self) -> None:
        """Ends the worker and everything it started. Harmless when it has ended."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()


_ERRORS: dict[str, Callable[[str], NumtraceError]] = {
    error.__name__: error for error in (UsageError, OutputError, CompileError, RunError)
}


def placed(event: dict[str, Any]) -> str:
    """An error's message, with the source op it speaks of where that is known."""
    location = event.get("location")
    return f"{event['message']} (at {location})" if location else event["message"]


def raised(event: dict[str, Any]) -> NumtraceError:
    """The worker's error as an exception of this process, of the same exit code."""
    other = UsageError if event["exit_code"] == ExitCode.USAGE else NumtraceError
    error = _ERRORS.get(event["error"], other)(placed(event))
    error.exit_code = ExitCode(event["exit_code"])
    return error
