"""The command line: as it is installed, or in this process, where one warm worker serves the tests one after another.

Both parse the same arguments, go through the same ``main`` and start the same jobs; the one in this process saves the
seconds in which a command and its worker load what they need.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from numtrace.cli import main

COMMAND = Path(sysconfig.get_path("scripts"), "numtrace")

#: What the command finds in its environment: tables of one width.
_ENVIRONMENT = {"COLUMNS": "200"}

#: Longer than any of them takes, in seconds.
_LIMIT = 540


@dataclass(frozen=True)
class Result:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str

    @property
    def said(self) -> str:
        """The sentence of an error."""
        return "".join(line for line in self.err.splitlines(True) if line.startswith("numtrace: "))

    @property
    def document(self) -> dict[str, Any]:
        return json.loads(self.out)


Run = Callable[..., Result]


def installed(
    *arguments: object, cwd: Path, stdin: str = "", environment: dict[str, str] | None = None
) -> Result:
    """``numtrace ARGUMENTS`` in ``cwd``, as a user runs it."""
    done = subprocess.run(
        [str(COMMAND), *map(str, arguments)],
        cwd=cwd,
        env=os.environ | _ENVIRONMENT | (environment or {}),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=_LIMIT,
    )
    return Result(done.returncode, done.stdout, done.stderr)


def inside(*arguments: object, cwd: Path) -> Result:
    """``numtrace ARGUMENTS`` in ``cwd``, called in this process."""
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2)]
    with (
        contextlib.chdir(cwd),
        contextlib.redirect_stdout(streams[0]),
        contextlib.redirect_stderr(streams[1]),
        mock.patch.dict(os.environ, _ENVIRONMENT),
        mock.patch.object(sys, "argv", [str(COMMAND), *map(str, arguments)]),
        _limited(_LIMIT),
    ):
        try:
            main()
        except SystemExit as end:
            code = end.code
    out, err = (stream.buffer.getvalue().decode() for stream in streams)  # type: ignore[attr-defined]
    assert isinstance(code, int)
    return Result(code, out, err)


@contextlib.contextmanager
def _limited(seconds: int) -> Iterator[None]:
    def give_up(*_: object) -> None:
        raise TimeoutError(f"the command ran longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def start(*arguments: object, cwd: Path, environment: dict[str, str] | None = None) -> subprocess.Popen[str]:
    """``numtrace ARGUMENTS`` in ``cwd``, as installed, not waited for; see ``stop_started``."""
    process = subprocess.Popen(
        [str(COMMAND), *map(str, arguments)],
        cwd=cwd,
        env=os.environ | _ENVIRONMENT | (environment or {}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    _STARTED.append(process)
    return process


#: What :func:`start` started.
_STARTED: list[subprocess.Popen[str]] = []


def stop_started() -> None:
    """Ends what a test left running: a program in an endless loop takes all memory. Its children go along."""
    while _STARTED:
        process = _STARTED.pop()
        if process.poll() is None:
            process.kill()
            process.communicate()


def variants(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {variant["name"]: variant for variant in document["variants"]}
