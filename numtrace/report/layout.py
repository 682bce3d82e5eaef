"""Columns and labelled lines of a known width, as ``Text`` (never markup: names may hold brackets).

rich's own tables wrap headers and cut names to make room; here only columns that say so give way, and a
line may stand between two rows.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.cells import cell_len
from rich.text import Text

from numtrace.report.figures import shorten, visible

LABEL_WIDTH = 11
#: Cells that a shortened name keeps if it can, and those that it always keeps.
_READABLE, _SMALLEST = 24, 6


@dataclass
class Column:
    """One column; ``shrinks``: its cells may be shortened in the middle to fit."""

    title: str
    right: bool = False
    shrinks: bool = False
    cells: list[str] = field(default_factory=list)
    styles: list[str] = field(default_factory=list)

    def add(self, cell: str, style: str = "") -> None:
        self.cells.append(visible(cell))
        self.styles.append(style)

    @property
    def width(self) -> int:
        return max([cell_len(self.title), *map(cell_len, self.cells)])


def table_width(columns: Sequence[Column], gap: int = 2) -> int:
    """Cells that the columns need when nothing is shortened."""
    return sum(column.width for column in columns) + gap * (len(columns) - 1)


def table(columns: Sequence[Column], width: int, indent: int = 0) -> tuple[Text, list[Text]]:
    """The header and one line per row, each at most ``width`` cells if the shrinking columns allow."""
    gap, widths = _fit(columns, width - indent)
    header = _row([c.title for c in columns], ["bold"] * len(columns), columns, widths, gap, indent)
    rows = [
        _row([c.cells[i] for c in columns], [c.styles[i] for c in columns], columns, widths, gap, indent)
        for i in range(len(columns[0].cells))
    ]
    return header, rows


def _fit(columns: Sequence[Column], room: int) -> tuple[int, list[int]]:
    """Gap and widths: names give way first, then the gap, then what is left of the names."""
    widths = [column.width for column in columns]
    for gap, smallest in ((2, _READABLE), (1, _READABLE), (1, _SMALLEST)):
        widths = [column.width for column in columns]
        excess = sum(widths) + gap * (len(columns) - 1) - room
        while excess > 0:
            shrinking = [i for i, c in enumerate(columns) if c.shrinks and widths[i] > smallest]
            if not shrinking:
                break
            widths[max(shrinking, key=lambda i: widths[i])] -= 1
            excess -= 1
        if excess <= 0:
            return gap, widths
    return 1, widths


def _row(
    cells: Sequence[str],
    styles: Sequence[str],
    columns: Sequence[Column],
    widths: Sequence[int],
    gap: int,
    indent: int,
) -> Text:
    line = Text(" " * indent)
    for i, (cell, style, column, width) in enumerate(zip(cells, styles, columns, widths, strict=True)):
        shown = shorten(cell, width) if column.shrinks else cell
        padding = " " * (width - cell_len(shown))
        line.append((" " * gap if i else "") + (padding if column.right else ""))
        line.append(shown, style=style or None)
        line.append("" if column.right else padding)
    line.rstrip()
    return line


def paragraph(text: str, width: int, indent: int = 0, style: str = "") -> list[Text]:
    """Wrapped text; its own line breaks are kept. Words longer than a line are broken, not lost."""
    lines: list[Text] = []
    for part in text.splitlines():
        wrapped = textwrap.wrap(visible(part), max(width - indent, 20), break_on_hyphens=False)
        lines += [Text(" " * indent).append(line, style=style or None) for line in wrapped]
    return lines


def labelled(label: str, text: str, width: int, style: str = "") -> list[Text]:
    """``label      text``, wrapped under itself; nothing for an empty text."""
    lines = paragraph(text, width, indent=2 + LABEL_WIDTH, style=style)
    if lines:
        first = Text("  ").append(label.ljust(LABEL_WIDTH), style="dim")
        lines[0] = first + lines[0][2 + LABEL_WIDTH :]
    return lines


def heading(text: str, width: int, style: str = "bold") -> Text:
    """``── text ─────`` over the whole width."""
    shown = shorten(visible(text), width - 6)
    line = Text("── ").append(shown, style=style).append(" ")
    return line.append("─" * max(width - cell_len(line.plain), 0))
