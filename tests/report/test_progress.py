import io

import pytest
from rich.console import Console

from numtrace.report.progress import Progress, duration


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


def plain(clock):
    stream = io.StringIO()
    return stream, Progress(Console(file=stream, width=200), clock)


def test_plain_lines_are_throttled(clock):
    stream, progress = plain(clock)
    with progress:
        progress.variant("baseline", 1, 2)
        progress.stage("compile")
        progress.stage("evaluate")
        for i in range(1, 41):  # 1 s each: a line at 10, 20, 30, 40
            clock.now += 1
            progress.site(i, 40)
    assert stream.getvalue().splitlines() == [
        "variant 1 of 2 · baseline",
        "variant 1 of 2 · baseline · compile",
        "variant 1 of 2 · baseline · evaluate",
        # 10 done, one second each: 30 s for the rest of this one, 40 s for the other variant.
        "variant 1 of 2 · baseline · evaluate · dispatch 10 of 40 · 1 min 10 s left",
        "variant 1 of 2 · baseline · evaluate · dispatch 20 of 40 · 1 min 00 s left",
        "variant 1 of 2 · baseline · evaluate · dispatch 30 of 40 · 50 s left",
        "variant 1 of 2 · baseline · evaluate · dispatch 40 of 40 · 40 s left",
    ]


def test_time_left_of_later_variants_is_known_from_the_first(clock):
    _, progress = plain(clock)
    with progress:
        progress.variant("baseline", 1, 3)
        assert progress.seconds_left() is None
        clock.now += 60
        progress.variant("winograd", 2, 3)
        clock.now += 15
        assert progress.seconds_left() == 45 + 60
        clock.now += 100  # longer than the first one took: no negative time
        assert progress.seconds_left() == 60


def test_rate_counts_from_the_first_report(clock):
    _, progress = plain(clock)
    progress.variant("baseline", 1, 1)
    progress.site(5, 25)
    assert progress.seconds_left() is None
    clock.now += 10
    progress.site(10, 25)  # 5 in 10 s
    assert progress.seconds_left() == 30


def test_a_terminal_gets_one_live_line_that_disappears(clock):
    stream = io.StringIO()
    console = Console(file=stream, width=60, force_terminal=True, color_system=None, legacy_windows=False)
    with Progress(console, clock) as progress:
        progress.variant("a-very-long-name-" * 5, 1, 1)
        progress.stage("evaluate")
        progress.site(3, 9)
        line = progress._line().plain
        progress.notice("flag [x] dropped")
    assert len(line) <= 60 and line.endswith("dispatch 3 of 9") and "…" in line
    assert "note: flag [x] dropped" in stream.getvalue()
    assert stream.getvalue().endswith("\x1b[2K")  # the line is erased at the end


def test_nothing_on_stdout(clock, capsys):
    with Progress(clock=clock) as progress:
        progress.variant("v\x1b[2J", 1, 1)
        progress.notice("hello")
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == ["variant 1 of 1 · v\\x1b[2J", "note: hello"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (59.4, "59 s"), (59.6, "1 min 00 s"), (185, "3 min 05 s"), (7620, "2 h 07 min")],
)
def test_duration(seconds, text):
    assert duration(seconds) == text
