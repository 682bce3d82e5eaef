"""``numtrace accept`` and ``numtrace run --known`` on a convolution whose bias winograd drops."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from commands import Result, Run, variants
from programs import conv_program
from safetensors.numpy import save_file

_CHANNELS, _SIZE = 4, 8
NAMED = ' loc("conv_out"("net.head"))'


def write(folder: Path, init: str, bias: float) -> None:
    text = conv_program(init, channels=_CHANNELS, size=_SIZE)
    line = next(line for line in text.splitlines() if "outs(%init" in line and "ins(%x" in line)
    (folder / "net.mlir").write_text(text.replace(line, line + NAMED))
    weights = np.random.default_rng(0).standard_normal((_CHANNELS, _CHANNELS, 3, 3)).astype(np.float32)
    save_file({"w": weights, "bias": np.full(_CHANNELS, bias, np.float32)}, folder / "net.safetensors")


def test_accepted_then_grown_then_gone(numtrace: Run, tmp_path: Path) -> None:
    def run(*more: object) -> Result:
        return numtrace(
            "run",
            "net.mlir",
            "--params",
            "model=net.safetensors",
            "--pass",
            "winograd",
            "--out",
            "run",
            *more,
        )

    write(tmp_path, "bias", 2.0)
    first = run("--json")
    assert first.code == 1
    (finding,) = variants(first.document)["winograd"]["findings"]
    assert (finding["kind"], finding["certainty"], finding["op"]) == ("pass-semantics", "proven", "conv_out")
    assert finding["module"] == "net.head"
    # What is missing is the bias.
    assert finding["max_abs"] == pytest.approx(2.0, rel=1e-12)
    assert finding["output_max_abs"] == pytest.approx(2.0, rel=1e-12)

    accepted = numtrace("accept", "run", "-o", "known.json", "--note", "upstream issue 1")
    assert (accepted.code, accepted.out) == (0, "known.json: 1 known finding (1 new)\n")
    (entry,) = json.loads((tmp_path / "known.json").read_text())["findings"]
    assert (entry["op"], entry["passes"], entry["model"]) == ("conv_out", ["winograd"], "net.mlir")
    assert entry["size"]["max_abs"] == finding["max_abs"]

    known = run("--known", "known.json")
    assert known.code == 0, known.err
    assert "no new fault found besides 1 known finding (conv_out)" in known.out
    assert "known (upstream issue 1): conv_out" in known.out
    assert "is gone" not in known.out

    # Twice as large is as accepted, three times is not.
    write(tmp_path, "bias", 6.0)
    grown = run("--known", "known.json", "--json")
    assert grown.code == 1
    winograd = variants(grown.document)["winograd"]
    assert winograd["verdict"] == "pass-bug"
    assert "grown since it was accepted: conv_out (max abs from 2 to 6" in winograd["reason"]
    assert winograd["findings"][0]["known"] is False

    # On a convolution that begins with zeros winograd is right.
    write(tmp_path, "zero", 0.0)
    gone = run("--known", "known.json", "--json")
    assert gone.code == 0
    assert variants(gone.document)["winograd"]["verdict"] == "ok"
    notice = "known finding conv_out of winograd is gone: remove it from known.json"
    assert notice in gone.document["notices"]
    assert [one["op"] for one in gone.document["known"]["vanished"]] == ["conv_out"]
    assert f"note: {notice}" in numtrace("show", "run").out


def test_what_cannot_be_used_exits_with_2(numtrace: Run, tmp_path: Path) -> None:
    (tmp_path / "known.json").write_text('{"format": "numtrace.known", "version": 9, "findings": []}')
    for name, words in (("none.json", "there is no file none.json"), ("known.json", "has version 9")):
        result = numtrace("run", "--known", name)
        assert result.code == 2
        assert words in result.said
        assert not list(tmp_path.glob("numtrace-run*"))
    result = numtrace("accept", "nowhere", "-o", "known.json")
    assert result.code == 2
    assert "nowhere does not exist" in result.said
