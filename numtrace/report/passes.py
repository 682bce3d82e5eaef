"""``numtrace passes``: the registry as a list, with what the installed IREE makes of each."""

from __future__ import annotations

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from numtrace.passes import probe, registry


def print_passes(console: Console, python: str | None = None) -> None:
    found = registry.registered()
    for notice in found.notices:
        console.print(Text(notice, style="yellow"))
    for pass_ in found.passes.values():
        available, detail = probe.available(pass_, python)
        console.print(Text.assemble((pass_.name, "bold"), "  ", pass_.summary))
        state = Text(detail) if available else Text(f"not available: {detail}", style="yellow")
        console.print(Padding(Text.assemble(("touches: ", "dim"), pass_.ops), (0, 0, 0, 4), expand=False))
        console.print(Padding(state, (0, 0, 0, 4), expand=False))
