"""What the compiler was at when it crashed: its last words, with the IR printed before every pass."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Sequence
from threading import Timer

_DUMP = re.compile(r"^// -----// IR Dump Before ")
_END = re.compile(r"^(?:Stack dump:|Please report issues|PLEASE submit)")
_STAMP = re.compile(r'"numtrace\.(\d+)"')
#: Ops that only hold others: a pass that crashes in one was at something inside.
_CONTAINER = re.compile(
    r"^\s*(?:\}|module\b|builtin\.module\b|(?:util|func)\.func\b|flow\.executable\b|util\.global\b)"
)
#: In a dump of more source ops than this, any of them may be the one.
_MOST = 3


def stamps_at_crash(command: Sequence[str], timeout: float | None) -> tuple[int, ...]:
    """Numtrace's stamps in the IR that the crashing pass of ``command`` was given; none when there are many.

    Runs the command again, which prints all of its IR; only the last of it is kept.
    """
    process = subprocess.Popen(
        [*command, "--mlir-print-ir-before-all", "--mlir-disable-threading"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    timer = Timer(timeout, process.kill) if timeout else None
    try:
        if timer:
            timer.start()
        assert process.stderr is not None
        return last_stamps(process.stderr)
    finally:
        if timer:
            timer.cancel()
        process.kill()
        process.wait()


def last_stamps(printed: Iterable[str]) -> tuple[int, ...]:
    """The stamps of the ops in the last dump of ``printed``, each once; none when they are many, or it has no end."""
    stamps: dict[int, None] = {}
    ended = False
    for line in printed:
        if _DUMP.match(line):
            stamps, ended = {}, False
        elif _END.match(line):
            ended = True
        elif not ended and not _CONTAINER.match(line):
            stamps.update(dict.fromkeys(int(number) for number in _STAMP.findall(line)))
    return tuple(stamps) if ended and len(stamps) <= _MOST else ()
