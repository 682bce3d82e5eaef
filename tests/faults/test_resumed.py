"""A snapshot in the middle of IREE's pipeline is edited, and the rest of the pipeline resumed from it, pass by pass."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pytest
from iree.compiler import ir, passmanager
from programs import FLAGS, Bench, Recorder

from faults import kinds
from faults.piece import program
from numtrace.instrument.snapshots import Snapshot, take
from numtrace.worker.bisect import Bisection
from numtrace.worker.compilation import Variant
from numtrace.worker.meanings import Meanings
from numtrace.worker.modules import archives
from numtrace.worker.prepare import stored_inputs


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """A reduction, a difference and a convolution with a bias; one of them will be wrong."""
    pieces = [kinds.wrong_axis(Random(1)), _difference(), kinds.dropped_bias(Random(2))]
    return Bench(tmp_path_factory.mktemp("resumed"), program(pieces)[0])


def _difference():
    return next(
        piece
        for piece in (kinds.swapped(Random(n)) for n in range(99))
        if (piece.op, "f32") == ("subf", "f32")
    )


@pytest.fixture(scope="module")
def taken(bench: Bench) -> list[Snapshot]:
    source = bench.folder / "model" / "input.mlir"
    row = take(source, bench.folder / "taken", "input", "flow", FLAGS, 120)
    return [Snapshot("", "builtin.module", source), *row]


def swapped(text: str) -> str:
    """The operands of the one subtraction exchanged."""
    text, count = re.subn(r"arith\.subf (%\w+), (%\w+) :", r"arith.subf \2, \1 :", text)
    assert count == 1
    return text


def order(text: str) -> list[int]:
    """Which of its region's arguments the one subtraction has for its operands."""
    (difference,) = re.findall(r"arith\.subf (%\w+), (%\w+)", text)
    region = text[: text.index("arith.subf")].rpartition("^bb0(")[2]
    arguments = re.findall(r"(%\w+):", region)
    return [arguments.index(name) for name in difference]


def resumed(row: list[Snapshot], at: int, folder: Path) -> list[Snapshot]:
    """The row with snapshot ``at`` edited and every later one made from it by the very passes that made the row."""
    result, text = list(row[:at]), swapped(row[at].path.read_text())
    for position in range(at, len(row)):
        snapshot = row[position]
        if position > at and snapshot.pipeline:
            module = ir.Module.parse(text, ir.Context())
            scope = snapshot.scope.split()[0]
            nested = snapshot.pipeline if scope == "builtin.module" else f"{scope}({snapshot.pipeline})"
            passmanager.PassManager.parse(f"builtin.module({nested})", module.context).run(module.operation)
            text = module.operation.get_asm(enable_debug_info=True)
        path = folder / f"{position:03}.mlir"
        path.write_text(text)
        result.append(Snapshot(snapshot.pipeline, snapshot.scope, path))
    return result


@pytest.mark.parametrize(
    "made_by",
    [
        "iree-global-opt-generalize-linalg-named-ops",
        "iree-dispatch-creation-fold-unit-extent-dims",
        "iree-dispatch-creation-clone-producers-into-dispatch-regions",
        "iree-dispatch-creation-convert-tensor-to-flow",
    ],
)
def test_the_edited_pass_is_named(bench: Bench, taken: list[Snapshot], made_by: str, tmp_path: Path) -> None:
    at = next(i for i, snapshot in enumerate(taken) if snapshot.name == made_by)
    variant = Variant(bench.job(tmp_path) | {"every": False}, Recorder())
    inputs = stored_inputs(variant.shared, 0, variant.job["arguments"])
    bisection = Bisection(variant, Meanings("main", archives([]), "self", variant.shared, inputs))
    row = resumed(taken, at, tmp_path)
    search = bisection.search(row)
    (step,) = [bisection.describe(row, found, search) for found in search.steps]
    assert [ran["pass"] for ran in step["passes"]] == [made_by]
    (table_entry,) = {op["location"] for op in step["ops"]}
    line = int(table_entry.split(":")[1])
    lines = (bench.folder / "program.mlir").read_text().split("\n")
    assert "arith.subf" in "\n".join(lines[line : line + 3])
    assert (order(step["before"]["ir"]), order(step["after"]["ir"])) == ([0, 1], [1, 0])
