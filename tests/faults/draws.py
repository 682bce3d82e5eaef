"""Programs drawn at random, some of their ops wrong, and the score: what was found, missed, or falsely accused."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from faults import kinds, sound
from faults.numbers import normal
from faults.piece import Piece, Reader, tensor
from faults.planting import NotPlanted
from faults.trial import Said, by_code, by_pass, by_stage

#: How sure a finding must be.
_CERTAINTY = {"codegen-bug": ("proven",), "codegen-suspect": ("proven", "suspect")}
#: What a variant's verdict is when these are what is wrong with its pieces: the first that is there.
_ORDER = ("lowering-bug", "pass-bug", "codegen-bug", "codegen-suspect", "over-tolerance", "ok")
#: From where on IREE's own pipeline may be wrong.
STAGES = ("preprocessing", "global-optimization", "dispatch-creation", "flow")
#: Pieces of one program. Each takes its share of the compilations that every program needs.
SIZE = 5


@dataclass(frozen=True)
class Program:
    """Pieces of which those in ``planted`` are wrong, by ``way``: ``code``, ``pass``, or from a stage of IREE's on."""

    way: str
    pieces: tuple[Piece, ...]
    planted: tuple[int, ...]

    def due(self, n: int) -> str:
        """What piece ``n`` must be called."""
        if n not in self.planted:
            return "ok"
        piece = self.pieces[n]
        due = piece.code if self.way == "code" else piece.changed
        assert due is not None
        # What IREE's own pipeline does is nobody's pass.
        return due if self.way in ("code", "pass") or due != "pass-bug" else "lowering-bug"


@dataclass
class Score:
    """Per kind: faults found and missed, correct pieces left in peace and accused; a line for each that is off."""

    found: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    quiet: Counter[str] = field(default_factory=Counter)
    accused: Counter[str] = field(default_factory=Counter)
    off: list[str] = field(default_factory=list)
    unplanted: Counter[str] = field(default_factory=Counter)
    unjudged: int = 0

    @property
    def draws(self) -> int:
        return sum(sum(counter.values()) for counter in (self.found, self.missed, self.quiet, self.accused))

    def table(self) -> str:
        faults, correct = sorted({*self.found, *self.missed}), sorted({*self.quiet, *self.accused})
        lines = [f"{'planted':<44}found  missed"]
        lines += [f"{kind:<44}{self.found[kind]:5}  {self.missed[kind]:6}" for kind in faults]
        lines += [f"{'all':<44}{self.found.total():5}  {self.missed.total():6}", ""]
        lines += [f"{'correct':<44}quiet  accused"]
        lines += [f"{kind:<44}{self.quiet[kind]:5}  {self.accused[kind]:7}" for kind in correct]
        lines += [f"{'all':<44}{self.quiet.total():5}  {self.accused.total():7}"]
        if self.unjudged:
            lines += ["", f"inconclusive, for want of a bound: {self.unjudged} programs without a fault"]
        if self.unplanted:
            lines += ["", f"not planted: {self.unplanted.total()} programs: {dict(self.unplanted)}"]
        return "\n".join([*lines, *self.off])


def programs(seed: int) -> Iterator[Program]:
    """Without end; the same for the same seed."""
    draw = Random(seed)
    while True:
        way = draw.choice(["code", "code", "pass", draw.choice(STAGES)])
        pieces, planted = [], []
        while len(pieces) < SIZE:
            piece = draw.choice(kinds.KINDS if draw.random() < 0.5 else sound.KINDS)(draw)
            if piece.wrong is not None:
                if (piece.code if way == "code" else piece.changed) is None:
                    continue  # it cannot be planted so, or nobody could see it
                if draw.random() < 0.85:
                    planted.append(len(pieces))
            pieces.append(readable(draw, piece) if draw.random() < 0.5 else piece)
        yield Program(way, tuple(pieces), tuple(planted))


def readable(draw: Random, piece: Piece) -> Piece:
    """With a matmul that reads the result, where that is a matrix of f32."""
    rows, columns, *rest = [*piece.result.removeprefix("tensor<").removesuffix(">").split("x"), ""]
    if rest != ["f32", ""]:
        return piece
    width = draw.randint(2, 12)
    weights = normal(draw, int(columns), width)
    return replace(piece, reader=Reader(tensor(columns, width, "f32"), weights, tensor(rows, width, "f32")))


def play(program: Program, folder: Path, score: Score) -> Said | None:
    """Plants, runs and scores one program; None where the compiler leaves no place for the faults."""
    shutil.rmtree(folder, ignore_errors=True)
    try:
        if program.way == "code" or not program.planted:
            said = by_code(program.pieces, program.planted, folder)
        elif program.way == "pass":
            said = by_pass(program.pieces, program.planted, folder)
        else:
            said = by_stage(program.pieces, program.planted, program.way, folder)
    except NotPlanted as why:
        score.unplanted[str(why)] += 1
        return None
    for n, piece in enumerate(program.pieces):
        due = program.due(n)
        kind = f"{piece.kind} ({program.way})" if n in program.planted else piece.kind
        fine = _is(said, n, due)
        if n in program.planted and due != "ok":
            (score.found if fine else score.missed)[kind] += 1
        else:
            (score.quiet if fine else score.accused)[kind] += 1
        if not fine:
            score.off.append(f"{piece} by {program.way}: due {due}, {_told(said, n)}; {said.reason}")
    due = next(v for v in _ORDER if v in {"ok", *(program.due(n) for n in range(len(program.pieces)))})
    if said.verdict == "inconclusive" and due == "ok" and "has no error bound" in said.reason:
        score.unjudged += (
            1  # rightly not called ok: of a piece nothing is known, as of an f16 sum that may overflow
        )
    elif said.verdict != due and not (due == "codegen-suspect" and said.verdict == "codegen-bug"):
        score.off.append(f"the program's verdict is {said.verdict}, due {due}: {said.reason}")
    score.off += said.others
    return said


def _is(said: Said, n: int, due: str) -> bool:
    if due in ("pass-bug", "lowering-bug"):
        return n in said.changed and n not in said.accused
    if due in _CERTAINTY:
        return n not in said.changed and said.accused.get(n) in _CERTAINTY[due]
    if due == "over-tolerance" and not said.record["outputs"][n]["disagreeing"]:
        return False  # a NaN or an infinity that the reference does not have
    return n not in said.changed and n not in said.accused


def _told(said: Said, n: int) -> str:
    found = [f"accused as {said.accused[n]}"] if n in said.accused else []
    found += ["changed"] if n in said.changed else []
    return " and ".join(found) or "nothing found"


def play_all(draws: int, seed: int, folder: Path, report: Callable[[str], None] = lambda line: None) -> Score:
    """Programs of ``seed`` until ``draws`` pieces were judged."""
    score = Score()
    for number, program in enumerate(programs(seed)):
        if score.draws >= draws:
            return score
        before = len(score.off)
        play(program, folder / str(number), score)
        report(f"{score.draws} of {draws} draws, {len(score.off)} off")
        for line in score.off[before:]:
            report(f"  program {number}: {line}")
        if len(score.off) == before:
            shutil.rmtree(folder / str(number), ignore_errors=True)
    return score
