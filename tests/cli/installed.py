"""The installed command, run as a user runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COMMAND = Path(sysconfig.get_path("scripts"), "numtrace")


@dataclass(frozen=True)
class Result:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str

    @property
    def said(self) -> str:
        """The sentence of an error."""
        return "".join(line for line in self.err.splitlines(True) if line.startswith("numtrace: "))

    @property
    def document(self) -> dict[str, Any]:
        return json.loads(self.out)


Run = Callable[..., Result]


def start(*arguments: object, cwd: Path, environment: dict[str, str] | None = None) -> subprocess.Popen[str]:
    """``numtrace ARGUMENTS`` in ``cwd``, not waited for."""
    return subprocess.Popen(
        [str(COMMAND), *map(str, arguments)],
        cwd=cwd,
        env=os.environ | {"COLUMNS": "200"} | (environment or {}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def variants(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {variant["name"]: variant for variant in document["variants"]}
