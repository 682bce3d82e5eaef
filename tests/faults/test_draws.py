"""A handful of programs drawn anew every day; the day is the seed. ``bench/faults.py`` draws hundreds."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from faults.draws import play_all


def test_today(tmp_path: Path) -> None:
    seed = datetime.now(UTC).date().toordinal()
    score = play_all(8, seed, tmp_path)
    print(f"seed {seed}\n{score.table()}")
    assert not score.off, f"seed {seed}: {score.off}"
    assert score.draws >= 8
