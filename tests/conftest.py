"""Shared by all tests: where ``tests/programs.py`` is found, and quiet threads."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
# As workers run: IREE's and torch's threads share the cores. Must be set before torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
