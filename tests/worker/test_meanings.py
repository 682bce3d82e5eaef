"""Programs told apart by their exact outputs: what counts as another meaning, and what as rounding."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from numtrace.evaluate.program import Program
from numtrace.instrument.parameters import ParameterArchives
from numtrace.worker.meanings import Meanings

SOURCE = """
func.func @main(%x: !torch.vtensor<[4],f32>) -> !torch.vtensor<[4],f32> {
  %c = torch.constant.float 1.302500e-01
  %0 = torch.aten.mul.Scalar %x, %c : !torch.vtensor<[4],f32>, !torch.float -> !torch.vtensor<[4],f32> loc("numtrace.7")
  return %0 : !torch.vtensor<[4],f32>
}
"""
LOWERED = """
util.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
  %c = arith.constant {constant} : f32
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.generic {{indexing_maps = [affine_map<(d) -> (d)>, affine_map<(d) -> (d)>],
      iterator_types = ["parallel"]}} ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {{
  ^bb0(%in: f32, %out: f32):
    %m = {op} %in, %c : f32 loc("numtrace.{stamp}")
    linalg.yield %m : f32
  }} -> tensor<4xf32>
  util.return %r : tensor<4xf32>
}}
"""
#: 0.13025 cut to f32, not rounded to nearest.
TRUNCATED = "0.130249992"


@pytest.fixture
def meanings(tmp_path: Path):
    (tmp_path / "source.mlir").write_text(SOURCE)

    def make(own_error=None) -> Meanings:
        inputs = [torch.tensor([1.0, -2.0, 3.0, 0.5])]
        made = Meanings("main", ParameterArchives([]), "torch", tmp_path, inputs, own_error)
        assert made.of(tmp_path / "source.mlir") == 0
        return made

    return make


@pytest.fixture
def lowered(tmp_path: Path):
    def write(constant: str = TRUNCATED, op: str = "arith.mulf", stamp: int = 7) -> Path:
        path = tmp_path / f"{op}-{constant}-{stamp}.mlir"
        path.write_text(LOWERED.format(constant=constant, op=op, stamp=stamp))
        return path

    return write


def test_a_scalar_that_the_lowering_rounded_is_no_other_meaning(meanings, lowered):
    assert meanings().of(lowered()) == 0


def test_another_operation_is_and_every_program_like_it_has_the_same_number(meanings, lowered):
    made = meanings()
    assert [made.of(lowered(op=op)) for op in ("arith.addf", "arith.mulf", "arith.subf")] == [1, 0, 2]
    assert made.of(lowered(op="arith.addf")) == 1
    max_abs, rel = made.gap(0, 1)
    # |x + c - xc| is largest at 3: 3 + 0.13025 - 0.39075; the largest reference is 0.39075.
    assert max_abs == pytest.approx(2.7395)
    assert rel == pytest.approx(2.7395 / 0.39075)


def test_another_constant_is_another_meaning(meanings, lowered):
    """0.1303 is no rounding of 0.13025."""
    assert meanings().of(lowered("0.1303")) == 1


def test_a_rounded_constant_of_another_source_op_is_not_excused(meanings, lowered):
    """Only the op that uses 0.13025 in the source may have it rounded; 1/7.677543 is no closed form either."""
    assert meanings().of(lowered(stamp=8)) in (0, 1)
    made = meanings()
    assert made.of(lowered("0.13025", stamp=8)) is not None


def test_a_constant_that_costs_more_than_rounding_is_another_meaning(meanings, lowered):
    """With no error at all allowed, the 2e-8 that the truncation is worth counts."""
    asked: list[Program] = []

    def none_allowed(program: Program, exact: list[torch.Tensor]) -> float:
        asked.append(program)
        return -1.0

    made = meanings(none_allowed)
    assert made.of(lowered()) == 1
    assert len(asked) == 1
    max_abs, _ = made.gap(0, 1)
    assert max_abs == pytest.approx(3 * (0.13025 - 0.130249992), rel=0.1)


def test_a_constant_within_torchs_own_error_is_weighed_once(meanings, lowered):
    asked: list[Program] = []

    def torchs(program: Program, exact: list[torch.Tensor]) -> float:
        asked.append(program)
        return 3e-8

    made = meanings(torchs)
    assert [made.of(lowered()), made.of(lowered())] == [0, 0]
    assert len(asked) == 1


def test_an_op_that_is_not_covered_has_no_meaning_and_says_why(meanings, tmp_path, lowered):
    path = lowered()
    path.write_text(path.read_text().replace("tensor.empty() : tensor<4xf32>", "util.null : tensor<4xf32>"))
    made = meanings()
    assert made.of(path) is None
    assert "util.null" in made.unknown[path]


def test_what_does_not_parse_has_no_meaning(meanings, tmp_path):
    path = tmp_path / "broken.mlir"
    path.write_text("util.func")
    made = meanings()
    assert made.of(path) is None
    assert "does not parse" in made.unknown[path]


def test_a_nan_on_one_side_is_another_meaning_of_no_size(meanings, lowered):
    made = meanings()
    assert made.of(lowered("0x7FC00000")) == 1
    assert made.gap(0, 1) == (None, None)


def test_beyond_the_range_of_float64_nothing_is_told(meanings, tmp_path):
    """exp(exp(7)) is no float64; that 1 over it is zero says nothing of the program."""
    path = tmp_path / "exp.mlir"
    text = LOWERED.format(constant="7.0", op="arith.mulf", stamp=9)
    stamp = 'loc("numtrace.9")'
    chain = f"%a = math.exp %c : f32 {stamp}\n    %b = math.exp %a : f32 {stamp}\n    %m = arith.mulf %in, %b : f32"
    path.write_text(text.replace("%m = arith.mulf %in, %c : f32", chain))
    made = meanings()
    assert made.of(path) is None
    assert "range of float64" in made.unknown[path]
