"""What runs in a child process per job: everything that touches IREE, and the evaluation beside the run.

A Python interpreter runs ``boot.py``, loads the modules that a job needs and forks a process for it, which reads the
job (a line of JSON) from a socket and streams JSON lines back. It needs only torch, numpy, ml_dtypes and IREE, so
that it can run in the environment of another IREE build.
"""

from __future__ import annotations

from pathlib import Path

#: The script that starts a worker.
BOOT = Path(__file__).with_name("boot.py")
