"""Index arithmetic on floats: where it becomes data its rounding is rounding, where it picks elements it is not."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from programs import Bench

from numtrace.attribute.places import places, rounding
from numtrace.evaluate.op import walk
from numtrace.evaluate.program import Program

BODY = """
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {{
  %c = arith.constant 0.1 : f32
  %e = tensor.empty() : tensor<8xf32>
  %r = linalg.generic {{indexing_maps = [affine_map<(d) -> (d)>, affine_map<(d) -> (d)>],
      iterator_types = ["parallel"]}} ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {{
  ^bb0(%in: f32, %out: f32):
    %i = linalg.index 0 : index loc("numtrace.3")
    %l = arith.index_cast %i : index to i64 loc("numtrace.3")
    {arithmetic}
  }} -> tensor<8xf32>
  return %r : tensor<8xf32>
}}
"""

ARANGE = """
    %f = arith.sitofp %l : i64 to f32 loc("numtrace.3")
    %s = arith.mulf %f, %c : f32 loc("numtrace.3")
"""
SINE = '    %t = math.sin %s : f32 loc("numtrace.4")\n'
SUM = """
    %y = arith.addf %in, {weight} : f32 loc("numtrace.5")
    linalg.yield %y : f32
"""
#: The place is made a whole number, by which an element is chosen.
PICK = """
    %k = arith.fptosi %s : f32 to i64 loc("numtrace.{stamp}")
    %j = arith.index_cast %k : i64 to index loc("numtrace.3")
    %p = tensor.extract %x[%j] : tensor<8xf32> loc("numtrace.5")
"""


@pytest.mark.parametrize(
    ("arithmetic", "found"),
    [
        (ARANGE + SUM.format(weight="%s"), ["arith.sitofp", "arith.mulf"]),
        (ARANGE + SINE + SUM.format(weight="%t"), ["math.sin", "arith.sitofp", "arith.mulf"]),
        (ARANGE + PICK.format(stamp=3) + SUM.format(weight="%p"), []),
        (ARANGE + PICK.format(stamp=4) + SUM.format(weight="%p"), []),
    ],
    ids=["a number", "a number of a number", "an element", "an element chosen by another op"],
)
def test_what_becomes_data(arithmetic, found):
    main = Program.parse(BODY.format(arithmetic=arithmetic)).functions["main"]
    assert [op.name for op in places(main)] == found


def test_what_places_may_be_off():
    """Two roundings of 2^-24, of a number up to 8, which what is made follows four times, of 3 at most."""
    main = Program.parse(BODY.format(arithmetic=ARANGE + SUM.format(weight="%s"))).functions["main"]
    made = [torch.tensor([0.0, -3.0] + [1.0] * 6)]
    assert rounding(places(main), made) == 2 * 2.0**-24 * 9 * 4 * 3
    truncated = [op for op in walk(main.regions) if op.name == "arith.constant"]
    assert rounding(truncated, made) == 2 * 2.0**-24 * 9 * 4 * 3


STEPS = """
func.func @main(%x: !torch.vtensor<[10],f32>) -> !torch.vtensor<[10],f32> {
  %zero = torch.constant.float 0.0
  %end = torch.constant.float 1.0
  %step = torch.constant.float 0.1
  %none = torch.constant.none
  %one = torch.constant.int 1
  %r = torch.aten.arange.start_step %zero, %end, %step, %none, %none, %none, %none : !torch.float,
      !torch.float, !torch.float, !torch.none, !torch.none, !torch.none, !torch.none -> !torch.vtensor<[10],f32>
  %y = torch.aten.add.Tensor %x, %r, %one : !torch.vtensor<[10],f32>, !torch.vtensor<[10],f32>, !torch.int
      -> !torch.vtensor<[10],f32>
  return %y : !torch.vtensor<[10],f32>
}
"""


def test_a_step_that_is_no_f32(tmp_path):
    """IREE makes the numbers in f32, of a step that it truncates to 0.099999994; the source's are 0, 0.1, 0.2…"""
    ran = Bench(tmp_path, STEPS, inputs=["10xf32=0"]).run()
    assert ran.record["differing"] == []
    assert ran.record["places"] == ["arange"]
    ((constant, source),) = [(one["op"], one["source"]) for one in ran.record["constants"]]
    assert (constant, source) == ("arange", 0.1)
    exact = np.load(f"{ran.record['folder']}/exact0.npy")
    assert exact == pytest.approx(np.arange(10) / 10, rel=1e-15)
    # Nine steps that are each 0.1 - 13421772 / 2^27 = 5.96e-9 short.
    assert ran.record["split"]["semantic"]["constant"] == pytest.approx(9 * (0.1 - 13421772 / 2**27), rel=0.5)


RESIZE = """
func.func @main(%x: !torch.vtensor<[1,1,1,5],f32>) -> !torch.vtensor<[1,1,1,8],f32>
    attributes {torch.onnx_meta.opset_version = 18 : si64} {
  %none = torch.constant.none
  %scales = torch.operator "onnx.Constant"() {torch.onnx.value = dense<[1.0, 1.0, 1.0, 1.7]> : tensor<4xf32>}
      : () -> !torch.vtensor<[4],f32>
  %y = torch.operator "onnx.Resize"(%x, %none, %scales) {
      torch.onnx.mode = "MODE", torch.onnx.coordinate_transformation_mode = "half_pixel"}
      : (!torch.vtensor<[1,1,1,5],f32>, !torch.none, !torch.vtensor<[4],f32>) -> !torch.vtensor<[1,1,1,8],f32>
  return %y : !torch.vtensor<[1,1,1,8],f32>
}
"""


def test_an_interpolation_in_between(tmp_path):
    """Of 8 elements, 5·1.7 cut down, the k-th lies at (k + 1/2) / 1.7 - 1/2, within what there is."""
    x = np.array([1.0, -2.0, 4.0, 8.0, -16.0])
    spec = "1x1x1x5xf32=" + ",".join(map(str, x))
    ran = Bench(tmp_path, RESIZE.replace("MODE", "linear"), inputs=[spec]).run()
    assert ran.record["differing"] == []
    assert ran.record["places"] == ["Resize"]
    exact = np.load(f"{ran.record['folder']}/exact0.npy").reshape(-1)
    at = np.clip((np.arange(8) + 0.5) / float(np.float32(1.7)) - 0.5, 0, 4)
    assert exact == pytest.approx(np.interp(at, np.arange(5), x), rel=1e-12)
