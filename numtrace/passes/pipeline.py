"""The structure of a pass pipeline's text: ``builtin.module(util.func(a{x=1},b))``.

Only the text: whether IREE knows the passes is asked in :mod:`numtrace.passes.probe`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from numtrace.errors import PassError

MODULE = "builtin.module"
FUNCTION = "util.func"  # what every function is when preprocessing runs
CLOSING = {"(": ")", "{": "}", "[": "]", "<": ">"}


@dataclass(frozen=True)
class Element:
    """A pass with its options, or an op name with the elements nested on it."""

    name: str
    options: tuple[str, ...] = ()
    children: tuple[Element, ...] | None = None

    def __str__(self) -> str:
        if self.children is not None:
            return f"{self.name}({','.join(map(str, self.children))})"
        return f"{self.name}{{{' '.join(self.options)}}}" if self.options else self.name

    def leaves(self) -> Iterator[Element]:
        """The passes in it, in order."""
        if self.children is None:
            yield self
        for child in self.children or ():
            yield from child.leaves()


def parse(text: str) -> tuple[Element, ...]:
    """The elements of ``text``, which are separated by commas.

    Raises PassError for brackets that do not match, an empty element or text after a closing bracket.
    """
    return _elements(text, text)


def _elements(text: str, whole: str) -> tuple[Element, ...]:
    return tuple(_element(part, whole) for part in _split(text, ",", whole)) if text.strip() else ()


def _element(part: str, whole: str) -> Element:
    part = part.strip()
    at = min((i for i in (part.find("("), part.find("{")) if i >= 0), default=len(part))
    name, rest = part[:at].strip(), part[at:]
    if not name or any(c.isspace() or c in "{}()" for c in name):
        raise PassError(f"not a pass pipeline: {whole!r}: expected a pass name, found {part[:at] or part!r}")
    if not rest:
        return Element(name)
    if not rest.endswith(CLOSING[rest[0]]):
        raise PassError(f"not a pass pipeline: {whole!r}: cannot read what follows the brackets of {name}")
    if rest[0] == "(":
        return Element(name, children=_elements(rest[1:-1], whole))
    return Element(name, options=tuple(_split(rest[1:-1], " ", whole)))


def _split(text: str, separator: str, whole: str) -> list[str]:
    """``text`` cut at the separators outside brackets and quotes; " " stands for any run of spaces."""
    parts, start, open_brackets, quote = [], 0, [], ""
    for i, c in enumerate(text):
        if quote:
            quote = "" if c == quote else quote
        elif c in "\"'":
            quote = c
        elif c in CLOSING:
            open_brackets.append(CLOSING[c])
        elif open_brackets and c == open_brackets[-1]:
            open_brackets.pop()
        elif c in ")}":
            raise PassError(f"not a pass pipeline: {whole!r}: {c!r} without its opening bracket")
        elif not open_brackets and (c.isspace() if separator == " " else c == separator):
            parts.append(text[start:i])
            start = i + 1
    if open_brackets or quote:
        raise PassError(f"not a pass pipeline: {whole!r}: {(open_brackets or [quote])[-1]!r} is missing")
    parts.append(text[start:])
    return [p for p in parts if p] if separator == " " else parts


def module_level(text: str) -> tuple[Element, ...]:
    """The elements that go directly below ``builtin.module``: passes without a nesting run on functions."""
    below: list[Element] = []
    for element in parse(text):
        if element.name == MODULE and element.children is not None:
            below += element.children
        else:
            below.append(element if element.children is not None else Element(FUNCTION, children=(element,)))
    return tuple(below)


def wrap(texts: Iterable[str]) -> str:
    """One complete ``builtin.module(…)`` of several texts in order; ``""`` when there are none.

    Neighbours on functions share one nesting: ``a`` and ``b`` become ``builtin.module(util.func(a,b))``.
    """
    joined: list[Element] = []
    for element in (e for text in texts for e in module_level(text)):
        if joined and element.name == joined[-1].name == FUNCTION:
            joined[-1] = Element(FUNCTION, children=(joined[-1].children or ()) + (element.children or ()))
        else:
            joined.append(element)
    return str(Element(MODULE, children=tuple(joined))) if joined else ""


def elements(text: str) -> tuple[str, ...]:
    """The single passes of a pipeline, in order, each as text that :func:`wrap` puts where it was."""
    found = []
    for element in module_level(text):
        if element.children is None:  # a pass on the module itself
            found.append(str(Element(MODULE, children=(element,))))
        else:
            plain = element.name == FUNCTION
            found += [str(c if plain else Element(element.name, children=(c,))) for c in element.children]
    return tuple(found)


def canonical(text: str) -> str:
    """``text`` complete and with options in alphabetical order, to compare two spellings."""
    return wrap(str(_sorted(element)) for element in parse(text))


def _sorted(element: Element) -> Element:
    if element.children is None:
        return Element(element.name, options=tuple(sorted(element.options)))
    return Element(element.name, children=tuple(map(_sorted, element.children)))


def short_name(text: str, options: bool = False) -> str:
    """The names of the innermost passes, joined by commas; with their options on demand."""
    leaves = [leaf for element in parse(text) for leaf in element.leaves()]
    names = (str(leaf).replace(" ", ",") if options else leaf.name for leaf in leaves)
    return ",".join(names).replace("+", "").replace("/", "-").replace("\\", "-")
