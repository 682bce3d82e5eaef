"""Passes by name: built-in ones, those of installed plugins, and raw pipeline text.

A plugin declares an entry point of the group ``numtrace.passes`` that loads to a Pass or to several.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points

from numtrace.errors import PassError
from numtrace.passes import pipeline, probe
from numtrace.passes.builtin import PASSES
from numtrace.passes.model import Pass

GROUP = "numtrace.passes"


@dataclass(frozen=True)
class Registry:
    """Every registered pass by name, and a sentence for each plugin that could not be loaded."""

    passes: dict[str, Pass]
    notices: tuple[str, ...] = ()


@lru_cache
def registered() -> Registry:
    """The built-in passes and those of the installed plugins, read once.

    A plugin that fails to load is a notice. Raises PassError for two passes of one name.
    """
    return _collect(sorted(entry_points(group=GROUP), key=lambda point: point.name))


def _collect(points: Iterable[EntryPoint]) -> Registry:
    passes = {p.name: p for p in PASSES}
    owners = dict.fromkeys(passes, "numtrace itself")
    notices = []
    for point in points:
        origin = f"plugin {point.name!r} ({point.value})"
        try:
            found = _load(point)
        except Exception as error:  # a plugin may raise anything; the rest must go on working
            notices.append(f"{origin} was not loaded: {type(error).__name__}: {error}")
            continue
        for p in found:
            if p.name in passes:
                raise PassError(
                    f"two passes are named {p.name!r}: one of {owners[p.name]}, one of {origin}; "
                    "rename one or uninstall its package"
                )
            passes[p.name], owners[p.name] = p, origin
    return Registry(passes, tuple(notices))


def _load(point: EntryPoint) -> tuple[Pass, ...]:
    loaded = point.load()
    found = (loaded,) if isinstance(loaded, Pass) else tuple(loaded)
    for p in found:
        if not isinstance(p, Pass):
            raise TypeError(f"expected a numtrace.passes.model.Pass or a list of them, found {p!r}")
    return found


def get(name_or_text: str, python: str | None = None) -> Pass:
    """The pass of a registered name, or of raw pipeline text.

    Raw is whatever holds a bracket, or a bare pass name that IREE (of the interpreter ``python``) parses.
    Raises PassError, with the nearest names, for anything else.
    """
    text = name_or_text.strip()
    if text in registered().passes:
        return registered().passes[text]
    if "(" in text or "{" in text or _is_pass_name(text, python):
        return _raw(text)
    names = list(registered().passes)
    parts = text.split(",")
    if len(parts) > 1 and all(part.strip() in names for part in parts):
        raise PassError(f"{text!r} is not one pass; give --pass once for each of {', '.join(parts)}")
    inner = [pipeline.short_name(t) for p in registered().passes.values() for t in p.pipelines]
    near = difflib.get_close_matches(text, [*names, *dict.fromkeys(inner)], n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there is {', '.join(names)}"
    raise PassError(f"no pass is named {text!r}, and IREE has none of that name; {hint}")


def get_all(names_or_texts: Iterable[str], python: str | None = None) -> list[Pass]:
    """The passes of a command line, in order; each has a name of its own, identical ones come once.

    Two different raw texts of one short name are told apart by their options.
    """
    return distinct(get(text, python) for text in names_or_texts)


def named(element_text: str) -> Pass:
    """The registered pass that has this pipeline text among its candidates, else the raw one."""
    key = pipeline.canonical(element_text)
    for p in registered().passes.values():
        if key in p.spellings():
            return p
    return _raw(element_text)


def distinct(passes: Iterable[Pass]) -> list[Pass]:
    """The passes without repetition, raw ones of one name told apart by options, then by a number."""
    kept: list[Pass] = []
    seen: set[str] = set()
    for p in passes:
        if not seen & p.spellings():
            kept.append(p)
        seen |= p.spellings()
    names = [p.name for p in kept]
    taken: set[str] = {p.name for p in kept if names.count(p.name) == 1}
    for i, p in enumerate(kept):
        if names.count(p.name) > 1:
            kept[i] = p = _raw(p.pipelines[0], _unused(pipeline.short_name(p.pipelines[0], True), taken))
            taken.add(p.name)
    return kept


def _unused(name: str, taken: set[str]) -> str:
    number = 2
    unused = name
    while unused in taken:
        unused, number = f"{name}#{number}", number + 1
    return unused


def _raw(text: str, name: str | None = None) -> Pass:
    elements = pipeline.parse(text)
    if not elements or not any(True for e in elements for _ in e.leaves()):
        raise PassError(f"the pipeline {text!r} holds no pass")
    name = name or pipeline.short_name(text)
    if name in registered().passes:
        name = pipeline.short_name(text, options=True) + "#raw"
    # a pass without a nesting runs on functions; some exist for the whole module only
    bare = all(e.children is None for e in elements)
    candidates = (text, f"{pipeline.MODULE}({text})") if bare else (text,)
    return Pass(name, "raw pipeline text", "", candidates)


def _is_pass_name(text: str, python: str | None) -> bool:
    if not re.fullmatch(r"[A-Za-z][\w.-]*", text):
        return False
    return None in probe.parse_errors([pipeline.wrap([text]), f"{pipeline.MODULE}({text})"], python)
