"""The ONNX backend node tests as MLIR, and which of them IREE accepts: ``python bench/onnx_cases.py FOLDER``.

Knows nothing of numtrace: it makes each case of the ``onnx`` package in memory, imports it with IREE's own importer and
compiles it with plain ``iree-compile`` for the host's CPU. Each case gets a folder with ``model.mlir``, ``model.vmfb``,
its inputs and expected outputs, and ``case.json``: whether it is ``accepted``, or at which step not and with which
message. A case whose function takes or returns f64 is compiled again with a flag that keeps it (``flags``): that is
the program which is judged. Cases that are there already are not made again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

#: Plain: no flag but those that name the target.
TARGET = (
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
)
#: IREE narrows f64 to f32 unless it is told not to; the suite's inputs and outputs are f64 then, and a program that
#: takes f32 cannot even be called with them. What plain ``iree-compile`` accepts is counted without it.
KEEP_F64 = "--iree-input-demote-f64-to-f32=false"
#: The step of a case that is only imported.
_NOT_COMPILED = "not compiled"
#: Seconds for one compilation.
_PATIENCE = 300

#: Types that .npy files do not know, by their names in NumPy: what they are called in MLIR.
_RAW = {
    "bfloat16": "bf16", "float8_e4m3fn": "f8E4M3FN", "float8_e4m3fnuz": "f8E4M3FNUZ", "float8_e5m2": "f8E5M2",
    "float8_e5m2fnuz": "f8E5M2FNUZ",
}  # fmt: skip


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--only", default="", help="cases with this in their names")
    arguments.add_argument("--import-only", action="store_true", help="compile nothing")
    arguments.add_argument(
        "--share", default="0/1", help="I/N: every N-th case from the I-th, for several at once"
    )
    chosen = arguments.parse_args()
    first, step = map(int, chosen.share.split("/"))
    for case in collected()[first::step]:
        if chosen.only in case.name and not _is_made(chosen.folder / case.name, chosen.import_only):
            make(case, chosen.folder / case.name, compiles=not chosen.import_only)
    report(chosen.folder)


def _is_made(folder: Path, import_only: bool) -> bool:
    about = folder / "case.json"
    return about.exists() and (import_only or json.loads(about.read_text())["step"] != _NOT_COMPILED)


def collected() -> list[Any]:
    """Every node test, by name."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of NumPy, about the overflows that some cases are about
        return sorted(collect_testcases(None), key=lambda case: case.name)


def make(case: Any, folder: Path, *, compiles: bool = True) -> None:
    about = imported(case, folder)
    if not about["step"] and not compiles:
        about["step"] = _NOT_COMPILED
    elif not about["step"] and (failed := _compiled(folder, [])):
        about |= {"step": "compile", "message": failed}
    accepted = about["accepted"] = not about["step"]
    if accepted and "float64" in (*about["types"], *about["expected"]) and not _compiled(folder, [KEEP_F64]):
        about["flags"] = [KEEP_F64]
    (folder / "case.json").write_text(json.dumps(about, indent=1))
    print(f"{case.name}: {about['step'] or 'accepted'} {about['message'][:100]}", flush=True)


def imported(case: Any, folder: Path) -> dict[str, Any]:
    """Writes a case and its ``model.mlir``; what it is, with the ``step`` at which it fails and the ``message``."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(case.model.SerializeToString())
    about: dict[str, Any] = {
        "op": case.model.graph.node[0].op_type, "rtol": case.rtol, "atol": case.atol, "flags": [],
        "inputs": [], "types": [], "expected": [], "step": "", "message": "",
    }  # fmt: skip
    inputs, expected = ([_array(value) for value in values] for values in case.data_sets[0])
    for array in [*inputs, *expected]:
        if not isinstance(array, np.ndarray) or (
            array.dtype.kind not in "biufc" and array.dtype.name not in _RAW
        ):
            message = f"{type(array).__name__} {getattr(array, 'dtype', '')} is no tensor of IREE's"
            return about | {"step": "data", "message": message}
    about["inputs"] = [_stored(array, folder / f"input{n}") for n, array in enumerate(inputs)]
    about["types"] = [array.dtype.name for array in inputs]
    about["expected"] = [array.dtype.name for array in expected]
    for n, array in enumerate(expected):
        np.save(folder / f"expected{n}.npy", array.astype(np.float32) if array.dtype.name in _RAW else array)
    failed = _imported(folder)
    return about | {"step": "import" if failed else "", "message": failed}


def _compiled(folder: Path, flags: list[str]) -> str:
    """Compiles to ``model.vmfb``; what went wrong."""
    partial = folder / "partial.vmfb"
    command = ["iree-compile", str(folder / "model.mlir"), *TARGET, *flags, "-o", str(partial)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE)
    except subprocess.TimeoutExpired:
        return f"took more than {_PATIENCE} s"
    if done.returncode:
        lines = done.stderr.splitlines() or [f"exit code {done.returncode}"]
        errors = [line.partition("error: ")[2] for line in lines if "error: " in line]
        return (errors or lines)[0]
    partial.replace(folder / "model.vmfb")
    return ""


def _array(value: Any) -> Any:
    """A tensor of a type that NumPy lacks comes as a message, one without dimensions as a number."""
    from onnx import TensorProto, numpy_helper

    if isinstance(value, np.generic):
        return np.asarray(value)
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else value


def _stored(array: np.ndarray, stem: Path) -> str:
    """Writes an input; how iree-run-module takes it."""
    if array.dtype.name not in _RAW:
        np.save(stem.with_suffix(".npy"), array)
        return f"@{stem.name}.npy"
    array.tofile(stem.with_suffix(".bin"))
    return "x".join([*map(str, array.shape), _RAW[array.dtype.name]]) + f"=@{stem.name}.bin"


def _imported(folder: Path) -> str:
    """Imports in a fork, which may die of it; what went wrong."""
    from iree.compiler.tools.import_onnx import __main__ as importer

    said = folder / "import.log"
    child = os.fork()
    if not child:
        try:
            with said.open("w") as log:
                os.dup2(log.fileno(), 1)
                os.dup2(log.fileno(), 2)
                parsed = importer.parse_arguments(
                    [str(folder / "model.onnx"), "-o", str(folder / "model.mlir")]
                )
                importer.main(parsed)
                os._exit(0)
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
    _, status = os.waitpid(child, 0)
    lines = said.read_text(errors="replace").strip().splitlines()
    if status:
        return lines[-1][:300] if lines else f"died of signal {os.WTERMSIG(status)}"
    said.unlink()
    return ""


def report(folder: Path) -> None:
    cases = [json.loads(path.read_text()) for path in sorted(folder.glob("*/case.json"))]
    counts = Counter(case["step"] or "accepted" for case in cases)
    print(f"{len(cases)} cases: " + ", ".join(f"{count} {step}" for step, count in counts.most_common()))


if __name__ == "__main__":
    main()
