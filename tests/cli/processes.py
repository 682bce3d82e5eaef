"""Which processes a process has started, from /proc."""

from __future__ import annotations

import time
from pathlib import Path


def children(pid: int) -> list[int]:
    """The children of ``pid`` that have not ended."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            # pid (name) state parent …: the name may hold anything but the last bracket
            state, parent = status.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if int(parent) == pid and state != "Z":
            found.append(int(status.parent.name))
    return found


def descendants(pid: int) -> list[int]:
    """Children, their children, and so on."""
    found = children(pid)
    return found + [inner for child in found for inner in descendants(child)]


def wait_until_gone(pids: list[int], seconds: float = 10.0) -> list[int]:
    """Waits for the processes to end; those that did not."""
    deadline = time.monotonic() + seconds
    left = pids
    while left and time.monotonic() < deadline:
        left = [pid for pid in left if _runs(pid)]
        time.sleep(0.05)
    return left


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
