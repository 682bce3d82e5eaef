"""``numtrace passes --audit`` from the command line: what it prints, what it leaves, how it exits."""

from __future__ import annotations

import json

WINOGRAD = [
    "passes",
    "--audit",
    "--pass",
    "*-winograd",
    "--program",
    "conv_2d_nchw_fchw.started",
    "-o",
    "night",
]


def test_a_night_and_the_next(numtrace, tmp_path):
    """The first night is red for what winograd does; the next, with nothing new, is not."""
    first = numtrace(*WINOGRAD, "--json")
    assert first.code == 1
    document = first.document
    assert document == json.loads((tmp_path / "night" / "audit.json").read_text())
    (finding,) = [finding for row in document["passes"] for finding in row["findings"]]
    assert (finding["program"], finding["outcome"]) == ("conv_2d_nchw_fchw.started", "changes")
    assert "linalg.conv_2d_nchw_fchw" in (tmp_path / "night" / finding["before"]).read_text()
    assert "winograd.input_transform" in (tmp_path / "night" / finding["after"]).read_text()

    (tmp_path / "last.json").write_text(first.out)
    second = numtrace(*WINOGRAD, "--against", "last.json")
    assert second.code == 0
    assert "changes the mathematics: iree-linalg-ext-convert-conv2d-to-winograd (once)" in second.out
    assert second.out.splitlines()[-1] == "nothing is worse than in the earlier audit"


def test_a_program_that_there_is_not(numtrace):
    result = numtrace("passes", "--audit", "--program", "abacus")
    assert result.code == 2
    assert "--program abacus: no program of the corpus has such a name" in result.err


def test_its_options_are_for_it(numtrace):
    result = numtrace("passes", "--json")
    assert result.code == 2
    assert "belong to --audit" in result.err
