"""Snapshots: what the compiler prints, cut into modules in the order of the passes."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from numtrace.errors import CompileError
from numtrace.evaluate.op import walk
from numtrace.evaluate.program import Program
from numtrace.instrument.snapshots import split, take

HEAD = "// -----// IR Dump After {} //----- //\n"
MODULE = "module {{\n  util.func public @{}() {{\n    util.return\n  }}\n}}\n"


def test_pass_scope_and_module_of_each_in_order():
    printed = "".join(
        [
            HEAD.format("CSEPass: cse ('util.func' operation: @main$async)"), MODULE.format("a"), "\n\n",
            HEAD.format("DemotePass: iree-demote{type=bf16 operation=all} ('builtin.module' operation)"),
            MODULE.format("b"), "\n\n",
            HEAD.format("CanonicalizePass: canonicalize{test=false} ('util.initializer' operation)"),
            MODULE.format("c"), "\n\n",
        ]
    )  # fmt: skip
    assert list(split(printed)) == [
        ("cse", "util.func @main$async", MODULE.format("a")),
        ("iree-demote{type=bf16 operation=all}", "builtin.module", MODULE.format("b")),
        ("canonicalize{test=false}", "util.initializer", MODULE.format("c")),
    ]


def test_a_pass_that_only_runs_others_is_left_out():
    adaptor = "mlir::detail::OpPipelineAdaptorPass: iree-op-pipeline-adaptor ('builtin.module' operation)"
    printed = HEAD.format(adaptor) + MODULE.format("a") + "\n\n"
    assert list(split(printed)) == []


def test_where_no_pass_changed_anything_there_is_nothing():
    assert list(split("")) == []
    assert list(split("warning: and no module\n")) == []


def test_the_spelling_of_older_compilers():
    printed = HEAD.format("CSE (cse) ('func.func' operation: @f)") + MODULE.format("a") + "\n\n"
    assert [(name, scope) for name, scope, _ in split(printed)] == [("cse", "func.func @f")]


def test_warnings_between_modules_belong_to_none():
    printed = (
        "warning: before all\n"
        + HEAD.format("CSEPass: cse ('builtin.module' operation)")
        + MODULE.format("a")
        + '\n\nloc("x"): warning: something\n  note: and more\n'
        + HEAD.format("CSEPass: cse ('builtin.module' operation)")
        + MODULE.format("b")
        + "\n\n"
    )
    assert [text for _, _, text in split(printed)] == [MODULE.format("a"), MODULE.format("b")]


def test_resources_after_a_module_belong_to_it():
    resources = '{-#\n  dialect_resources: {\n    builtin: {\n      x: "0x0400"\n    }\n  }\n#-}\n'
    printed = HEAD.format("CSEPass: cse ('builtin.module' operation)") + MODULE.format("a") + "\n" + resources
    assert [text for _, _, text in split(printed + "\n\nwarning: after\n")] == [
        MODULE.format("a") + "\n" + resources
    ]


FLAGS = ["--iree-hal-target-backends=llvm-cpu"]
#: Two functions, for passes that run on one after the other.
SOURCE = """
util.func public @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = math.exp %a : tensor<4xf32> loc("numtrace.1")
  %1 = math.exp %a : tensor<4xf32> loc("numtrace.2")
  %2 = arith.subf %0, %1 : tensor<4xf32> loc("numtrace.3")
  util.return %2 : tensor<4xf32>
}
util.func public @g(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = arith.subf %a, %a : tensor<4xf32> loc("numtrace.4")
  util.return %0 : tensor<4xf32>
}
"""


@pytest.fixture(scope="module")
def taken(tmp_path_factory):
    folder = tmp_path_factory.mktemp("snapshots")
    source = folder / "source.mlir"
    source.write_text(SOURCE)
    return take(source, folder / "taken", None, "flow", FLAGS, 120)


def test_every_snapshot_is_a_whole_module_with_the_locations(taken):
    assert len(taken) > 5
    for snapshot in taken:
        program = Program.parse(snapshot.path.read_text())
        stamps = {stamp for op in walk([program.body]) for stamp in op.stamps}
        assert {3, 4} <= stamps
        assert "f$async" in program.functions or "f" in program.functions


def test_equal_expressions_go_at_the_pass_that_merges_them(taken):
    """Two exponentials become one at a cse (or the canonicalization that does it), and never come back."""
    counts = [snapshot.path.read_text().count("math.exp ") for snapshot in taken]
    merged = next(i for i, count in enumerate(counts) if count == 1)
    assert set(counts[:merged]) == {2}
    assert set(counts[merged:]) == {1}
    assert "cse" in taken[merged].name


def test_the_last_one_is_the_end_of_the_stage(taken):
    assert (taken[-1].name, taken[-1].path.name) == ("", "end.mlir")
    assert "flow.executable" in taken[-1].path.read_text()
    assert all(snapshot.name for snapshot in taken[:-1])


def test_no_two_neighbours_are_the_same(taken):
    texts = [snapshot.path.read_text() for snapshot in taken[:-1]]
    assert all(a != b for a, b in pairwise(texts))
    assert [snapshot.path.name[:3] for snapshot in taken[:-1]] == [f"{i:03}" for i in range(len(texts))]


def test_what_does_not_compile_is_an_error_as_without_snapshots(tmp_path: Path):
    source = tmp_path / "source.mlir"
    source.write_text(SOURCE.replace("math.exp", "math.nothing"))
    with pytest.raises(CompileError, match="nothing"):
        take(source, tmp_path / "taken", None, "flow", FLAGS, 120)
