"""Each kind of fault once by every way to plant it, and each kind of correct op: all of them found, none accused."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from faults import kinds, sound
from faults.draws import SIZE, STAGES, Program, Score, play, readable
from faults.piece import Piece


def groups(faults: bool) -> list[list]:
    drawn = kinds.KINDS if faults else sound.KINDS
    return [list(drawn[at : at + SIZE]) for at in range(0, len(drawn), SIZE)]


def drawn(kind, seed: int, way: str) -> Piece:
    """The first piece of ``kind`` that can be planted so, and seen."""
    draw = Random(seed)
    while True:
        piece: Piece = kind(draw)
        if piece.wrong is None or (piece.code if way == "code" else piece.changed) is not None:
            return piece


#: The random draws have every stage, too.
_STAGES = [pytest.param(stage, marks=pytest.mark.slow) for stage in STAGES]


@pytest.mark.parametrize("way", ["code", "pass", *_STAGES])
@pytest.mark.parametrize("group", groups(True), ids=lambda group: group[0].__name__)
def test_planted(group, way: str, tmp_path: Path) -> None:
    # Padding is no dispatch's code.
    fitting = [kind for kind in group if not (kind is kinds.shifted_pad and way == "code")]
    pieces = tuple(readable(Random(n), drawn(kind, n, way)) for n, kind in enumerate(fitting))
    score = Score()
    said = play(Program(way, pieces, tuple(range(len(pieces)))), tmp_path / "program", score)
    assert said is not None, score.unplanted
    assert not score.off, score.off
    due = [piece for piece in pieces if way == "code" or piece.changed != "ok"]
    assert score.found.total() == len(due)
    assert score.quiet.total() == len(pieces) - len(due)


@pytest.mark.parametrize("group", groups(False), ids=lambda group: group[0].__name__)
def test_correct(group, tmp_path: Path) -> None:
    pieces = tuple(drawn(kind, n, "code") for n, kind in enumerate(group))
    score = Score()
    said = play(Program("code", pieces, ()), tmp_path / "program", score)
    assert said is not None and said.verdict == "ok", said
    assert not score.off, score.off
    assert score.quiet.total() == len(pieces)
