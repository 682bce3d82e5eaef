"""How the compiler decided to lower a dispatch: pipeline, tile sizes, microkernels; from the files that it dumped."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_OP = re.compile(r'^\s*(?:%\S+(?:, %\S+)* = )?"?(?P<name>[a-z_]+(?:\.[a-z0-9_]+)+)"?')
_UKERNEL = re.compile(r"\bcall\b[^\n]*@(iree_uk_\w+)\(")
_ALIAS = re.compile(r"^(#\w+) = (.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Lowering:
    """``pipeline``: the translation, as IREE spells it (``#iree_cpu.pipeline<DataTiling>``); None: not said.

    ``configurations``: each op that has a lowering configuration, and its text: the tile sizes by level.
    ``ukernels``: the microkernels that the code calls; None where the backend leaves no file that says so.
    """

    pipeline: str | None
    configurations: tuple[tuple[str, str], ...]
    ukernels: tuple[str, ...] | None


def read_lowering(folder: Path, executable: str) -> Lowering | None:
    """What ``--iree-hal-dump-executable-{configurations,intermediates}-to=folder`` says of ``executable``.

    None when its configuration was not dumped there.
    """
    configured = folder / f"configured_module_{executable}.mlir"
    try:
        text = configured.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return Lowering(*_configuration(text), _ukernels(folder))


def _configuration(text: str) -> tuple[str | None, tuple[tuple[str, str], ...]]:
    aliases = dict(_ALIAS.findall(text))
    pipeline: str | None = None
    configurations: list[tuple[str, str]] = []
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        if (translation := _attribute(line, "translation_info", aliases)) is not None:
            pipeline = _inner(translation).removeprefix("pipeline = ")
        if (configuration := _attribute(line, "lowering_config", aliases)) is not None:
            op = _OP.match(line)
            configurations.append((op["name"] if op else "?", _inner(configuration)))
    return pipeline, tuple(configurations)


def _attribute(line: str, name: str, aliases: dict[str, str]) -> str | None:
    """The text of the attribute ``name`` in a line, an alias replaced by what it stands for; None: not there."""
    start = line.find(f"{name} = #")
    if start < 0:
        return None
    start += len(name) + 3
    end, depth = start, 0
    while end < len(line) and (depth or line[end] not in " ,}"):
        depth += {"<": 1, ">": -1}.get(line[end], 0)
        end += 1
    return aliases.get(line[start:end], line[start:end])


def _inner(attribute: str) -> str:
    """``a = 1`` of ``#dialect.kind<a = 1>``; an attribute without brackets as it is."""
    head, bracket, rest = attribute.partition("<")
    return rest.removesuffix(">") if bracket else head


def _ukernels(folder: Path) -> tuple[str, ...] | None:
    files = sorted(folder.glob("*.codegen.ll"))
    if not files:
        return None
    called = [name for file in files for name in _UKERNEL.findall(file.read_text(errors="replace"))]
    return tuple(dict.fromkeys(called))
