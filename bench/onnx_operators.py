"""The evaluator's ONNX operators on ONNX's own node tests: ``python bench/onnx_operators.py FOLDER``.

Nothing is compiled: every case of ``bench/onnx_cases.py FOLDER`` that IREE's importer takes, and all of whose operators
the evaluator knows, is evaluated as the reference is, and compared by the suite's own tolerance. IREE may refuse to
compile it. The exit code is 1 where one differs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from onnx_suite import right, rounded

import numtrace.evaluate  # noqa: F401  (registers the dialects)
from numtrace.errors import UncoveredOp
from numtrace.evaluate.machine import Machine
from numtrace.evaluate.op import walk
from numtrace.evaluate.program import Program
from numtrace.instrument.dtypes import to_torch
from numtrace.worker.prepare import unknown_operators


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--only", default="", help="cases with this in their names")
    chosen = arguments.parse_args()
    found: Counter[str] = Counter()
    unknown: Counter[str] = Counter()
    for path in sorted(chosen.folder.glob("*/model.mlir")):
        case = path.parent
        if chosen.only not in case.name:
            continue
        said, names = evaluated(case, json.loads((case / "case.json").read_text()))
        found[said.partition(":")[0]] += 1
        unknown.update(names if said == "not covered" else ())
        if said.startswith("differs"):
            print(f"{case.name}: {said}", flush=True)
    print(", ".join(f"{kind} {count}" for kind, count in found.most_common()))
    print("not covered: " + ", ".join(f"{name} {count}" for name, count in unknown.most_common()))
    return 1 if found["differs"] else 0


def evaluated(case: Path, about: dict[str, Any]) -> tuple[str, list[str]]:
    """``agrees``, ``differs: …``, ``refused: …`` or ``not covered``; the operators, those without evaluation if so.

    The importer declares a result whose shape ONNX does not infer as one without dimensions: such a program is refused.
    """
    program = Program.parse((case / "model.mlir").read_text(encoding="utf-8"))
    if missing := unknown_operators(program):
        return "not covered", missing
    names = operators(program)
    wanted = [np.load(case / f"expected{n}.npy") for n in range(len(about["expected"]))]
    given = zip(about["inputs"], about["types"], strict=True)
    inputs = [to_torch(_input(case, text, type_)) for text, type_ in given]
    function = next(iter(program.functions.values()))
    try:
        values = Machine(program).run(function.regions[0], inputs)
    except UncoveredOp as error:
        return f"refused: {error}", names
    made = [value.double() if value.is_floating_point() else value for value in values]
    types = zip(made, about["expected"], strict=True)
    said = right([rounded(value.numpy(), type_) for value, type_ in types], wanted, about)
    return ("agrees" if said == "yes" else f"differs: {said}"), names


def operators(program: Program) -> list[str]:
    return [
        op.attributes["name"].value.removeprefix("onnx.")
        for function in program.functions.values()
        for op in walk(function.regions)
        if op.name == "torch.operator"
    ]


def _input(case: Path, text: str, dtype: str) -> np.ndarray:
    """An input as ``iree-run-module`` takes it: a .npy, or ``2x3xbf16=@input0.bin``."""
    shape, _, name = text.rpartition("@")
    if not shape:
        return np.load(case / name)
    sizes = [int(size) for size in shape.removesuffix("=").split("x")[:-1]]
    return np.fromfile(case / name, getattr(ml_dtypes, dtype, dtype)).reshape(sizes)


if __name__ == "__main__":
    sys.exit(main())
