"""What a failing ``iree-compile`` printed, as one error: the first message, and its source op."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from numtrace.errors import CompileError, NumtraceError, OutputError, UsageError
from numtrace.passes.renames import unknown_flag

_ERROR = re.compile(r"^(?P<where>.*?): ?error: (?P<message>.*)$", re.MULTILINE)
_STAMP = re.compile(r'"numtrace\.(\d+)"')
_UNKNOWN_CPU = re.compile(r"Unknown CPU .*")
_DISK = re.compile(r"No space left on device|File too large|Disk quota exceeded|Read-only file system")
_CAUSE = re.compile(r"^.*(?:LLVM ERROR: |Assertion |error: ).*$", re.MULTILINE)
_PASS_FRAME = re.compile(r"(\w+Pass)::runOnOperation")
#: The target's attribute in full, hundreds of characters that are in the report's header already.
_ATTRIBUTE = re.compile(r" for backend #hal\.executable\.target<.*", re.DOTALL)
_MOST = 400


def compile_failure(code: int, printed: str, aim: str, target: Path) -> NumtraceError:
    """The exception for exit ``code`` of a compilation to ``aim`` (a phase) that was to write ``target``."""
    if flag := unknown_flag(printed):
        return UsageError(one_line(flag))
    if cpu := _UNKNOWN_CPU.search(printed):
        accepted = printed[cpu.start() :].splitlines()[1:2]
        return UsageError(f"iree-compile does not know the target CPU. {one_line(' '.join(accepted))}")
    disk = _DISK.search(printed)
    if disk or code == -signal.SIGXFSZ:
        why = disk[0] if disk else "the file is larger than is allowed here"
        return OutputError(
            f"iree-compile cannot write {target}: {why}; free space, or give another directory with --out"
        )
    if code < 0:
        name = signal.Signals(-code).name
        return CompileError(
            f"iree-compile crashed with {name} on the way to {aim}{_cause(printed)}",
            kind="compiler-crash",
            stamps=_stamps(printed),
            printed=printed,
        )
    error = _ERROR.search(printed)
    if error is None:
        return CompileError(
            f"iree-compile failed with exit code {code}: {_last_words(printed)}", printed=printed
        )
    message = one_line(_ATTRIBUTE.sub("", _without_location(error["message"])))
    if not error["where"].startswith(("<unknown>", "loc(", "/")):
        message = f"{error['where']}: {message}"  # a tool's name, as the linker's
    return CompileError(message, stamps=_stamps(printed), printed=printed)


def name_ops(error: CompileError, table: Sequence[Mapping[str, Any]]) -> CompileError:
    """``error`` with the source op's name, module and original location in place of numtrace's stamps.

    ``table`` is what ``stamp_module`` returned. Functions and modules are named for want of anything else.
    """
    message = _STAMP.sub(lambda stamp: _named(table, int(stamp[1])), str(error))
    named = CompileError(message, kind=error.kind, stamps=error.stamps, printed=error.printed)
    named.location = shown_op(error.stamps, table)
    return named


def shown_op(stamps: Sequence[int], table: Sequence[Mapping[str, Any]]) -> str | None:
    """The first source op among ``stamps``, with module and original location; None when there is none."""
    ops = [table[stamp] for stamp in stamps if stamp < len(table)]
    inner = [op for op in ops if not op["kind"].endswith((".func", ".module", "module"))] or ops
    return _shown(inner[0]) if inner else None


def _without_location(message: str) -> str:
    """``message`` without the ``loc(…): `` it may begin with; the brackets nest, and names may hold some."""
    if not message.startswith("loc("):
        return message
    depth = 0
    for part in re.finditer(r'"(?:[^"\\]|\\.)*"|[()]', message):
        depth += {"(": 1, ")": -1}.get(part[0], 0)
        if depth == 0:
            return message[part.end() :].removeprefix(": ")
    return message


def one_line(text: str) -> str:
    """``text`` without line breaks, cut where nobody reads on."""
    return " ".join(text.split())[:_MOST]


def _named(table: Sequence[Mapping[str, Any]], stamp: int) -> str:
    return f'"{table[stamp]["name"]}"' if stamp < len(table) else '"(compiler)"'


def _shown(op: Mapping[str, Any]) -> str:
    """``convolution_2 (decoder.conv_in, model.py:12:3)``: what of the three there is."""
    place = "" if '"' in op["location"] else op["location"]
    detail = ", ".join(filter(None, [op["module"], place]))
    return f"{op['name']} ({detail})" if detail else op["name"]


def _stamps(printed: str) -> tuple[int, ...]:
    """The stamps of the first error that has any, innermost first."""
    for line in printed.splitlines():
        if "error: " in line and (found := _STAMP.findall(line)):
            return tuple(dict.fromkeys(int(number) for number in found))
    return ()


def _last_words(printed: str) -> str:
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    return one_line(lines[-1]) if lines else "it printed nothing"


def _cause(printed: str) -> str:
    """What a crash report says of its cause: a message, or else the pass on top of the stack."""
    if said := _CAUSE.search(printed):
        return f": {one_line(said[0])}"
    frame = _PASS_FRAME.search(printed)
    return f", in {frame[1]}" if frame else ""
