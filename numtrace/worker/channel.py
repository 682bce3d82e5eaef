"""The worker's end of the line to its parent: JSON lines, and nothing else, on what was stdout."""

from __future__ import annotations

import json
import math
import os
import sys
from typing import Any


class Channel:
    """Sends events; whatever libraries print goes to stderr instead."""

    def __init__(self) -> None:
        self._stream = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
        sys.stdout.flush()
        os.dup2(2, 1)

    def send(self, event: str, **fields: Any) -> None:
        """One event. Floats that JSON cannot say become null; the counts beside them tell why."""
        self._stream.write(json.dumps({"event": event, **_plain(fields)}, allow_nan=False) + "\n")

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
