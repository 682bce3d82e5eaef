"""``numtrace run`` when all goes well: numbers known beforehand, through every way of giving them."""

from __future__ import annotations

import json
import shlex
import subprocess
import sysconfig
from pathlib import Path

import numpy as np
from commands import start, variants
from layers import LAYER, WEIGHT
from safetensors.numpy import save_file

#: What bf16 costs the layer: each of 8 products with an input of 1 loses 2^-9.
BF16_ERROR = 8 * 2**-9
OUTPUT = 8 * WEIGHT + 0.5


def errors(document):
    return {name: variant["output"]["max_abs"] for name, variant in variants(document).items()}


def test_one_run_from_all_sides(installed_numtrace, layer, tmp_path):
    np.save(tmp_path / "golden.npy", np.full((4, 16), 8.0, np.float32))
    result = installed_numtrace(
        "run", *layer, "--json", "--out", "run", "--pass", "demote-bf16", "--pass", "demote-f16",
        "--expected", "golden.npy", "--atol", OUTPUT - BF16_ERROR - 8,
    )  # fmt: skip
    # The golden is half a unit off what the program means, and there is no reference but numtrace's own: cannot tell.
    assert result.code == 4, result.err
    # f16 has the bit that bf16 lacks; of both passes together the first leaves the second nothing to do.
    document = result.document
    assert errors(document) == {
        "baseline": 0.0, "demote-bf16": BF16_ERROR, "demote-f16": 0.0, "demote-bf16+demote-f16": BF16_ERROR,
    }  # fmt: skip
    baseline, demoted, _, both = document["variants"]
    assert (both["status"], both["same_as"]) == ("same-as", "demote-bf16")
    # The tolerance is for the distance from the golden; exactly at it is within it.
    assert demoted["output"]["allclose"] is True
    assert baseline["output"]["allclose"] is False
    assert document["reference"]["golden_max_abs"] == OUTPUT - 8
    assert baseline["output"]["golden_max_abs"] == OUTPUT - 8
    assert demoted["output"]["golden_max_abs"] == OUTPUT - BF16_ERROR - 8

    # the file is what was printed, and can be shown again
    assert json.loads((tmp_path / "run" / "report.json").read_text()) == document
    assert installed_numtrace("show", "run", "--json").document == document
    site = installed_numtrace("show", "run", "--variant", "demote-bf16", "--site", "main/0.0")
    assert site.code == 0
    assert "block.fc" in site.out

    # the commands for doing it by hand do the same
    done = None
    for line in (tmp_path / "run" / demoted["files"]["commands.txt"]).read_text().splitlines()[1:]:
        program, *words = shlex.split(line)
        script = Path(sysconfig.get_path("scripts"), program)
        done = subprocess.run(
            [script, *words], cwd=tmp_path / "run", capture_output=True, text=True, check=True
        )
    assert done is not None
    assert "4x16xf32=[8.5 8.5 " in done.stdout


def test_seeds_show_the_spread_and_a_tolerance_decides(numtrace, layer):
    result = numtrace("run", *layer[:3], "--json", "--seed", "5", "--seeds", "3", "--atol", "0")
    (variant,) = result.document["variants"]
    assert variant["spread"]["seeds"] == [5, 6, 7]
    assert len(set(variant["spread"]["max_abs"])) == 3
    assert variant["output"]["max_abs"] == max(variant["spread"]["max_abs"]) > 0
    assert (variant["verdict"], result.code) == ("over-tolerance", 1)


FOUR = """
func.func @main(%a: tensor<2x2xf32>, %b: tensor<2x2xf32>, %c: tensor<2x2xf32>, %d: tensor<i64>)
    -> tensor<2x2xf32> {
  %0 = arith.addf %a, %b : tensor<2x2xf32>
  %1 = arith.addf %0, %c : tensor<2x2xf32>
  return %1 : tensor<2x2xf32>
}
"""


