"""What the installed IREE knows: which pipelines parse, which compiler flags exist.

Needs the standard library only; IREE is asked in child processes of ``python``, the interpreter that has
it (by default the running one). Answers are cached for the life of the process.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from numtrace.errors import PassError, UsageError
from numtrace.passes import parser, pipeline
from numtrace.passes.model import Pass

SECONDS = 120  # a parse takes a fifth of a second; a cold disk takes longer


def pipeline_text(pass_: Pass, python: str | None = None) -> str:
    """The first candidate that parses, as a complete ``builtin.module(…)``; ``""`` for a flag pass.

    Raises PassError with the parser's message when none does.
    """
    candidates = [pipeline.wrap([text]) for text in pass_.pipelines]
    errors = parse_errors(candidates, python)
    for text, error in zip(candidates, errors, strict=True):
        if error is None:
            return text
    if not candidates:
        return ""
    raise PassError(
        f"pass {pass_.name}: IREE does not parse {pass_.pipelines[0]!r}: {errors[0]}; "
        "`numtrace passes` lists what there is"
    )


def join(passes: Iterable[Pass], python: str | None = None) -> str:
    """One complete ``builtin.module(…)`` of the passes in order; ``""`` when none has a pipeline.

    Raises PassError when one of them, or the whole, does not parse.
    """
    whole = pipeline.wrap(pipeline_text(p, python) for p in passes)
    if whole:
        (error,) = parse_errors([whole], python)
        if error is not None:
            raise PassError(f"IREE does not parse {whole!r}: {error}")
    return whole


def available(pass_: Pass, python: str | None = None) -> tuple[bool, str]:
    """Whether the installed IREE has the pass, with its pipeline or flags, or else the reason."""
    if pass_.flags:
        known = compiler_flags(python)
        missing = [flag for flag in pass_.flags if flag.partition("=")[0] not in known]
        if missing:
            return False, f"iree-compile does not know {' '.join(missing)}"
        return True, " ".join(pass_.flags)
    try:
        return True, pipeline_text(pass_, python)
    except PassError as error:
        return False, str(error)


_known_errors: dict[tuple[str, str], str | None] = {}


def parse_errors(texts: Iterable[str], python: str | None = None) -> list[str | None]:
    """For each complete pipeline the parser's message in one line, or None when it parses.

    A pipeline that crashes the parser has the crash as its message. All are asked in one child.
    Raises UsageError when the interpreter or its IREE is missing.
    """
    texts, python = list(texts), python or sys.executable
    left = [text for text in dict.fromkeys(texts) if (python, text) not in _known_errors]
    while left:
        answers, messages = _ask(left, python)
        for text, answer, message in zip(left, answers, messages, strict=False):
            error = answer["error"]
            _known_errors[python, text] = None if error is None else _one_line(f"{message}\n{error}")
        left = left[len(answers) :]
        if left:  # the child died at the first of those
            _known_errors[python, left.pop(0)] = _one_line(f"{messages[-1]}\nthe parser crashed")
    return [_known_errors[python, text] for text in texts]


@lru_cache
def compiler_path(python: str | None = None) -> str:
    """The ``iree-compile`` of that interpreter's IREE. Raises UsageError when there is none."""
    return _child([], python or sys.executable)[0][0]["compiler"]


@lru_cache
def compiler_flags(python: str | None = None) -> Mapping[str, bool]:
    """Every flag of ``iree-compile``, hidden ones included, and whether it must be given a value."""
    text = subprocess.run(
        [compiler_path(python), "--help-list-hidden"], capture_output=True, text=True, timeout=SECONDS
    ).stdout
    found = re.findall(r"^ +(--?[\w][\w-]*)(=<|=\[| <)?", text, re.MULTILINE)
    return MappingProxyType({flag: bool(value) for flag, value in found})


def _ask(texts: list[str], python: str) -> tuple[list[dict], list[str]]:
    """The answers about ``texts``, fewer when the child died, and what it wrote to stderr for each."""
    lines, stderr = _child(texts, python)
    return lines[1:], stderr.split(parser.SEPARATOR)


def _child(texts: list[str], python: str) -> tuple[list[dict], str]:
    command = [python, str(Path(parser.__file__))]
    try:
        done = subprocess.run(
            command, input=json.dumps(texts), capture_output=True, text=True, timeout=SECONDS
        )
    except OSError as error:
        raise UsageError(f"cannot start the Python interpreter {python}: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise UsageError(f"{python}: IREE's pipeline parser gave no answer in {SECONDS} s") from error
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    if not lines or "missing" in lines[0]:
        why = lines[0]["missing"] if lines else _one_line(done.stderr) or f"exit code {done.returncode}"
        raise UsageError(f"{python} has no working iree.compiler ({why}); install iree-base-compiler there")
    return lines, done.stderr


def _one_line(message: str) -> str:
    """The parser's message without its source line, caret, position and outer "failed to add" lines."""
    kept: list[str] = []
    for line in message.splitlines():
        line = re.sub(r"^(MLIR Textual PassPipeline Parser:[\d:]+ )?((error)?: )?", "", line).strip()
        if kept and line.startswith("^"):
            kept.pop()  # the source line above the caret
        elif line and not line.startswith("failed to add"):
            kept.append(line)
    return "; ".join(dict.fromkeys(kept))
