"""Fingerprints and digests see what a pass did to an op."""

from __future__ import annotations

from numtrace.attribute.changes import changed_stamps, computing, fingerprints, stage_digest
from numtrace.evaluate.program import Program

TEXT = """
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32> loc("numtrace.1")
  %r = linalg.generic {indexing_maps = [affine_map<(d) -> (d)>, affine_map<(d) -> (d)>, affine_map<(d) -> (d)>],
      iterator_types = ["parallel"]} ins(%x, %y : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %m = arith.subf %a, %b : f32 loc("numtrace.2")
    linalg.yield %m : f32 loc("numtrace.2")
  } -> tensor<4xf32> loc("numtrace.2")
  return %r : tensor<4xf32> loc("numtrace.3")
}
"""


def test_swapped_operands_are_another_program() -> None:
    before, after = Program.parse(TEXT), Program.parse(TEXT.replace("%a, %b : f32 loc", "%b, %a : f32 loc"))
    assert stage_digest(before, []) != stage_digest(after, [])
    assert changed_stamps(fingerprints(before), fingerprints(after)) == [2]


def test_swapped_arguments_are_another_program() -> None:
    before, after = Program.parse(TEXT), Program.parse(TEXT.replace("ins(%x, %y :", "ins(%y, %x :"))
    assert stage_digest(before, []) != stage_digest(after, [])
    assert changed_stamps(fingerprints(before), fingerprints(after)) == [2]


def test_locations_and_names_change_nothing_and_flags_do() -> None:
    before = Program.parse(TEXT)
    renamed = Program.parse(TEXT.replace("%r", "%other").replace("%m", "%n"))
    assert stage_digest(before, []) == stage_digest(renamed, [])
    assert stage_digest(before, []) != stage_digest(before, ["--iree-opt-data-tiling"])


def test_an_op_that_was_rewritten_has_changed_and_its_reader_has_not() -> None:
    before = Program.parse(TEXT)
    after = Program.parse(TEXT.replace("arith.subf", "arith.addf"))
    assert changed_stamps(fingerprints(before), fingerprints(after)) == [2]


ZEROS = """
func.func @main(%x: f32) -> (f32, f32) {{
  %z = arith.constant {zero} : f32 loc("numtrace.{stamp}")
  %a = arith.maximumf %x, %z : f32 loc("numtrace.1")
  %b = arith.addf %x, %z : f32 loc("numtrace.2")
  return %a, %b : f32, f32 loc("numtrace.3")
}}
"""


def test_where_a_constant_stands_changes_nothing_and_its_value_its_readers() -> None:
    before, moved, other = (
        fingerprints(Program.parse(ZEROS.format(zero=zero, stamp=stamp)))
        for zero, stamp in ((0.0, 1), (0.0, 2), (1.0, 1))
    )
    assert changed_stamps(before, moved) == []
    assert changed_stamps(before, other) == [1, 2]


def test_only_ops_that_compute_are_counted() -> None:
    table = [{"kind": "util.global.load"}, {"kind": "linalg.generic"}, {"kind": "torch.constant.int"}]
    assert computing([0, 1, 2], table) == [1]
