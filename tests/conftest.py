"""Shared by all tests: quiet threads."""

from __future__ import annotations

import os

# As workers run: IREE's and torch's threads share the cores. Must be set before torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
