"""Fixtures of the end-to-end tests: the command, and a model for it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # of the modules beside this one

from commands import Result, Run, inside, installed, stop_started
from layers import write_layer


@pytest.fixture(autouse=True)
def nothing_is_left_running() -> Iterator[None]:
    yield
    stop_started()


@pytest.fixture
def numtrace(tmp_path: Path) -> Run:
    """``numtrace ARGUMENTS`` in a folder of the test's own; nothing that it says is ever a traceback.

    With an environment or standard input of its own it is the installed command, else it is called in this process.
    """

    def run(*arguments: object, cwd: Path = tmp_path, **options: Any) -> Result:
        return _without_traceback((installed if options else inside)(*arguments, cwd=cwd, **options))

    return run


@pytest.fixture
def installed_numtrace(tmp_path: Path) -> Run:
    """The same, always as installed."""

    def run(*arguments: object, cwd: Path = tmp_path) -> Result:
        return _without_traceback(installed(*arguments, cwd=cwd))

    return run


def _without_traceback(done: Result) -> Result:
    assert "Traceback" not in done.err, done.err
    assert "Traceback" not in done.out
    return done


@pytest.fixture
def layer(tmp_path: Path) -> list[str]:
    """A linear layer such that every number is known: ``numtrace run *layer``. Each output is 8.515625."""
    return write_layer(tmp_path)
