"""What a run directory says of a dispatch's code: its executable, who shares it, its IR, how it was lowered.

All of it is read from text: the IR of ``flow.mlir``, and what the compiler dumped of the dispatch alone, when
``numtrace rerun`` or ``numtrace show --codegen`` has had it compiled.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from numtrace.dumps.names import file_name
from numtrace.dumps.schema import Site, Variant
from numtrace.instrument.lowering import Lowering, read_lowering

_STAMP = re.compile(r'"numtrace\.(\d+)"')
_PART = re.compile(r'"(?:[^"\\]|\\.)*"|[()]')


@dataclass(frozen=True, slots=True)
class Code:
    """``shared``: the other dispatches of the variant that run it. ``body``: the lines of its function in the IR.

    ``lowering`` is None until the dispatch was compiled alone; ``dumped`` is where the compiler's files are then.
    """

    executable: str
    entry: str
    shared: tuple[str, ...]
    body: tuple[str, ...]
    lowering: Lowering | None
    dumped: Path | None


def dispatch_id(site: Site) -> str:
    """The id of the dispatch that made a site: the site's without the result (``main/12`` of ``main/12.0``)."""
    return site.id.rpartition(".")[0]


def alone_folder(folder: Path, site: Site) -> Path:
    """Where, in the folder of its variant, the dispatch of ``site`` is kept alone."""
    return folder / "alone" / file_name(dispatch_id(site).replace("/", "-"))


def read_code(run: Path, variant: Variant, site: Site, dumped: Path | None = None) -> Code | None:
    """The code of the dispatch that made ``site``; None when the run left no IR of it.

    ``dumped``: where the compiler's files of it are; None: those of the variant's own flags, in the run directory.
    """
    if variant.directory is None:
        return None
    folder = run / variant.directory
    try:
        with (folder / "flow.mlir").open(encoding="utf-8", errors="replace") as lines:
            executable, text = _executable(lines, site.dispatch)
    except OSError:
        return None
    shared = tuple(
        dict.fromkeys(
            dispatch_id(other)
            for other in variant.sites
            if other.dispatch == site.dispatch and dispatch_id(other) != dispatch_id(site)
        )
    )
    # A shared body has the locations of the first dispatch that it was made for.
    names = {} if shared else _names(run / "model" / "ops.json")
    dumped = dumped or alone_folder(folder, site) / "own" / "code"
    lowering = read_lowering(dumped, executable)
    return Code(
        executable=executable,
        entry=site.dispatch,
        shared=shared,
        body=tuple(_body(text, site.dispatch, names)),
        lowering=lowering,
        dumped=dumped if lowering is not None else None,
    )


def _executable(lines: Iterable[str], entry: str) -> tuple[str, list[str]]:
    """The symbol and the lines of the executable whose function is ``entry``; it ends where it is closed."""
    head = re.compile(r'^  flow\.executable \w+ @(?P<name>"[^"]*"|[^\s{]+)')
    export = re.compile(rf'flow\.executable\.export \w+ @"?{re.escape(entry)}"?[\s(]')
    symbol, wanted = "", False
    text: list[str] = []
    for line in lines:
        if found := head.match(line):
            symbol, text, wanted = found["name"].strip('"'), [], False
        text.append(line)
        wanted = wanted or bool(export.search(line))
        if wanted and line.startswith("  }"):
            return symbol, text
    return "", []


def _body(text: list[str], entry: str, names: dict[int, str]) -> Iterator[str]:
    """The function ``entry`` without its locations, each op with the source op that it is part of where known."""
    head = re.compile(rf'^(\s*)func\.func (?:\w+ )?@"?{re.escape(entry)}"?\(')
    indent: str | None = None
    last = ""
    for line in text:
        if indent is None:
            found = head.match(line)
            if found is None:
                continue
            indent = found[1]
        plain, location = without_locations(line.rstrip())
        known = [names[int(stamp)] for stamp in _STAMP.findall(location) if int(stamp) in names]
        name = " + ".join(dict.fromkeys(known))
        shown = plain.removeprefix(indent)
        yield f"{shown}  // {name}" if name and name != last and " = " in plain else shown
        last = name if name and " = " in plain else last
        if plain.startswith(f"{indent}}}"):
            return


def without_locations(line: str) -> tuple[str, str]:
    """A line of IR without its ``loc(…)``, and the text of the last of them, which is that of the op."""
    kept, at, location = [], 0, ""
    while (start := line.find(" loc(", at)) >= 0:
        depth, end = 0, len(line)
        for part in _PART.finditer(line, start + 4):
            depth += {"(": 1, ")": -1}.get(part[0], 0)
            if depth == 0:
                end = part.end()
                break
        kept.append(line[at:start])
        location, at = line[start:end], end
    return "".join([*kept, line[at:]]), location


def _names(table: Path) -> dict[int, str]:
    try:
        ops = json.loads(table.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {op["number"]: op["name"] for op in ops}
