"""The search through real snapshots of IREE's pipeline, with faults edited into them on disk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from programs import FLAGS, Bench, Recorder

from numtrace.instrument.snapshots import Snapshot, take
from numtrace.worker.bisect import Bisection, bisect
from numtrace.worker.compilation import Variant
from numtrace.worker.meanings import Meanings
from numtrace.worker.modules import archives
from numtrace.worker.prepare import stored_inputs

#: y = Σ exp(a - b) - c: two subtractions, so that one of them can be broken.
_SUB = """linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%A, %B : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %v = arith.subf %x, %y : f32
    linalg.yield %v : f32
  } -> tensor<4x8xf32>"""


def sub(a: str, b: str) -> str:
    return _SUB.replace("%A", a).replace("%B", b)


PROGRAM = f"""
#id = affine_map<(d0, d1) -> (d0, d1)>
func.func @main(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>, %c: tensor<4x8xf32>) -> tensor<4x8xf32> {{
  %e = tensor.empty() : tensor<4x8xf32>
  %0 = {sub("%a", "%b")} loc("first")
  %1 = math.exp %0 : tensor<4x8xf32> loc("power")
  %s = tensor.empty() : tensor<4xf32>
  %z = arith.constant 0.0 : f32
  %f = linalg.fill ins(%z : f32) outs(%s : tensor<4xf32>) -> tensor<4xf32>
  %t = linalg.reduce ins(%1 : tensor<4x8xf32>) outs(%f : tensor<4xf32>) dimensions = [1]
      (%x: f32, %acc: f32) {{ %v = arith.addf %x, %acc : f32
                             linalg.yield %v : f32 }} loc("total")
  %g = linalg.broadcast ins(%t : tensor<4xf32>) outs(%e : tensor<4x8xf32>) dimensions = [1] loc("spread")
  %2 = {sub("%g", "%c")} loc("second")
  return %2 : tensor<4x8xf32>
}}
"""


@pytest.fixture(scope="module")
def bench(tmp_path_factory) -> Bench:
    return Bench(tmp_path_factory.mktemp("bisect"), PROGRAM)


@pytest.fixture(scope="module")
def taken(bench) -> list[Snapshot]:
    model = bench.folder / "model"
    row = take(model / "input.mlir", bench.folder / "taken", "input", "flow", FLAGS, 120)
    return [Snapshot("", "builtin.module", model / "input.mlir"), *row]


@pytest.fixture
def row(taken, tmp_path) -> list[Snapshot]:
    """The snapshots, as copies that a test may edit."""
    copies = []
    for number, snapshot in enumerate(taken):
        path = tmp_path / f"{number:03}.mlir"
        path.write_text(snapshot.path.read_text())
        copies.append(replace(snapshot, path=path))
    return copies


@pytest.fixture
def bisection(bench, tmp_path) -> Bisection:
    variant = Variant(bench.job(tmp_path) | {"every": False}, Recorder())
    inputs = stored_inputs(variant.shared, 0, variant.job["arguments"])
    meanings = Meanings("main", archives([]), "self", variant.shared, inputs)
    return Bisection(variant, meanings)


def edit(row: list[Snapshot], change: Callable[[str], str], first: int, last: int | None = None) -> None:
    """Applies ``change`` to the snapshots from ``first`` on, to ``last`` where there is an end."""
    for snapshot in row[first : None if last is None else last + 1]:
        text = snapshot.path.read_text()
        snapshot.path.write_text(change(text))


def first_adds(text: str) -> str:
    """The first of the two subtractions, which come in the order of the source at every stage, made an addition."""
    return text.replace("arith.subf", "arith.addf", 1)


def second_adds(text: str) -> str:
    before, _, after = text.rpartition("arith.subf")
    return f"{before}arith.addf{after}"


def found(bisection: Bisection, row: list[Snapshot]) -> list[dict]:
    search = bisection.search(row)
    return [bisection.describe(row, step, search) for step in search.steps]


def test_a_right_pipeline_has_no_step(bisection, row):
    assert bisection.search(row).steps == []


@pytest.mark.parametrize("share", [0.1, 0.35, 0.6, 0.9])
def test_the_pass_whose_snapshot_has_the_fault_first_is_named(bisection, row, share):
    """The fault is edited into one snapshot and all that come after it, as if that pass had made it."""
    at = max(1, int(len(row) * share))
    edit(row, second_adds, at)
    assert row[at].path.read_text() != row[at - 1].path.read_text()
    (step,) = found(bisection, row)
    assert [ran["pipeline"] for ran in step["passes"]] == [row[at].pipeline]
    assert (step["before"]["file"], step["after"]["file"]) == (str(row[at - 1].path), str(row[at].path))
    assert step["evaluated"] <= 2 + len(row).bit_length()
    assert not step["exhaustive"]


def test_the_op_and_its_ir_on_both_sides_are_shown(bisection, row):
    edit(row, second_adds, 2)
    (step,) = found(bisection, row)
    assert step["ops"][0]["name"] == "second"
    assert "arith.subf" in step["before"]["ir"]
    assert "arith.subf" not in step["after"]["ir"]
    assert "arith.addf" in step["after"]["ir"]


def test_a_second_fault_after_the_first_is_found_too(bisection, row):
    """Not one step: the meaning after the one found is not the last one, so every snapshot is looked at."""
    a, b = len(row) // 3, 2 * len(row) // 3
    edit(row, first_adds, a)
    edit(row, second_adds, b)
    steps = found(bisection, row)
    assert [step["after"]["file"] for step in steps] == [str(row[a].path), str(row[b].path)]
    assert all(step["exhaustive"] for step in steps)


def test_a_fault_that_is_repaired_again_is_found_when_every_snapshot_is_asked_for(bisection, row):
    a, b = len(row) // 3, len(row) // 2
    edit(row, second_adds, a, b - 1)
    assert found(bisection, row) == []
    bisection.variant.job["every"] = True
    steps = found(bisection, row)
    assert [step["after"]["file"] for step in steps] == [str(row[a].path), str(row[b].path)]


def test_a_fault_between_snapshots_that_cannot_be_evaluated_names_them_all(bisection, row):
    """Three snapshots have an op that is not known: it is one of four passes, and no guess is made."""
    at = len(row) // 2
    edit(row, second_adds, at)
    edit(row, lambda text: text.replace("math.exp ", "math.unheard_of "), at - 1, at + 1)
    (step,) = found(bisection, row)
    assert [ran["pipeline"] for ran in step["passes"]] == [row[i].pipeline for i in range(at - 1, at + 3)]
    assert [untold["pass"] for untold in step["unknown"]] == [row[i].name for i in range(at - 1, at + 2)]


def test_the_whole_job_on_a_right_program(bench, tmp_path):
    recorder = Recorder()
    bisect(bench.job(tmp_path) | {"every": False}, recorder)
    event = recorder.events[-1]
    assert event["event"] == "bisected"
    assert [stage["name"] for stage in event["stages"]] == [
        "source", "input", "preprocessing", "global-optimization", "dispatch-creation", "flow",
    ]  # fmt: skip
    assert all(stage["known"] and not stage["changed"] for stage in event["stages"])
    assert event["steps"] == []


def test_with_a_pass_the_search_begins_where_the_pass_is_given_the_program(bench, tmp_path: Path):
    recorder = Recorder()
    bisect(bench.job(tmp_path, "demote-bf16") | {"every": False}, recorder)
    assert recorder.events[-1]["stages"][0]["name"] == "input"
    assert recorder.events[-1]["steps"] == []
