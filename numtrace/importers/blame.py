"""Errors of other people's code, in a sentence: what it said last, and where in their files."""

from __future__ import annotations

import os
import sys
import sysconfig
import traceback
from pathlib import Path

_LONGEST = 400

#: Code that a user of a framework has not written.
_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")})
#: Code whose lines say nothing about the user's: numtrace's, torch's and the machinery of imports.
_SILENT = (
    str(Path(__file__).parent.parent),
    *(f"{path}{os.sep}torch{os.sep}" for path in _LIBRARIES),
    "<",
)


def last_words(error: BaseException) -> str:
    """The type of an error and the first paragraph of its message, on one line."""
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {error.msg}"
    message = cause(error)
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def cause(error: BaseException) -> str:
    """The first paragraph of an error's message, on one line."""
    text = " ".join(str(error).strip().partition("\n\n")[0].split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def place(error: BaseException) -> str:
    """`` (net.py:12, in forward)``: the innermost line outside of libraries, or in them; empty where none is."""
    if isinstance(error, SyntaxError) and error.filename:
        return f" ({_short(error.filename)}:{error.lineno})"
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(_SILENT)
    ]
    own = [frame for frame in frames if not frame.filename.startswith(_LIBRARIES)]
    if not (own or frames):
        return ""
    frame = (own or frames)[-1]
    return f" ({_short(frame.filename)}:{frame.lineno}, in {frame.name})"


def tell(error: BaseException) -> None:
    """Prints the whole traceback to stderr, which is the worker's log."""
    traceback.print_exception(error, file=sys.stderr)


def _short(file: str) -> str:
    """From the current directory on, where it lies in there."""
    path = Path(file)
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
