"""Shared by all tests: quiet threads, and the order."""

from __future__ import annotations

import os

import pytest

# As workers run: IREE's and torch's threads share the cores. Must be set before torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

#: One run of minutes. Begun last, it would keep one process busy when the others have nothing left to do.
_LONGEST = "test_main_job.py"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.name != _LONGEST)
