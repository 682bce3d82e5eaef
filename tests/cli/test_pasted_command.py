"""The seed's command lines as they stand, on a small model of the same name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from commands import variants
from layers import LAYER, WEIGHT
from safetensors.numpy import save_file

BOTH = r"""
iree-compile `
 --iree-preprocessing-pass-pipeline="builtin.module(util.func(iree-linalg-ext-convert-conv2d-to-winograd{replace-all-convs=true},iree-global-opt-demote-contraction-inputs-to-bf16))" `
 --iree-hal-target-backends=llvm-cpu `
 --iree-llvmcpu-target-cpu=host `
 --iree-flow-enable-fuse-padding-into-linalg-consumer-ops `
 --iree-llvmcpu-enable-ukernels=mmt4d,pack,unpack `
 --iree-flow-collapse-reduction-dims `
 --iree-opt-const-expr-max-size-increase-threshold=1000000000000000 `
 --iree-opt-const-eval=false `
 .\vae_decode.mlir -o ./vae_f32.vmfb
"""  # noqa: E501
RUN = r"""
iree-run-module `
  --device=local-task `
  --module=vae-cpu.vmfb `
  --parameters=model=vae_f32.safetensors `
  --function=main `
  --input=4x8xf32=@example_input.npy `
  --expected_output=@vae_golden_output.npy
"""
DEMOTED = 8.5
GOLDEN = 8 * WEIGHT + 0.5  # what the layer means of ones


@pytest.fixture
def model(tmp_path):
    (tmp_path / "vae_decode.mlir").write_text(LAYER)
    weights = {"fc.weight": np.full((8, 16), WEIGHT, np.float32), "fc.bias": np.full(16, 0.5, np.float32)}
    save_file(weights, tmp_path / "vae_f32.safetensors")
    np.save(tmp_path / "example_input.npy", np.ones((4, 8), np.float32))
    np.save(tmp_path / "vae_golden_output.npy", np.full((4, 16), GOLDEN, np.float32))


def test_both_commands_from_a_file(numtrace, model, tmp_path):
    (tmp_path / "command.txt").write_text(BOTH + RUN)
    result = numtrace("run", "--command", "command.txt", "--json")
    assert result.code == 0, result.err
    done = variants(result.document)
    assert list(done) == ["baseline", "winograd", "demote-bf16", "winograd+demote-bf16"]
    assert done["winograd"]["verdict"] == "no-effect"
    assert done["demote-bf16"]["output"]["max_abs"] == 8 * 2**-9
    assert done["winograd+demote-bf16"]["same_as"] == "demote-bf16"
    flags = result.document["target"]["flags"]
    assert "--iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops" in flags
    assert not any("collapse-reduction-dims" in flag or flag.startswith("-o") for flag in flags)
    assert any("collapse-reduction-dims was dropped" in notice for notice in result.document["notices"])
    assert Path(result.document["model"]["path"]) == Path("vae_decode.mlir")
    assert variants(result.document)["demote-bf16"]["output"]["golden_max_abs"] == GOLDEN - DEMOTED


def test_the_compile_command_from_standard_input(numtrace, model):
    # without the run command beside it, nothing says where the weights are
    result = numtrace("run", "--command", "-", "--json", stdin=BOTH)
    assert result.code == 2
    assert "no archive for parameter scope 'model'" in result.said


def test_a_whole_line_after_the_dashes(numtrace, model):
    line = ["iree-compile", "--iree-hal-target-backends=vmvx", "vae_decode.mlir", "-o", "x.vmfb"]
    params = ["--params", "model=vae_f32.safetensors", "--input", "@example_input.npy"]
    result = numtrace("run", *params, "--json", "--", *line)
    assert result.code == 0
    assert result.document["model"]["path"] == "vae_decode.mlir"
    assert result.document["target"]["backend"] == "vmvx"
    assert result.document["target"]["flags"] == ["--iree-hal-target-backends=vmvx"]


REFUSED = {
    "two places": (
        ["--command", "command.txt", "--", "--iree-opt-const-eval=false"],
        "after -- and in --command",
    ),
    "two models": (["other.mlir", "--command", "command.txt"], "two models were given: other.mlir and"),
    "no command": (["--command", "vae_decode.mlir"], "found no iree-compile command"),
    "no file": (["--command", "absent.txt"], "--command absent.txt cannot be read"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_commands_that_cannot_be_used(kind, numtrace, model, tmp_path):
    (tmp_path / "command.txt").write_text(BOTH)
    arguments, says = REFUSED[kind]
    result = numtrace("run", *arguments)
    assert result.code == 2
    assert says in result.said
