"""What the command itself loads: torch and IREE belong to the worker, and cost two seconds."""

from __future__ import annotations

import subprocess
import sys

LOADED = """
import sys
import numtrace.cli, numtrace.session, numtrace.bisect, numtrace.rerun, numtrace.acceptance
print(*sorted({"torch", "iree"} & sys.modules.keys()))
"""


def test_neither_torch_nor_iree() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
