"""A run directory that cannot be written, or a disk that is full: exit 2, and what is finished stays."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from commands import COMMAND, start


def refused(result, says):
    assert result.code == 2
    assert says in result.said
    assert result.out == ""


def test_a_file_is_in_the_way(numtrace, layer, tmp_path):
    (tmp_path / "taken").write_text("mine")
    refused(numtrace("run", *layer, "--out", "taken"), "cannot write taken: a file is in the way")
    refused(
        numtrace("run", *layer, "--out", "taken/run"), "cannot write taken/run: a part of the path is a file"
    )
    assert (tmp_path / "taken").read_text() == "mine"


def test_a_directory_of_somebody_else(numtrace, layer, tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.png").write_text("cat")
    refused(
        numtrace("run", *layer, "--out", "photos"),
        "photos is not empty and not a numtrace run, so nothing in it was touched",
    )
    assert [path.name for path in (tmp_path / "photos").iterdir()] == ["cat.png"]


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="/proc is where nobody can make a directory")
def test_a_place_where_nothing_can_be_made(numtrace, layer, tmp_path):
    refused(numtrace("run", *layer, "--out", "/proc/numtrace-run"), "cannot write /proc/numtrace-run")
    refused(numtrace("run", tmp_path / "layer.mlir", cwd="/proc"), "cannot write /proc/numtrace-run-layer")


def limited(kilobytes: int, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """The command where no file may be larger than that: a full disk that needs no rights to make."""
    line = f'ulimit -f {kilobytes} && exec "$@"'
    done = subprocess.run(
        ["bash", "-c", line, "bash", str(COMMAND), *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "Traceback" not in done.stderr
    return done


@pytest.mark.parametrize(("kilobytes", "says"), [(1, "cannot write"), (8, "iree-compile cannot write")])
def test_a_disk_that_is_full_before_anything_is_done(kilobytes, says, layer, tmp_path):
    done = limited(kilobytes, "run", *layer, "--out", "run", cwd=tmp_path)
    assert done.returncode == 2
    assert f"numtrace: {says}" in done.stderr
    assert "--out" in done.stderr
    assert not (tmp_path / "run" / "report.json").exists()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits another process")
def test_a_disk_that_fills_up_in_the_second_variant(layer, tmp_path):
    process = start("run", *layer, "--out", "run", "--json", "--pass", "demote-bf16", cwd=tmp_path)
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("variant 2 of 2"):
            hard = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)[1]
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (4096, hard))
            break
    out, err = process.communicate(timeout=120)
    assert process.returncode == 2
    assert "Traceback" not in err
    assert "numtrace: " in err and "cannot write" in err
    assert [v["status"] for v in json.loads((tmp_path / "run" / "report.json").read_text())["variants"]] == [
        "ran"
    ]
    assert json.loads(out)["variants"][0]["name"] == "baseline"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is a full device")
def test_standard_output_is_full_or_its_reader_leaves(layer, tmp_path):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [str(COMMAND), "run", *layer, "--json", "--out", "run"],
            cwd=tmp_path,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 2
    assert "cannot write to standard output: No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    for options in ([], ["--json"]):
        show = [str(COMMAND), "show", "run", *options]
        line = f"{sys.executable} -c 'import os; os.close(0)'"  # it reads nothing
        done = subprocess.run(
            ["bash", "-c", f'"$@" | {line}; echo "${{PIPESTATUS[0]}}"', "bash", *show],
            cwd=tmp_path, capture_output=True, text=True,
        )  # fmt: skip
        assert done.stdout.strip() == "0"
        assert done.stderr == ""
