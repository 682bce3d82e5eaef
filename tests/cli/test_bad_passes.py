"""Passes, flags, targets, devices and interpreters that are not there."""

from __future__ import annotations

import re
import sys
import venv
from pathlib import Path

import pytest


def refused(result, pattern, code=2):
    assert result.code == code, result.err
    assert re.search(pattern, result.said), result.said
    assert result.out == ""


PASSES = {
    "demote-bf17": r"no pass is named 'demote-bf17'.*did you mean demote-bf16 ",
    "demote-bf16,winograd": r"is not one pass; give --pass once for each of demote-bf16, winograd",
    "iree-no-such-pass{type=bf16}": r"'iree-no-such-pass' does not refer to a registered pass",
    "util.func(canonicalize": r"not a pass pipeline: .*'\)' is missing",
    "iree-global-opt-demote-contraction-inputs{type=f99}": r"IREE does not parse .*f99",
}


@pytest.mark.parametrize("text", PASSES)
def test_a_pass_that_is_none(text, numtrace, layer):
    refused(numtrace("run", *layer, "--pass", text), PASSES[text])


FLAGS = {
    "--iree-llvmcpu-target-cpuu=host": "does not know the flag --iree-llvmcpu-target-cpuu=host; "
    "iree-compile suggests --iree-llvmcpu-target-cpu=host",
    "--iree-opt-level=O9": r"does not take the flag --iree-opt-level: 'O9'",
    "--iree-llvmcpu-target-cpu=i8086": r"does not know the target CPU.*sapphirerapids",
    "--iree-hal-target-backends=fpga": "target backend 'fpga' not registered; registered backends: .*llvm",
}


@pytest.mark.parametrize("flag", FLAGS)
def test_a_flag_that_the_compiler_refuses(flag, numtrace, layer):
    refused(numtrace("run", *layer, "--", flag), FLAGS[flag])


def test_an_option_that_numtrace_does_not_have(installed_numtrace, layer):
    result = installed_numtrace("run", *layer, "--bogus")
    assert result.code == 2
    assert "No such option: --bogus" in result.said


def test_unknown_variants(numtrace, layer):
    refused(
        numtrace("run", *layer, "--variants", "alone,triples"), "'triples' is not one of alone, pairs, all"
    )


# A feature that each asks for, as the compiler and as the kernel call it.
CPUS = {"sapphirerapids": ("amx-tile", "amx_tile"), "graniterapids": ("amx-fp16", "amx_fp16"),
        "znver6": ("avx512fp16", "avx512_fp16"), "diamondrapids": ("avx10.2", "avx10_2")}  # fmt: skip


def test_a_target_that_the_host_lacks(numtrace, layer, tmp_path):
    cpuinfo = Path("/proc/cpuinfo")
    flags = cpuinfo.read_text() if cpuinfo.exists() else ""
    if "avx2" not in flags:
        pytest.skip("the list is of x86 CPUs")
    cpu, (feature, _) = next((cpu, names) for cpu, names in CPUS.items() if f" {names[1]}" not in flags)
    result = numtrace("run", *layer, "--out", "run", "--", f"--iree-llvmcpu-target-cpu={cpu}")
    refused(
        result,
        rf"the target {cpu} needs what this host lacks: .*\b{re.escape(feature)}\b.*target-cpu=host",
        code=3,
    )
    assert "compile to" not in result.err, "before anything is compiled or run"
    assert list((tmp_path / "run" / "variants").iterdir()) == []


def test_a_device_that_the_runtime_does_not_know(numtrace, layer):
    refused(
        numtrace("run", *layer, "--device", "abacus"),
        "--device abacus is not known; this IREE runtime has .*local-task",
    )


def test_an_interpreter_that_is_not_there(numtrace, layer):
    refused(
        numtrace("run", *layer, "--python", "/absent/python"),
        "cannot start the Python interpreter /absent/python",
    )


@pytest.fixture
def bare_python(tmp_path):
    """An interpreter with nothing installed."""
    folder = tmp_path / "bare"
    venv.EnvBuilder(symlinks=True, with_pip=False).create(folder)
    return folder / "bin" / "python"


def test_an_interpreter_without_iree(numtrace, layer, bare_python):
    result = numtrace("run", *layer, "--python", bare_python)
    refused(result, r"bare/bin/python cannot run the worker: No module named .*iree-base-compiler")


def test_an_interpreter_without_iree_and_a_pass(numtrace, layer, bare_python):
    result = numtrace("run", *layer, "--pass", "demote-bf16", "--python", bare_python)
    refused(result, r"bare/bin/python has no working iree.compiler .*install iree-base-compiler there")


def test_the_same_interpreter_by_its_path(numtrace, layer):
    result = numtrace("run", *layer, "--json", "--python", sys.executable)
    assert result.code == 0
    assert result.document["environment"]["python"] == ".".join(map(str, sys.version_info[:3]))
