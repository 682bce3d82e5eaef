"""Model, flags and passes of an ``iree-compile`` command line, pasted as it stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PureWindowsPath

from numtrace.errors import UsageError
from numtrace.passes import pipeline, renames, shell

PIPELINE = "--iree-preprocessing-pass-pipeline"
MODELS = (".mlir", ".mlirbc")
NOTHING = "dropped: numtrace keeps its own files (--out)"
STAGES = "dropped: numtrace compiles the source program to the end"
TRACES = "dropped: numtrace traces every dispatch itself"
# flags that say what iree-compile writes, and where; None: dropped without a word
DROPPED: dict[str, str | None] = {
    "-o": None,
    "--output-format": STAGES,
    "--compile-to": STAGES,
    "--compile-from": STAGES,
    "--compile-mode": STAGES,
    "--split-input-file": STAGES,
    "--dump-compilation-phases-to": NOTHING,
    "--iree-opt-export-parameters": NOTHING,
    "--iree-opt-splat-parameters": NOTHING,
    "--iree-scheduling-dump-statistics-file": NOTHING,
    "--iree-scheduling-dump-statistics-format": NOTHING,
    "--iree-flow-trace-dispatch-tensors": TRACES,
    "--iree-flow-trace-dispatch": TRACES,
    "--iree-flow-break-dispatch": TRACES,
    "--mlir-print-debuginfo": None,
}
DROPPED_PREFIXES = {
    "--iree-hal-dump-executable-": NOTHING,
    "--iree-flow-dump-": NOTHING,
    "--mlir-print-": NOTHING,
    "--mlir-elide-": NOTHING,
}


@dataclass(frozen=True)
class CompileCommand:
    """What a command line asks for; the fields from ``inputs`` on come from an iree-run-module beside it.

    ``flags`` are ``--name=value`` or ``--name``; ``pipeline`` holds the elements of the preprocessing
    pipeline in order, each with its options, and with its nesting when that is not ``util.func``.
    ``inputs``, ``params`` and ``expected`` are the values of its flags as iree-run-module takes them.
    """

    model: str | None
    flags: tuple[str, ...]
    pipeline: tuple[str, ...]
    notices: tuple[str, ...]
    inputs: tuple[str, ...] = ()
    params: tuple[str, ...] = ()
    expected: tuple[str, ...] = ()
    function: str | None = None
    device: str | None = None


def parse(text: str, known: Mapping[str, bool] | None = None) -> CompileCommand:
    """The one ``iree-compile`` command of ``text``, and the ``iree-run-module`` of the same text.

    ``known``: the flags of the compiler at hand and whether each takes a value
    (:func:`numtrace.passes.probe.compiler_flags`); without it, the flags of current IREE are assumed.
    Raises UsageError when there is no such command, or more than one, or it names two models;
    PassError when its pipeline cannot be read.
    """
    compiles = shell.commands(text, "iree-compile")
    if len(compiles) != 1:
        given = f"{len(compiles)} iree-compile commands" if compiles else "no iree-compile command"
        raise UsageError(f"found {given} in the text, expected one; give the command to look into by itself")
    command = parse_arguments(compiles[0].words, known)
    runs = shell.commands(text, "iree-run-module")
    if len(runs) > 1:
        notice = f"none of the {len(runs)} iree-run-module commands is used: it is unclear which belongs here"
        return replace(command, notices=(*command.notices, notice))
    return _with_run(command, runs[0].words) if runs else command


def parse_arguments(words: Sequence[str], known: Mapping[str, bool] | None = None) -> CompileCommand:
    """The same for words that a shell has split already, with or without ``iree-compile`` in front."""
    if words and PureWindowsPath(words[0]).stem == "iree-compile":
        words = words[1:]
    given, positional = _flags(words, known)
    if len(positional) > 1:
        raise UsageError(f"the iree-compile command names several models: {', '.join(positional)}")
    flags: list[str] = []
    elements: tuple[str, ...] | None = None
    notices: list[str] = []
    for flag in given:
        name, _, value = flag.partition("=")
        if name == PIPELINE:
            if elements is not None:
                raise UsageError(f"the iree-compile command gives {PIPELINE} twice")
            elements = pipeline.elements(value)
        elif _is_dropped(name):
            if why := _why_dropped(name):
                notices.append(f"{name} was {why}")
        else:
            modern, notice = renames.modern_flag(flag, known)
            flags += modern
            notices += [notice] if notice else []
    passes: list[str] = []
    for element in elements or ():
        modern_text, notice = renames.modern_element(element)
        passes += pipeline.elements(modern_text)
        notices += [notice] if notice else []
    model = _path(positional[0]) if positional else None
    return CompileCommand(model, tuple(flags), tuple(passes), tuple(dict.fromkeys(notices)))


def _flags(words: Sequence[str], known: Mapping[str, bool] | None) -> tuple[list[str], list[str]]:
    """Flags as ``--name[=value]`` (``-o=value`` for the output), and the words that are not flags."""
    flags: list[str] = []
    positional: list[str] = []
    waiting = False  # the last flag may take the next word as its value
    for word in words:
        if word.startswith("-") and word != "-":
            name, equals, value = word.partition("=")
            if not name.startswith("--") and len(name) > 2:
                name = f"-{name}"  # LLVM takes -name and --name alike
            flags.append(f"{name}{equals}{value}")
            waiting = not equals and (known is None or known.get(name, True))
        elif waiting and (flags[-1] == "-o" or not _is_model(word)):
            flags[-1], waiting = f"{flags[-1]}={word}", False
        else:
            positional.append(word)
            waiting = False
    return flags, positional


def _is_model(word: str) -> bool:
    return word == "-" or word.endswith(MODELS)


def _is_dropped(name: str) -> bool:
    return name in DROPPED or any(name.startswith(prefix) for prefix in DROPPED_PREFIXES)


def _why_dropped(name: str) -> str | None:
    if name in DROPPED:
        return DROPPED[name]
    return next(why for prefix, why in DROPPED_PREFIXES.items() if name.startswith(prefix))


def _path(text: str) -> str:
    """A path with ``/`` for Windows' separators, and the home folder for ``~/``."""
    path = text if "/" in text else text.replace("\\", "/")
    return str(Path(path).expanduser()) if path.startswith("~/") else path


def _after(text: str, mark: str) -> str:
    """``text`` with the path behind the first ``mark`` made plain; the whole is one when there is none."""
    head, found, tail = text.partition(mark)
    return f"{head}{found}{_path(tail)}" if found else _path(text)


def _with_run(command: CompileCommand, words: Sequence[str]) -> CompileCommand:
    values: dict[str, list[str]] = {}
    for flag in _flags(words, None)[0]:
        name, _, value = flag.partition("=")
        values.setdefault(name, []).append(value)
    return replace(
        command,
        inputs=tuple(_after(v, "@") if "@" in v else v for v in values.get("--input", ())),
        expected=tuple(_after(v, "@") if "@" in v else v for v in values.get("--expected_output", ())),
        params=tuple(_after(v, "=") for v in values.get("--parameters", ())),
        function=values.get("--function", [None])[-1],
        device=values.get("--device", [None])[-1],
    )
