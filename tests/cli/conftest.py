"""Fixtures of the end-to-end tests: the command, and a model for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # of the modules beside this one

from installed import COMMAND, Result, Run
from layers import write_layer


@pytest.fixture
def numtrace(tmp_path: Path) -> Run:
    """``numtrace ARGUMENTS`` in a folder of the test's own; nothing that it says is ever a traceback."""

    def run(
        *arguments: object, cwd: Path = tmp_path, stdin: str = "", environment: dict[str, str] | None = None
    ) -> Result:
        done = subprocess.run(
            [str(COMMAND), *map(str, arguments)],
            cwd=cwd,
            env=os.environ | {"COLUMNS": "200"} | (environment or {}),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert "Traceback" not in done.stderr, done.stderr
        assert "Traceback" not in done.stdout
        return Result(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def layer(tmp_path: Path) -> list[str]:
    """A linear layer such that every number is known: ``numtrace run *layer``. Each output is 8.515625."""
    return write_layer(tmp_path)
