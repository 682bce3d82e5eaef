"""The help of every command, by its short name too."""

from __future__ import annotations

import pytest

COMMANDS = ["run", "bisect", "show", "accept", "rerun", "import", "passes", "doctor"]


@pytest.mark.parametrize("command", [(), *((name,) for name in COMMANDS)], ids=["numtrace", *COMMANDS])
def test_short_and_long_are_the_same(numtrace, command):
    short, long = numtrace(*command, "-h"), numtrace(*command, "--help")
    assert (short.code, short.out, short.err) == (long.code, long.out, long.err)
    assert short.code == 0
    assert " ".join(["numtrace", *command, "[OPTIONS]"]) in short.out.splitlines()[0]


def test_no_command_is_left_out(numtrace):
    _, _, listed = numtrace("-h").out.partition("Commands:\n")
    assert [line.split()[0] for line in listed.splitlines()] == COMMANDS