def test_forms_of_an_input(numtrace, tmp_path):
    (tmp_path / "m.mlir").write_text(FOUR)
    np.save(tmp_path / "a.npy", np.array([[1, 2], [3, 4]], np.float32))
    np.save(tmp_path / "b.npy", np.array([[10, 20], [30, 40]], np.float32))
    np.array([[100, 200], [300, 400]], np.float32).tofile(tmp_path / "c.bin")
    np.save(tmp_path / "golden.npy", np.array([[111, 222], [333, 444]], np.float32))
    specs = ["@a.npy", "2x2xf32=@b.npy", "2x2xf32=@c.bin", "7"]
    result = numtrace(
        "run",
        "m.mlir",
        "--json",
        "--expected",
        "golden.npy",
        *(word for spec in specs for word in ("--input", spec)),
    )
    assert result.code == 0
    (variant,) = result.document["variants"]
    assert variant["output"]["golden_max_abs"] == 0
    assert [one["source"] for one in result.document["model"]["inputs"]] == specs
    warnings = [
        notice for notice in result.document["notices"] if "iree-run-module would read it raw" in notice
    ]
    assert len(warnings) == 1
    assert "2x2xf32=@b.npy" in warnings[0]


def test_a_pass_that_changes_nothing(numtrace, layer):
    result = numtrace(
        "run", *layer, "--json", "--pass", "winograd", "--pass", "img2col", "--pass", "winograd"
    )
    assert result.code == 0
    names = ["baseline", "winograd", "img2col", "winograd+img2col"]
    assert [variant["name"] for variant in result.document["variants"]] == names
    for variant in result.document["variants"][1:]:
        assert (variant["verdict"], variant["same_as"], variant["ops_changed"]) == (
            "no-effect",
            "baseline",
            0,
        )


def inlined(text: str) -> str:
    """The layer with its weights in the program; not all alike, or they would be a splat."""
    weight = ", ".join("[" + ", ".join(str(value) for value in row) + "]" for row in WEIGHTS["fc.weight"])
    bias = ", ".join(str(value) for value in WEIGHTS["fc.bias"])
    lines = [line for line in text.splitlines() if not line.startswith("util.global")]
    return (
        "\n".join(lines)
        .replace(
            "util.global.load @w : tensor<8x16xf32>", f"arith.constant dense<[{weight}]> : tensor<8x16xf32>"
        )
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
        "unlocated.mlir": without_locations(LAYER),
        "inlined.mlirbc": bytecode(inlined(LAYER)),
    }
    save_file(WEIGHTS, tmp_path / "w.safetensors")
    seen = {}
    for name, content in forms.items():
        (tmp_path / name).write_bytes(content)
        params = [] if name.startswith("inlined") else ["--params", "model=w.safetensors"]
        document = numtrace("run", name, *params, "--json", "--pass", "demote-bf16").document
        sites = [
            [(s["id"], s["match"], s["total"]["max_abs"]) for s in v["sites"]] for v in document["variants"]
        ]
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
        "--out", f"{ODD}.run", cwd=folder,
    )  # fmt: skip
    assert result.code == 0
    assert result.document["model"]["path"] == f"{ODD}.mlir"
    assert numtrace("show", folder / f"{ODD}.run").code == 0
    assert numtrace("run", f"{ODD}.mlir", "--out=-dash", cwd=folder).code == 0


def test_odd_parameter_names(numtrace, layer, tmp_path):
    name = "a b=c::naïve/%7 #x <y>"
    (tmp_path / "layer.mlir").write_text(LAYER.replace("fc.weight", name))
    save_file(
        {name: np.full((8, 16), WEIGHT, np.float32), "fc.bias": np.full(16, 0.5, np.float32)},
        tmp_path / "layer.safetensors",
    )
    result = numtrace("run", *layer, "--json")
    assert result.code == 0, result.err
    assert errors(result.document) == {"baseline": 0.0}


NOTHING = """
func.func @same(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }
"""


def test_a_program_without_dispatches(numtrace, tmp_path):
    (tmp_path / "m.mlir").write_text(NOTHING)
    result = numtrace("run", "m.mlir", "--json")
    assert result.code == 0
    (variant,) = result.document["variants"]
    assert variant["sites"] == []
    assert [output["max_abs"] for output in variant["outputs"]] == [0.0]


def test_two_runs_at_the_same_time_in_one_folder(layer, tmp_path):
    processes = [start("run", *layer, cwd=tmp_path) for _ in range(2)]
    for process in processes:
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
    runs = list(tmp_path.glob("numtrace-run-layer-*"))
    assert len(runs) == 2
    for run in runs:
        assert (run / "report.json").exists()
