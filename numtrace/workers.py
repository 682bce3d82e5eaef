"""The parent's end of a worker: starts it, reads its events, and tells how it died when it does."""

from __future__ import annotations

import json
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from numtrace.dumps.files import output_errors
from numtrace.errors import CompileError, ExitCode, NumtraceError, OutputError, RunError, UsageError
from numtrace.interpreter import give_back, take

#: What a signal means to a reader.
_SIGNALS = {
    "SIGILL": "an illegal instruction: the code asks for CPU features that this host lacks",
    "SIGSEGV": "a segmentation fault: memory that is not the program's",
    "SIGFPE": "an arithmetic trap, such as an integer division by zero",
    "SIGABRT": "an abort: an assertion failed",
    "SIGKILL": "killed from outside, most likely for want of memory",
    "SIGBUS": "a bus error: a file that it maps is shorter than it says",
}


class Worker:
    """One job in a child process: a context manager, since leaving must end it and all its children."""

    def __init__(self, job: dict[str, Any], log: Path, python: str | None = None):
        self._log = log
        self._stage, self._timed = "start", False
        self._site = ""
        self._python = python or sys.executable
        self._ended = False
        self._connection, theirs = socket.socketpair()
        with theirs, output_errors(log), log.open("wb") as printed:
            self._interpreter = take(self._python, printed)
            self._interpreter.begin(job["kind"], theirs, printed)
        with suppress(ConnectionError):  # it died at once; events() says how
            # Left open: that its other end goes is how the worker learns that this process is no more.
            self._connection.sendall(json.dumps(job | {"cwd": str(Path.cwd())}).encode() + b"\n")

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
        code = self._interpreter.end()
        self._close()
        if code != 0 or not ended:
            raise RunError(self._death(code), kind="crash" if code < 0 else "exit")

    def result(self, told: Callable[[str], None], silence: float | None = None) -> dict[str, Any]:
        """The event that ends a job without sites, which may be an error; ``told`` is told its stages by name.

        Raises:
            RunError: as :meth:`events`.
        """
        for event in self.events(silence):
            if event["event"] != "stage":
                return event
            told(event["name"])
        raise AssertionError("events() ends with a result, or raises")

    def _lines(self, silence: float | None) -> Iterator[bytes]:
        rest = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self._connection, selectors.EVENT_READ)
            selector.register(self._interpreter, selectors.EVENT_READ)
            heard = time.monotonic()
            while True:
                left = silence - (time.monotonic() - heard) if silence is not None and self._timed else None
                if (left is not None and left <= 0) or not (ready := selector.select(left)):
                    self.stop()
                    raise RunError(
                        f"nothing happened for {silence:.0f} s while it was at: {self._doing()}; it was "
                        "stopped. Give it more time with --run-timeout",
                        kind="time-out",
                    )
                sources = {key.fileobj for key, _ in ready}
                if self._interpreter in sources and not self._interpreter.hear():
                    return
                if self._connection in sources:
                    data = self._received()
                    if not data:
                        return
                    heard = time.monotonic()
                    *lines, rest = (rest + data).split(b"\n")
                    yield from lines

    def _received(self) -> bytes:
        try:
            return self._connection.recv(1 << 20)
        except ConnectionError:  # it ended before it had read all of its job
            return b""

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
        if not self._ended:
            self._interpreter.stop()
            self._close()

    def _close(self) -> None:
        self._ended = True
        self._connection.close()
        give_back(self._python, self._interpreter)


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
