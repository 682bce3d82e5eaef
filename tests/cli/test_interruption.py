"""Ctrl-C and kill -9: what is finished is on disk, and no child is left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import start
from layers import LOOP
from processes import descendants, wait_until_gone

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="finds the children in /proc")

THREE = ["--pass", "demote-bf16", "--pass", "demote-f16", "--variants", "alone", "--out", "run"]


def wait_for(process: subprocess.Popen[str], stage: str) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if stage in line:
            return
    raise AssertionError(f"it ended before {stage}")


def stop(process: subprocess.Popen[str], how: signal.Signals) -> tuple[int, str, str]:
    """Signals the command alone, as ``kill`` does; its children must end with it."""
    started = descendants(process.pid)
    os.kill(process.pid, how)
    out, err = process.communicate(timeout=60)
    assert wait_until_gone(started) == []
    return process.returncode, out, err


def statuses(folder: Path) -> dict[str, str]:
    report = json.loads((folder / "report.json").read_text())
    return {variant["name"]: variant["status"] for variant in report["variants"]}


# Stages in which the worker runs Python, in which iree-compile runs, and in which the program runs.
@pytest.mark.parametrize("stage", ["read the model", "check inputs and parameters"])
def test_ctrl_c_while_preparing(stage, layer, tmp_path):
    process = start("run", *layer, *THREE, cwd=tmp_path)
    wait_for(process, stage)
    code, out, err = stop(process, signal.SIGINT)
    assert code == 130
    assert out == ""
    assert "Traceback" not in err
    assert "numtrace: interrupted" in err


def test_ctrl_c_in_a_search(layer, tmp_path, numtrace):
    process = start("bisect", *layer, "--out", "found", cwd=tmp_path)
    wait_for(process, "evaluate input")
    code, out, err = stop(process, signal.SIGINT)
    assert (code, out) == (130, "")
    assert "Traceback" not in err
    shown = numtrace("show", "found")
    assert shown.code == 2
    assert shown.said.startswith("numtrace: found is of a numtrace bisect that ended before")


def test_ctrl_c_in_a_variant(layer, tmp_path, numtrace):
    process = start("run", *layer, *THREE, "--json", cwd=tmp_path)
    wait_for(process, "demote-bf16 · compile with traces")
    code, out, err = stop(process, signal.SIGINT)
    assert code == 130
    assert "Traceback" not in err
    expected = {"baseline": "ran", "demote-bf16": "interrupted"}
    assert statuses(tmp_path / "run") == expected
    assert {v["name"]: v["status"] for v in json.loads(out)["variants"]} == expected
    assert json.loads(out)["planned"] == 3
    shown = numtrace("show", "run")
    assert shown.code == 0
    assert "interrupted" in shown.out


def test_ctrl_c_while_the_program_runs(tmp_path):
    (tmp_path / "m.mlir").write_text(LOOP)
    process = start(
        "run", "m.mlir", "--input", "4xf32=1", "--input", "i64=1000000000000", "--out", "run", cwd=tmp_path
    )
    wait_for(process, "baseline · run")
    code, _, err = stop(process, signal.SIGINT)
    assert code == 130
    assert "Traceback" not in err
    assert statuses(tmp_path / "run") == {"baseline": "interrupted"}


def test_ctrl_c_while_a_built_in_model_is_made(tmp_path):
    cache = tmp_path / "cache"
    process = start("run", "--out", "run", cwd=tmp_path, environment={"NUMTRACE_CACHE_DIR": str(cache)})
    wait_for(process, "build sdxl-vae-tiny")
    deadline = time.monotonic() + 30
    while not list(cache.glob(".making-*")) and time.monotonic() < deadline:
        time.sleep(0.01)
    code, out, err = stop(process, signal.SIGINT)
    assert (code, out) == (130, "")
    assert "Traceback" not in err
    assert list(cache.glob(".making-*")) == []


#: Says when torch begins to be loaded for a job, and takes its time.
SLOW = """
import sys
import time

if any(word.endswith("boot.py") for word in sys.orig_argv):
    class Slow:
        def find_spec(self, name, path=None, target=None):
            if name == "torch":
                open({mark!r}, "w").close()
                time.sleep(3)

    sys.meta_path.insert(0, Slow())
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_while_the_worker_loads_torch(how, layer, tmp_path):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(SLOW.format(mark=str(tmp_path / "loading")))
    process = start("run", *layer, *THREE, cwd=tmp_path, environment={"PYTHONPATH": str(tmp_path / "site")})
    deadline = time.monotonic() + 60
    while not (tmp_path / "loading").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    signalled = time.monotonic()
    code, out, err = stop(process, how)
    assert code == (130 if how is signal.SIGINT else -signal.SIGKILL)
    assert (out, "Traceback" in err) == ("", False)
    if how is signal.SIGINT:
        assert time.monotonic() - signalled < 2, "it does not wait until all is loaded"


@pytest.mark.parametrize("stage", ["check the target", "demote-bf16 · compile with traces"])
def test_kill_9_takes_the_children_along(stage, layer, tmp_path, numtrace):
    process = start("run", *layer, *THREE, cwd=tmp_path)
    wait_for(process, stage)
    code, _, _ = stop(process, signal.SIGKILL)
    assert code == -signal.SIGKILL
    shown = numtrace("show", "run", "--json")
    if "demote" in stage:
        assert shown.code == 0
        assert [variant["name"] for variant in shown.document["variants"]] == ["baseline"]
    else:
        assert shown.code == 2
        assert "ended before its first variant was done" in shown.said


def test_kill_9_while_the_program_runs(tmp_path):
    (tmp_path / "m.mlir").write_text(LOOP)
    process = start("run", "m.mlir", "--input", "4xf32=1", "--input", "i64=1000000000000", cwd=tmp_path)
    wait_for(process, "baseline · run")
    assert stop(process, signal.SIGKILL)[0] == -signal.SIGKILL
