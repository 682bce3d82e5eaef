"""How numbers, shapes and names are written on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.cells import cell_len

from numtrace.instrument import dtypes

NOTHING = "-"


def number(value: float | None) -> str:
    """``1.23e-05``; ``0`` for zero, ``-`` for a value that is not there."""
    if value is None:
        return NOTHING
    return f"{value:.2e}" if value else "0"


def ulps(value: float | None, dtype: str) -> str:
    """An error in ulps of ``dtype``, as :func:`number`; ``≥2^24`` of an f32 where it is larger than the value.

    2^p ulps of a value are more than the value itself, and how many more says how near to zero that is, nothing of the
    error: the ulp of 0 is the smallest number of the type, and a 1 in its place is off by 7e44 of them.
    """
    if value is None or value < 2.0 ** (digits := dtypes.precision(dtype)):
        return number(value)
    return f"≥2^{digits}"


def decimal(value: float | None, digits: int) -> str:
    """A fixed number of digits after the point, or ``-``."""
    return NOTHING if value is None else f"{value:.{digits}f}"


def count(value: int | None) -> str:
    return NOTHING if value is None else str(value)


def tensor_type(shape: Sequence[int], dtype: str) -> str:
    """``1x4x16x16xf32``, as in IREE's own tools; ``f32`` for a scalar."""
    return "x".join([*map(str, shape), dtype])


def index(at: Sequence[int] | None) -> str:
    """``0,12,3``; ``()`` for a scalar's only element, ``-`` if there is none."""
    if at is None:
        return NOTHING
    return ",".join(map(str, at)) if at else "()"


def visible(name: str) -> str:
    """``name`` with control and direction characters spelled out: names are data, a terminal obeys."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)


def shorten(name: str, width: int) -> str:
    """``name`` in at most ``width`` cells, cut in the middle: both ends of a module path tell most."""
    if cell_len(name) <= width:
        return name
    if width < 2:
        return "…"[:width]
    tail_width = width // 2
    head_width = width - 1 - tail_width
    head, tail = name, name
    while cell_len(head) > head_width:
        head = head[:-1]
    while cell_len(tail) > tail_width:
        tail = tail[1:]
    return f"{head}…{tail}"


def op_names(root: str, ops: Sequence[str]) -> str:
    """The root first, then what was fused with it: ``convolution_2 + add_1``."""
    return " + ".join([root, *(op for op in ops if op != root)]) if root else " + ".join(ops)


def near(path: Path) -> str:
    """``path`` from here when it lies below, else as it is."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def bound_share(code: str | None, ratio: float | None) -> str:
    """How much of its bound an error is: a number, ``inf`` where it may not be at all, ``none`` without a bound."""
    if code is None:
        return "-"
    if code == "unbounded":
        return "none"
    return "inf" if ratio is None else f"{ratio:.2g}"
