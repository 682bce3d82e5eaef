"""``numtrace run`` when all goes well: numbers that are known beforehand, through every way of giving them."""

from __future__ import annotations

import json
import shlex
import subprocess
import sysconfig
from pathlib import Path

import numpy as np
import pytest
from conftest import LAYER, WEIGHT, start, variants
from safetensors.numpy import save_file

#: What bf16 costs the layer: each of 8 products with an input of 1 loses 2^-9.
BF16_ERROR = 8 * 2**-9
OUTPUT = 8 * WEIGHT + 0.5


def errors(document):
    return {name: variant["output"]["max_abs"] for name, variant in variants(document).items()}


def test_json_is_the_document_and_nothing_else(numtrace, layer, tmp_path):
    result = numtrace("run", *layer, "--json", "--out", "run", "--pass", "demote-bf16", "--pass", "demote-f16")
    assert result.code == 0
    # f16 has the bit that bf16 lacks; of both passes together the first leaves the second nothing to do.
    assert errors(result.document) == {
        "baseline": 0.0, "demote-bf16": BF16_ERROR, "demote-f16": 0.0, "demote-bf16+demote-f16": BF16_ERROR,
    }  # fmt: skip
    both = result.document["variants"][3]
    assert (both["status"], both["same_as"]) == ("same-as", "demote-bf16")
    assert json.loads((tmp_path / "run" / "report.json").read_text()) == result.document
    again = numtrace("show", "run", "--json")
    assert again.document == result.document
    site = numtrace("show", "run", "--variant", "demote-bf16", "--site", "matmul_0")
    assert site.code == 0
    assert "block.fc" in site.out


def test_the_commands_by_hand_give_the_same(numtrace, layer, tmp_path):
    assert numtrace("run", *layer, "--out", "run", "--pass", "demote-bf16").code == 0
    lines = (tmp_path / "run" / "variants" / "demote-bf16" / "commands.txt").read_text().splitlines()
    scripts = Path(sysconfig.get_path("scripts"))
    for line in lines[1:]:
        program, *words = shlex.split(line)
        done = subprocess.run(
            [scripts / program, *words], cwd=tmp_path / "run", capture_output=True, text=True, check=True
        )
    assert "4x16xf32=[8.5 8.5 " in done.stdout


def test_golden_output(numtrace, layer, tmp_path):
    np.save(tmp_path / "golden.npy", np.full((4, 16), 8.0, np.float32))
    result = numtrace("run", *layer, "--json", "--expected", "golden.npy", "--pass", "demote-bf16")
    baseline, demoted = result.document["variants"]
    assert result.document["reference"]["golden_max_abs"] == OUTPUT - 8
    assert baseline["output"]["golden_max_abs"] == OUTPUT - 8
    assert demoted["output"]["golden_max_abs"] == OUTPUT - BF16_ERROR - 8


def test_seeds_show_the_spread_and_report_the_worst(numtrace, layer):
    result = numtrace("run", *layer[:3], "--json", "--seed", "5", "--seeds", "3")
    (variant,) = result.document["variants"]
    assert variant["spread"]["seeds"] == [5, 6, 7]
    assert len(set(variant["spread"]["max_abs"])) == 3
    assert variant["output"]["max_abs"] == max(variant["spread"]["max_abs"])


INPUTS = {
    "@x.npy": np.full((4, 8), 2, np.float32),
    "4x8xf32=2": None,
    "4x8xf32=@x.bin": np.full((4, 8), 2, np.float32),
    "4x8xf32=@x.npy": np.full((4, 8), 2, np.float32),
}


@pytest.mark.parametrize("spec", INPUTS)
def test_forms_of_an_input(spec, numtrace, layer, tmp_path):
    array = INPUTS[spec]
    if array is not None:
        np.save(tmp_path / "x.npy", array)
        array.tofile(tmp_path / "x.bin")
    result = numtrace("run", *layer[:3], "--input", spec, "--json", "--pass", "demote-bf16", "--out", "run")
    assert errors(result.document) == {"baseline": 0.0, "demote-bf16": 2 * BF16_ERROR}
    warned = any("iree-run-module would read it raw" in notice for notice in result.document["notices"])
    assert warned == (spec == "4x8xf32=@x.npy")


def test_a_pass_that_changes_nothing(numtrace, layer):
    result = numtrace("run", *layer, "--json", "--pass", "winograd", "--pass", "img2col", "--pass", "winograd")
    assert result.code == 0
    names = ["baseline", "winograd", "img2col", "winograd+img2col"]
    assert [variant["name"] for variant in result.document["variants"]] == names
    for variant in result.document["variants"][1:]:
        assert (variant["verdict"], variant["same_as"], variant["ops_changed"]) == ("no-effect", "baseline", 0)


def test_only_each_alone(numtrace, layer):
    result = numtrace(
        "run", *layer, "--json", "--variants", "alone", "--pass", "demote-bf16", "--pass", "conv-channels-last"
    )
    assert list(variants(result.document)) == ["baseline", "demote-bf16", "conv-channels-last"]
    assert result.document["planned"] == 3


def test_a_tolerance_decides_the_exit_code(numtrace, layer):
    at_limit = numtrace("run", *layer, "--json", "--pass", "demote-bf16", "--atol", BF16_ERROR)
    assert at_limit.code == 0
    below = numtrace("run", *layer, "--json", "--pass", "demote-bf16", "--atol", BF16_ERROR * 0.99)
    assert below.code == 1
    assert [variant["verdict"] for variant in below.document["variants"]] == ["ok", "over-tolerance"]


