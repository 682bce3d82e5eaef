"""What runs in a child process per variant: everything that touches IREE, and the evaluation beside the run.

A Python interpreter runs ``boot.py``, reads one job (a line of JSON) from stdin and streams JSON lines to
stdout. It needs only torch, numpy, ml_dtypes and IREE, so that it can run in the environment of another
IREE build.
"""

from __future__ import annotations

from pathlib import Path

#: The script that starts a worker.
BOOT = Path(__file__).with_name("boot.py")
