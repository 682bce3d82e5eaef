"""The passes that the installed IREE has, with their options: read from what its ``iree-opt --help`` lists."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import product
from pathlib import Path

from numtrace.errors import PassError, UsageError
from numtrace.passes import pipeline, probe

#: Passes on whole programs before there are dispatches: what a preprocessing pipeline is made of.
PREPROCESSING = ("iree-preprocessing-*", "iree-global-opt-*", "iree-linalg-ext-*")
#: What a number among the options is tried with: it divides some of the corpus' sizes and not others.
NUMBER = "4"
_PASS = re.compile(r"^ {6}--(?P<name>[\w-]+?) *- +(?P<summary>\S.*)$")
_OPTION = re.compile(r"^ {8}--(?P<name>[\w-]+)(?:=<(?P<value>[^>]*)>)? +- (?P<summary>.*)$")
_CHOICE = re.compile(r"^ {4,}=(?P<value>\S+) +- ")


@dataclass(frozen=True, slots=True)
class Option:
    """``kind``: ``flag``, or what ``iree-opt`` says of the value (``int``, ``string``); ``choices`` of a value."""

    name: str
    kind: str
    choices: tuple[str, ...] = ()

    @property
    def values(self) -> tuple[str, ...]:
        """What it is tried with; none for a text, which nobody can guess."""
        if self.choices:
            return self.choices
        if self.kind == "flag":
            return ("true", "false")
        return (NUMBER,) if self.kind in ("int", "uint", "long", "ulong") else ()


@dataclass(frozen=True, slots=True)
class Listed:
    """A pass that ``iree-opt`` lists."""

    name: str
    summary: str
    options: tuple[Option, ...]

    def spellings(self) -> Iterator[str]:
        """The pass without options, and with what can be tried of them.

        Options with choices go with one another, every combination, as a type and the ops that it is for;
        the others alone.
        """
        yield self.name
        choosing = [option for option in self.options if option.choices]
        for values in product(*([(), *option.choices] for option in choosing)):
            given = [f"{o.name}={v}" for o, v in zip(choosing, values, strict=True) if v]
            if given:
                yield f"{self.name}{{{' '.join(given)}}}"
        for option in self.options:
            if not option.choices:
                yield from (f"{self.name}{{{option.name}={value}}}" for value in option.values)


def read(text: str) -> list[Listed]:
    """The passes in the help text of ``iree-opt``, by name; those for tests of IREE itself are left out."""
    found: dict[str, Listed] = {}
    name, summary, options = "", "", []  # type: ignore[var-annotated]

    def end() -> None:
        if name and "test" not in name.split("-"):
            found[name] = Listed(name, summary, tuple(options))

    for line in text.splitlines():
        if match := _PASS.match(line):
            end()
            name, summary, options = match["name"], match["summary"].strip(), []
        elif name and (match := _OPTION.match(line)):
            if not match["name"].startswith("test-"):
                options.append(Option(match["name"], match["value"] or "flag"))
        elif options and (match := _CHOICE.match(line)):
            last = options[-1]
            options[-1] = Option(last.name, last.kind, (*last.choices, match["value"]))
        elif line and not line.startswith("      "):
            end()
            name = ""
    end()
    return [found[name] for name in sorted(found)]


@lru_cache
def listed(python: str | None = None) -> list[Listed]:
    """The passes of that interpreter's IREE. Raises UsageError when there is no ``iree-opt`` beside its compiler."""
    tool = Path(probe.compiler_path(python)).with_name("iree-opt")
    try:
        done = subprocess.run([tool, "--help"], capture_output=True, text=True, timeout=probe.SECONDS)
    except OSError as error:
        raise UsageError(
            f"cannot ask {tool} which passes there are: {error.strerror}; iree-base-compiler brings it"
        ) from None
    return read(done.stdout)


def chosen(patterns: Sequence[str], python: str | None = None) -> list[Listed]:
    """The listed passes whose names match one of ``patterns``, as a shell matches file names.

    Raises:
        PassError: a pattern matches none.
    """
    passes = listed(python)
    for pattern in patterns:
        if not any(fnmatchcase(one.name, pattern) for one in passes):
            raise PassError(f"iree-opt lists no pass {pattern}; `iree-opt --help` shows all there are")
    return [one for one in passes if any(fnmatchcase(one.name, pattern) for pattern in patterns)]


def runnable(texts: Sequence[str], python: str | None = None) -> tuple[dict[str, str], dict[str, str]]:
    """For each pipeline text that IREE parses the whole of it, on functions if it can; for the others, why not."""
    on_functions = [pipeline.wrap([text]) for text in texts]
    first = probe.parse_errors(on_functions, python)
    left = [text for text, error in zip(texts, first, strict=True) if error is not None]
    on_module = {text: pipeline.wrap([f"{pipeline.MODULE}({text})"]) for text in left}
    second = dict(zip(left, probe.parse_errors(on_module.values(), python), strict=True))
    whole: dict[str, str] = {}
    refused: dict[str, str] = {}
    for text, complete, error in zip(texts, on_functions, first, strict=True):
        if error is None:
            whole[text] = complete
        elif second[text] is None:
            whole[text] = on_module[text]
        else:
            refused[text] = second[text] or error
    return whole, refused


def decomposing(python: str | None = None) -> str:
    """A pipeline of the passes that take IREE's own ops apart into those that every backend has code for.

    Into loops where there is a choice: unrolled, some take twenty times as long to compile.
    """
    found = [
        one.name + ("{unroll=false}" if any(option.name == "unroll" for option in one.options) else "")
        for one in listed(python)
        if one.name.startswith("iree-linalg-ext-decompose-")
    ]
    whole, _ = runnable(found, python)
    return pipeline.wrap(text for text in whole.values())
