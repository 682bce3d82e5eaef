"""A report on a terminal, from the document alone."""

from __future__ import annotations

import difflib
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TextIO

import msgspec
from rich.console import Console
from rich.text import Text

from numtrace.dumps.code import read_code
from numtrace.dumps.schema import Report, Site, Variant
from numtrace.errors import UsageError
from numtrace.report.code_view import code_view
from numtrace.report.dispatches import variant_details
from numtrace.report.header import header, notices
from numtrace.report.site_view import site_view
from numtrace.report.variants import closing, variants_table

#: Columns when the output is no terminal: a log or a pager has room, and names stay whole.
PIPED_WIDTH = 160
NARROWEST = 80
TOP = 8


def make_console(stream: TextIO, width: int | None = None) -> Console:
    """A console on ``stream``: a terminal's own width, a wide one when piped."""
    if isinstance(stream, io.TextIOWrapper):
        # A name that the stream cannot spell must not end the run.
        stream.reconfigure(errors="backslashreplace")
    if width is None and not stream.isatty():
        width = PIPED_WIDTH
    return Console(file=stream, width=width, highlight=False, markup=False, emoji=False)


def report_lines(report: Report, width: int, *, top: int = TOP, variant: str | None = None) -> list[Text]:
    """Header, table of variants, notices, then the details of each variant (or of the one named).

    Raises ``UsageError`` if there is no such variant.
    """
    chosen = [find_variant(report, variant)] if variant is not None else report.variants
    lines = [*header(report, width), Text(), *variants_table(report, chosen, width)]
    said = notices(report, width)
    lines += [Text(), *said] if said else []
    for one in chosen:
        # A variant that is the same as another has nothing of its own to show.
        if one.sites or one.error or not one.same_as:
            lines += variant_details(report, one, width, top)
    if len(chosen) > 1:
        lines += [Text(), *closing(chosen, width)]
    return lines


def site_lines(report: Report, variant: str, site: str, width: int, run: Path | None = None) -> list[Text]:
    """The view of one site; ``site`` is its id, or the name of an op or dispatch that has one site.

    ``run``: the run directory, for the code of its dispatch. Raises ``UsageError`` if there is no such variant or
    site, or several.
    """
    one = find_variant(report, variant)
    found = find_site(one, site)
    code = None if run is None else read_code(run, one, found)
    lines = site_view(one, found, width)
    return lines if code is None else [*lines, *code_view(code, width)]


def print_report(report: Report, console: Console, *, top: int = TOP, variant: str | None = None) -> None:
    """Print what ``report_lines`` gives."""
    show_lines(report_lines(report, width_of(console), top=top, variant=variant), console)


def print_site(report: Report, console: Console, variant: str, site: str, run: Path | None = None) -> None:
    """Print what ``site_lines`` gives."""
    show_lines(site_lines(report, variant, site, width_of(console), run), console)


def find_variant(report: Report, name: str) -> Variant:
    """The variant of that name. Raises ``UsageError`` that lists what there is."""
    for variant in report.variants:
        if variant.name == name:
            return variant
    there = ", ".join(variant.name for variant in report.variants) or "none"
    raise UsageError(f"no variant {name!r} in this run; there are: {there}")


def part_of(report: Report, variant: str, site: str) -> Report:
    """The document with only that variant, of which only that site; "" is all, and the last variant for a site.

    Raises ``UsageError`` if there is no such variant or site.
    """
    if not variant and not site:
        return report
    one = find_variant(report, variant or report.variants[-1].name)
    if site:
        one = msgspec.structs.replace(one, sites=[find_site(one, site)])
    return msgspec.structs.replace(report, variants=[one])


def find_site(variant: Variant, name: str) -> Site:
    """The site with that id, the worst of a finding at that op, or the only one of that op or dispatch.

    Raises ``UsageError``.
    """
    accused = [
        f.sites[0] for f in variant.findings if f.op == name and f.sites and f.certainty != "explained"
    ]
    for site in variant.sites:
        if site.id == (accused[0] if accused else name):
            return site
    found = [site for site in variant.sites if name in (site.op, site.dispatch, *site.ops)]
    if len(found) == 1:
        return found[0]
    if found:
        ids = _some([site.id for site in found])
        raise UsageError(f"{name!r} has {len(found)} sites in variant {variant.name}: give one of {ids}")
    known = [name for site in variant.sites for name in (site.id, site.op)]
    near = difflib.get_close_matches(name, dict.fromkeys(known), n=5, cutoff=0.5)
    hint = f"; near it: {_some(near)}" if near else ""
    raise UsageError(f"no site {name!r} among the {len(variant.sites)} of variant {variant.name}{hint}")


def _some(names: Sequence[str], limit: int = 8) -> str:
    return ", ".join(names[:limit]) + (", …" if len(names) > limit else "")


def width_of(console: Console) -> int:
    """The columns that lines are laid out for."""
    return max(console.width, NARROWEST)


def show_lines(lines: Iterable[Text], console: Console) -> None:
    """Print lines of a width that is theirs already."""
    for line in lines:
        # Lines are laid out already: rich must not wrap or cut them again.
        console.print(line, no_wrap=True, overflow="ignore", crop=False, highlight=False)
