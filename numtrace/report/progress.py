"""Live progress on standard error: which variant, what is being done, which dispatch, how long still."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.text import Text

from numtrace.report.figures import shorten, visible

#: Seconds between two lines about dispatches when standard error is no terminal.
PLAIN_INTERVAL = 10.0


class Progress:
    """A line that is rewritten on a terminal, and plain lines, not too many, anywhere else.

    Nothing goes to standard output. Use as a context manager; on leaving, the live line disappears.
    """

    def __init__(self, console: Console | None = None, clock: Callable[[], float] = time.monotonic):
        self._console = console or Console(file=sys.stderr, highlight=False, markup=False, emoji=False)
        self._clock = clock
        self._name, self._stage = "", ""
        self._variant, self._variants = 0, 0
        self._first_site, self._site, self._sites = 0, 0, 0
        self._started = self._variant_started = self._sites_started = clock()
        self._said = float("-inf")
        # Last: Live asks for its line at once.
        live = self._console.is_terminal and not self._console.is_dumb_terminal
        self._live = (
            Live(
                get_renderable=self._line,
                console=self._console,
                refresh_per_second=4,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            if live
            else None
        )

    def __enter__(self) -> Progress:
        self._started = self._clock()
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._live:
            self._live.stop()

    def variant(self, name: str, i: int, n: int) -> None:
        """Variant ``i`` of ``n`` (from 1) begins."""
        self._name, self._variant, self._variants = visible(name), i, n
        self._variant_started = self._clock()
        self._stage, self._site, self._sites = "", 0, 0
        self._say_plain()

    def stage(self, name: str) -> None:
        """The variant enters a stage: compile, run, evaluate."""
        self._stage, self._site, self._sites = visible(name), 0, 0
        self._say_plain()

    def site(self, i: int, n: int) -> None:
        """Dispatch ``i`` of ``n`` (from 1) is done."""
        if not self._site:
            # The time of the first is not counted: it includes waiting for the program to start.
            self._first_site, self._sites_started = i, self._clock()
        self._site, self._sites = i, n
        if self._clock() - self._said >= PLAIN_INTERVAL:
            self._say_plain()

    def notice(self, text: str) -> None:
        """A line that stays on the screen."""
        self._console.print(Text(f"note: {visible(text)}", style="yellow"), soft_wrap=True)

    def seconds_left(self) -> float | None:
        """From the dispatches done of this variant, and the length of a variant for those to come.

        ``None`` while nothing is known: before the second dispatch of the first variant.
        """
        now = self._clock()
        this = None
        if self._site > self._first_site:
            each = (now - self._sites_started) / (self._site - self._first_site)
            this = each * (self._sites - self._site)
        if self._variant > 1:
            length = (self._variant_started - self._started) / (self._variant - 1)
            if this is None:
                this = max(length - (now - self._variant_started), 0.0)
        elif this is not None:
            length = now - self._variant_started + this
        else:
            return None
        return this + length * (self._variants - self._variant)

    def _parts(self) -> list[str]:
        parts = []
        if self._variants:
            parts.append(f"variant {self._variant} of {self._variants}")
            parts.append(self._name)
        if self._stage:
            parts.append(self._stage)
        if self._sites:
            parts.append(f"dispatch {self._site} of {self._sites}")
        left = self.seconds_left()
        if left is not None:
            parts.append(f"{duration(left)} left")
        return parts

    def _line(self) -> Text:
        parts = self._parts()
        excess = len(" · ".join(parts)) - self._console.width
        if excess > 0 and self._variants:
            # Only the name may be long; it gives way, so that the line never wraps.
            parts[1] = shorten(parts[1], max(len(parts[1]) - excess, 8))
        return Text(" · ".join(parts), no_wrap=True, overflow="ellipsis")

    def _say_plain(self) -> None:
        if not self._live:
            self._said = self._clock()
            self._console.print(Text(" · ".join(self._parts())), soft_wrap=True)


def duration(seconds: float) -> str:
    """``42 s``, ``3 min 05 s``, ``2 h 07 min``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"
