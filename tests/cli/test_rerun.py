"""``numtrace rerun`` and the code view of ``numtrace show``, as a user runs them on a finished run."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # of the modules beside this one

from commands import COMMAND
from layers import write_layer

SITE = ["run", "--site", "main/0.0"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """A folder with a run of the layer in it: of one dispatch, whose outputs are exact in f32."""
    folder = tmp_path_factory.mktemp("finished")
    command = [str(COMMAND), "run", *write_layer(folder), "--out", "run"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=300)
    return folder


@pytest.fixture
def folder(finished, tmp_path) -> Path:
    """A copy of it that a test may spoil; its parameters stay where they were."""
    return Path(shutil.copytree(finished, tmp_path / "copy"))


def test_one_dispatch_again(numtrace, folder):
    done = numtrace("rerun", *SITE, "--json", "--", "--iree-llvmcpu-target-cpu=generic", cwd=folder)
    assert done.code == 0, done.err
    record = json.loads(done.out)
    assert (record["format"], record["site"], record["variant"]) == ("numtrace.rerun", "main/0.0", "baseline")
    assert record["as_traced"] and record["deterministic"]
    assert "4x8xf32" in record["inputs"] and "8x16xf32" in record["inputs"]
    own, given = record["routes"]
    assert record["in_run"]["max_abs"] == own["measure"]["max_abs"] == given["measure"]["max_abs"] == 0.0
    assert given["flags"] == ["--iree-hal-target-backends=llvm-cpu", "--iree-llvmcpu-target-cpu=generic"]


def test_the_code_view_before_and_after_it_was_compiled_alone(numtrace, folder):
    before = numtrace("show", *SITE, cwd=folder)
    assert "not dumped yet: add --codegen" in before.out
    assert "shared     with none" in before.out
    assert "linalg.matmul" in before.out and "// matmul_0" in before.out
    after = numtrace("show", *SITE, "--codegen", cwd=folder)
    assert after.code == 0, after.err
    assert "#iree_cpu.pipeline<" in after.out and "tiles" in after.out
    assert numtrace("show", *SITE, cwd=folder).out == after.out
    assert numtrace("show", "run", "--codegen", cwd=folder).code == 2


def test_a_wrong_executable_is_right_by_every_other_route(numtrace, folder):
    """The IR is right, IREE is told to run another body in its place."""
    assert numtrace("show", *SITE, "--codegen", cwd=folder).code == 0
    (source,) = folder.glob("run/variants/baseline/alone/main-0/own/code/module_*.mlir")
    right, wrong = source.read_text(), folder / "wrong.mlir"
    wrong.write_text(right.replace("constant 0.000000e+00", "constant 1.000000e+00"))
    assert wrong.read_text() != right
    name = source.stem.removeprefix("module_")
    numtrace(
        "run",
        *write_layer(folder),
        "--out",
        "run",
        "--",
        f"--iree-hal-substitute-executable-source={name}={wrong}",
        cwd=folder,
    )
    done = numtrace("rerun", *SITE, "--routes", "--json", cwd=folder)
    assert done.code == 0, done.err
    record = json.loads(done.out)
    own, *others = record["routes"]
    assert record["in_run"]["max_abs"] == own["measure"]["max_abs"] == 1.0
    ran = {route["name"]: route["measure"]["max_abs"] for route in others if route["status"] == "ran"}
    assert {"vmvx", "generic-cpu", "no-vectors"} <= ran.keys()
    assert set(ran.values()) == {0.0}


def test_what_cannot_be_run_again(numtrace, folder):
    def said(*arguments):
        done = numtrace("rerun", *arguments, cwd=folder)
        assert done.code == 2, done.err
        return done.said

    missing = said("run", "--site", "main/1.0")
    assert "no site 'main/1.0'" in missing and "main/0.0" in missing
    assert "no variant 'other'" in said(*SITE, "--variant", "other")
    assert "nowhere does not exist" in said("nowhere", "--site", "main/0.0")
    assert "--iree-no-such-flag" in said(*SITE, "--", "--iree-no-such-flag=1")
    assert "compiler flags only" in said(*SITE, "--", "other.mlir")
    (folder / "run" / "variants" / "baseline" / "traced.vmfb").unlink()
    assert "left no traced program" in said(*SITE)
