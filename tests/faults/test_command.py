"""Planted faults through the command, one through the installed one: verdict, exit code, and the op in the report."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from commands import Run, inside, installed

from faults import kinds, sound
from faults.draws import readable
from faults.piece import Piece, program
from faults.planting import as_code, as_pass


def numtrace(
    pieces: list[Piece], folder: Path, options: list[str], flags: list[str], command: Run = inside
) -> tuple[int, dict[str, Any]]:
    (folder / "program.mlir").write_text(program(pieces)[0])
    inputs = []
    for piece in pieces:
        for _, type_, data in piece.inputs:
            path = folder / f"input{len(inputs) // 2}.bin"
            data.tofile(path)
            inputs += ["--input", f"{type_.removeprefix('tensor<').removesuffix('>')}=@{path}"]
    done = command(
        "run", "program.mlir", *inputs, *options, "--json", "--out", "run", "--", *flags, cwd=folder
    )
    assert done.out, done.err[-2000:]
    return done.code, done.document


@pytest.fixture
def pieces() -> list[Piece]:
    """A sum of 10^4 and more terms, a matrix that a matmul reads, and a softmax of large logits."""
    matrix = readable(Random(1), kinds.transposed(Random(1)))
    return [sound.long_sum(Random(4)), matrix, sound.large_logits(Random(0))]


def test_wrong_code(pieces: list[Piece], tmp_path: Path) -> None:
    flags = as_code(pieces, [1], tmp_path / "planting")
    code, document = numtrace(pieces, tmp_path, [], flags, installed)
    (baseline,) = document["variants"]
    assert (code, baseline["verdict"]) == (1, "codegen-bug"), baseline["reason"]
    (finding,) = baseline["findings"]
    assert (finding["kind"], finding["certainty"], finding["op"]) == ("codegen", "proven", "generic_1")
    assert {"vmvx", "generic-cpu", "no-vectors"} <= {*finding["gone_by"]}
    accused = {site["op"] for site in baseline["sites"] if site["code"] in ("suspect", "proven")}
    assert accused == {"generic_1"}


def test_wrong_pass(pieces: list[Piece], tmp_path: Path) -> None:
    code, document = numtrace(pieces, tmp_path, ["--pass", as_pass(pieces, [1], tmp_path / "planting")], [])
    baseline, changed = document["variants"]
    assert (code, baseline["verdict"], changed["verdict"]) == (1, "ok", "pass-bug"), changed["reason"]
    assert "brought in at generic_1" in changed["reason"]
    assert [site["op"] for site in changed["sites"] if site["match"] == "differs"] == ["generic_1"]


@pytest.mark.parametrize(
    "flags",
    [[], ["--iree-opt-data-tiling"], ["--iree-llvmcpu-enable-ukernels=all", "--iree-opt-data-tiling"]],
    ids=["plain", "data-tiling", "ukernels"],
)
def test_correct(flags: list[str], tmp_path: Path) -> None:
    drawn = [kind(Random(n)) for n, kind in enumerate((sound.dynamic_range, sound.chain, sound.integers))]
    code, document = numtrace(drawn, tmp_path, [], flags)
    (baseline,) = document["variants"]
    assert (code, baseline["verdict"]) == (0, "ok"), baseline["reason"]
    assert not baseline["findings"]
