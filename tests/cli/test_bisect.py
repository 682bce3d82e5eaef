"""``numtrace bisect`` as a user runs it: faults in real pipelines of the installed IREE, and programs without one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from programs import conv_program

from numtrace.instrument.parameters import write_irpa

WINOGRAD = "iree-linalg-ext-convert-conv2d-to-winograd"

#: uint8 is summed as if it were int8: 200 + 100 + 3 is 303, and 47 with -56 for 200.
UINT8 = """
func.func @main(%a: !torch.vtensor<[3],ui8>) -> !torch.vtensor<[],si64> {
  %none = torch.constant.none
  %0 = torch.aten.sum %a, %none : !torch.vtensor<[3],ui8>, !torch.none -> !torch.vtensor<[],si64>
  return %0 : !torch.vtensor<[],si64>
}
"""

SUBTRACT = """
#id = affine_map<(d0) -> (d0)>
util.func public @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%a, %b : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %s = arith.subf %x, %y : f32
    linalg.yield %s : f32
  } -> tensor<4xf32> loc("difference"("net.tail"))
  util.return %0 : tensor<4xf32>
}
"""

#: A real pass of IREE's own pipeline that is told to make additions of subtractions.
PATTERN = """
pdl.pattern @wrong : benefit(1) {
  %type = pdl.type : f32
  %a = pdl.operand : %type
  %b = pdl.operand : %type
  %op = pdl.operation "arith.subf"(%a, %b : !pdl.value, !pdl.value) -> (%type : !pdl.type)
  pdl.rewrite %op {
    %new = pdl.operation "arith.addf"(%a, %b : !pdl.value, !pdl.value) -> (%type : !pdl.type)
    pdl.replace %op with %new
  }
}
"""

#: A map that numtrace does not evaluate.
#: By magnitude, which is more than one comparison, and of too many elements for an order that is found by swapping.
UNCOVERED = """
util.func public @main(%a: tensor<300xf32>) -> tensor<300xf32> {
  %0 = iree_linalg_ext.sort dimension(0) outs(%a : tensor<300xf32>) {
  ^bb0(%x: f32, %y: f32):
    %p = math.absf %x : f32
    %q = math.absf %y : f32
    %c = arith.cmpf ole, %p, %q : f32
    iree_linalg_ext.yield %c : i1
  } -> tensor<300xf32>
  util.return %0 : tensor<300xf32>
}
"""


@pytest.fixture
def conv(tmp_path: Path):
    """A 3x3 convolution with an init of its own, and its weights."""

    def write(init: str) -> list[str]:
        import torch

        generator = torch.Generator().manual_seed(0)
        arrays = {
            "w": torch.randn(8, 8, 3, 3, generator=generator).numpy(),
            "bias": torch.randn(8, generator=generator).numpy(),
        }
        (tmp_path / "conv.mlir").write_text(conv_program(init))
        write_irpa(tmp_path / "conv.irpa", arrays)
        return ["conv.mlir", "--params", "model=conv.irpa"]

    return write


def test_winograd_on_a_convolution_with_a_bias_is_named_with_its_ir(installed_numtrace, conv, tmp_path):
    done = installed_numtrace("bisect", *conv("bias"), "--pass", "winograd", "-o", "found", "--json")
    document = done.document
    assert (done.code, document["verdict"]) == (1, "found")
    (step,) = document["steps"]
    assert step["stage"] == "preprocessing"
    assert [ran["pass"] for ran in step["passes"]] == [WINOGRAD]
    assert step["passes"][0]["pipeline"] == f"{WINOGRAD}{{replace-all-convs=true}}"
    assert [op["name"] for op in step["ops"]] == ["conv_2d_nchw_fchw"]
    assert "linalg.conv_2d_nchw_fchw" in step["before"]["ir"]
    assert "winograd.input_transform" in step["after"]["ir"]
    assert "linalg.conv_2d" not in step["after"]["ir"]
    for side in ("before", "after"):
        assert (tmp_path / "found" / step[side]["file"]).is_file()
    assert json.loads((tmp_path / "found" / "bisect.json").read_text()) == document
    assert [stage["name"] for stage in document["stages"]] == ["input", "preprocessing"]
    refused = installed_numtrace("accept", "found")
    assert refused.code == 2
    assert "found is of numtrace bisect" in refused.err
    shown = installed_numtrace("show", "found", "--json")
    assert (shown.code, shown.document) == (0, document)


def test_winograd_on_a_convolution_that_begins_with_zero_changes_nothing(numtrace, conv):
    done = numtrace("bisect", *conv("zero"), "--pass", "winograd", "-o", "found")
    assert done.code == 0
    assert "unchanged: the exact outputs are the same from input to flow" in done.out


def test_a_fault_in_irees_own_pipeline_is_found_without_a_pass(numtrace, tmp_path):
    (tmp_path / "model.mlir").write_text(SUBTRACT)
    (tmp_path / "wrong.mlir").write_text(PATTERN)
    flag = f"--iree-preprocessing-pdl-spec-filename={tmp_path / 'wrong.mlir'}"
    done = numtrace(
        "bisect", "model.mlir", "--input", "4xf32=5 6 7 8", "--input", "4xf32=1 2 3 4", "--", flag
    )
    assert done.code == 1
    assert "iree-preprocessing-apply-pdl-patterns" in done.out
    assert "op         difference (net.tail)" in done.out
    before, after = done.out.split("before · ")[1].split("after · ")
    assert "arith.subf" in before
    assert "arith.addf" in after
    # (a + b) - (a - b) is 2b, at most 8.
    assert "8 at the output in exact arithmetic, first at difference" in done.out


def test_a_wrong_lowering_of_torch_is_found_between_the_source_and_the_input_stage(numtrace, tmp_path):
    (tmp_path / "model.mlir").write_text(UINT8)
    done = numtrace("bisect", "model.mlir", "--input", "3xui8=200 100 3", "--json")
    (step,) = done.document["steps"]
    assert (done.code, step["stage"]) == (1, "input")
    assert [ran["pass"] for ran in step["passes"]] == ["convert-torch-to-linalg"]
    assert step["max_abs"] == 256
    assert "torch.aten.sum" in step["before"]["ir"]
    assert "arith.extsi" in step["after"]["ir"]


def test_what_cannot_be_evaluated_is_not_called_right(numtrace, tmp_path):
    (tmp_path / "model.mlir").write_text(UNCOVERED)
    done = numtrace("bisect", "model.mlir")
    assert done.code == 4
    assert "inconclusive: not every stage has an exact value" in done.out
    assert "an order that is more than one comparison" in done.out


def test_bad_input_is_refused_and_leaves_no_directory(numtrace, tmp_path):
    done = numtrace("bisect", "missing.mlir", "--pass", "winograd")
    assert done.code == 2
    assert "there is no file missing.mlir" in done.said
    assert not list(tmp_path.iterdir())
    assert numtrace("bisect", "--pass", "nothing-of-the-sort").code == 2