def inlined(text: str) -> str:
    """The layer with its weights in the program; not all alike, or they would be a splat."""
    weight = ", ".join("[" + ", ".join(str(value) for value in row) + "]" for row in WEIGHTS["fc.weight"])
    bias = ", ".join(str(value) for value in WEIGHTS["fc.bias"])
    lines = [line for line in text.splitlines() if not line.startswith("util.global")]
    return (
        "\n".join(lines)
        .replace("util.global.load @w : tensor<8x16xf32>", f"arith.constant dense<[{weight}]> : tensor<8x16xf32>")
        .replace("util.global.load @b : tensor<16xf32>", f"arith.constant dense<[{bias}]> : tensor<16xf32>")
    )


WEIGHTS = {
    "fc.weight": np.random.default_rng(0).standard_normal((8, 16)).astype(np.float32),
    "fc.bias": np.random.default_rng(1).standard_normal(16).astype(np.float32),
}


def without_locations(text: str) -> bytes:
    from iree.compiler import ir

    return ir.Module.parse(text, ir.Context()).operation.get_asm(enable_debug_info=False).encode()


def bytecode(text: str) -> bytes:
    import io

    from iree.compiler import ir

    stream = io.BytesIO()
    ir.Module.parse(text, ir.Context()).operation.write_bytecode(stream)
    return stream.getvalue()


def test_every_form_of_a_model_gives_the_same_numbers(numtrace, tmp_path):
    forms = {
        "external.mlir": LAYER.encode(),
        "inlined.mlir": inlined(LAYER).encode(),
        "unlocated.mlir": without_locations(LAYER),
        "inlined.mlirbc": bytecode(inlined(LAYER)),
    }
    save_file(WEIGHTS, tmp_path / "w.safetensors")
    seen = {}
    for name, content in forms.items():
        (tmp_path / name).write_bytes(content)
        params = [] if name.startswith("inlined") else ["--params", "model=w.safetensors"]
        document = numtrace("run", name, *params, "--json", "--pass", "demote-bf16").document
        sites = [[(s["id"], s["match"], s["total"]["max_abs"]) for s in v["sites"]] for v in document["variants"]]
        seen[name] = (errors(document), [v["verdict"] for v in document["variants"]], sites)
    first = seen.pop("external.mlir")
    assert first[0]["demote-bf16"] > 100 * first[0]["baseline"] > 0
    assert first[1] == ["ok", "ok"]
    assert seen == dict.fromkeys(seen, first)


ODD = """we ird "q" 'p' ünï =x {b} $(c)"""


def test_odd_characters_in_every_path(numtrace, tmp_path):
    folder = tmp_path / ODD
    folder.mkdir()
    (folder / f"{ODD}.mlir").write_text(inlined(LAYER))
    save_file({"é = ü": np.ones(4, np.float32)}, folder / f"{ODD}.safetensors")
    np.save(folder / f"{ODD}.npy", np.ones((4, 8), np.float32))
    result = numtrace(
        "run", f"{ODD}.mlir", "--params", f"m={ODD}.safetensors", "--input", f"@{ODD}.npy", "--json",
        "--pass", "demote-bf16", "--out", f"{ODD}.run", cwd=folder,
    )  # fmt: skip
    assert result.code == 0
    assert result.document["model"]["path"] == f"{ODD}.mlir"
    assert numtrace("show", folder / f"{ODD}.run").code == 0
    assert numtrace("run", f"{ODD}.mlir", "--out=-dash", cwd=folder).code == 0


def test_odd_parameter_names(numtrace, layer, tmp_path):
    name = 'a "quoted" =\\ naïve::name'
    escaped = name.replace("\\", "\\5C").replace('"', "\\22")
    (tmp_path / "layer.mlir").write_text(LAYER.replace("fc.weight", escaped))
    save_file(
        {name: np.full((8, 16), WEIGHT, np.float32), "fc.bias": np.full(16, 0.5, np.float32)},
        tmp_path / "layer.safetensors",
    )
    result = numtrace("run", *layer, "--json", "--pass", "demote-bf16")
    assert errors(result.document) == {"baseline": 0.0, "demote-bf16": BF16_ERROR}


NOTHING = """
func.func @same(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }
func.func @none(%x: tensor<4xf32>) { return }
"""


@pytest.mark.parametrize("function", ["same", "none"])
def test_a_program_without_dispatches_or_results(function, numtrace, tmp_path):
    (tmp_path / "m.mlir").write_text(NOTHING)
    result = numtrace("run", "m.mlir", "--function", function, "--json")
    assert result.code == 0
    (variant,) = result.document["variants"]
    assert variant["sites"] == []
    assert [output["max_abs"] for output in variant["outputs"]] == ([0.0] if function == "same" else [])
    assert numtrace("run", "m.mlir", "--function", function).code == 0


def test_two_runs_at_the_same_time_in_one_folder(layer, tmp_path):
    processes = [start("run", *layer, cwd=tmp_path) for _ in range(2)]
    for process in processes:
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
    runs = list(tmp_path.glob("numtrace-run-layer-*"))
    assert len(runs) == 2
    for run in runs:
        assert (run / "report.json").exists()
