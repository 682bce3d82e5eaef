"""The scripts under ``bench/``, as modules."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

BENCH = Path(__file__).parents[1] / "bench"


def scripts(*names: str) -> tuple[Any, ...]:
    """Those of ``names``; they import one another from where they lie."""
    sys.path.insert(0, str(BENCH))
    try:
        return tuple(import_module(name) for name in names)
    finally:
        sys.path.remove(str(BENCH))
