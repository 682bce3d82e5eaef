"""The worker's end of the line to its parent: JSON lines, and nothing else, on a socket that was stdin."""

from __future__ import annotations

import json
import math
import os
import sys
from typing import Any


class Channel:
    """Receives the job and sends events; whatever libraries print goes to stderr instead."""

    def __init__(self) -> None:
        # A copy that no child inherits: the parent sees the end of this process by the end of the connection.
        connection = os.dup(0)
        self._job = os.fdopen(connection, "rb")
        self._events = os.fdopen(connection, "w", encoding="utf-8", buffering=1, closefd=False)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        sys.stdout.flush()
        os.dup2(2, 1)

    def receive(self) -> dict[str, Any] | None:
        """The job, one line of JSON; None when the parent has gone."""
        line = self._job.readline()
        return json.loads(line) if line.endswith(b"\n") else None

    def wait_for_end(self) -> None:
        """Returns when the parent is gone."""
        while self._job.read(4096):
            pass

    def send(self, event: str, **fields: Any) -> None:
        """One event. Floats that JSON cannot say become null; the counts beside them tell why."""
        self._events.write(json.dumps({"event": event, **_plain(fields)}, allow_nan=False) + "\n")

    def stage(self, name: str, **fields: Any) -> None:
        self.send("stage", name=name, **fields)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value
