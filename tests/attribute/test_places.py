"""Index arithmetic on floats: where it becomes data its rounding is rounding, where it picks elements it is not."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from commands import inside
from programs import Bench

from numtrace.attribute.places import Place, are_rounding, places
from numtrace.attribute.scalars import as_in_source
from numtrace.evaluate.machine import Machine, MakeMachine
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


def _apart(arithmetic: str, was: list[float], x: list[float] | None = None) -> bool:
    """Whether ``was`` is off by no more than the places of a body are."""
    program = Program.parse(BODY.format(arithmetic=arithmetic))
    main = program.functions["main"]
    found = places(main)
    given = [torch.tensor(x or [0.0] * 8, dtype=torch.float64)]

    def evaluate(make: MakeMachine) -> list[torch.Tensor]:
        with as_in_source([(op, Place()) for op in found]):
            return make({}).run(main.regions[0], given)

    now = evaluate(partial(Machine, program))
    return are_rounding([torch.tensor(was, dtype=torch.float64)], now, program, found, evaluate)


#: i · 0.1, of the 0.1 that f32 has.
EXACT = [i * float(np.float32(0.1)) for i in range(8)]


def test_each_element_may_be_off_by_the_rounding_of_its_own_place():
    """The product is rounded by 2^-24 of itself at most, of which eight times as much is allowed."""
    plain = ARANGE + SUM.format(weight="%s")
    assert _apart(plain, EXACT)
    assert _apart(plain, [value * (1 + 2.0**-24) for value in EXACT])
    for index in (0, 1, 7):
        off = [value + (1e-6 if n == index else 0.0) for n, value in enumerate(EXACT)]
        assert not _apart(plain, off), index


def test_at_the_top_of_a_sine_the_square_is_left():
    """sin(x) and sin(x + d) of x = π/2 are d²/2 apart; with d of 2^-24 · 3000 that is 1.6e-8."""
    steep = (
        ARANGE
        + """
    %big = arith.constant 4500.0 : f32
    %t = arith.mulf %s, %big : f32 loc("numtrace.3")
    %sum = arith.addf %t, %in : f32 loc("numtrace.5")
    %y = math.sin %sum : f32 loc("numtrace.5")
    linalg.yield %y : f32
"""
    )
    turns = [4500.0 * value for value in EXACT]
    x = [np.pi / 2 + 2 * np.pi * round(turn / (2 * np.pi)) - turn for turn in turns]
    off = 2.0**-24 * 3000
    assert (
        _apart(steep, [np.cos(0.0 if n < 7 else off) for n in range(8)], x) is False
    )  # no other has a first order
    x[3] -= np.pi / 4
    slope = [np.sin(np.pi / 4 if n == 3 else np.pi / 2) for n in range(8)]
    assert _apart(steep, [*slope[:7], np.cos(off)], x)
    assert not _apart(steep, [*slope[:7], np.cos(30 * off)], x)


def test_what_is_masked_says_nothing_of_the_others():
    """Beside -1e9, and where there is no number at all, an element is measured by its own place."""
    plain = ARANGE + SUM.format(weight="%s")
    for mask in (-1e9, -np.inf, np.nan):
        x = [0.0] * 7 + [mask]
        assert _apart(plain, [*EXACT[:7], EXACT[7] + mask], x)
        assert not _apart(plain, [*EXACT[:6], EXACT[6] + 1e-6, EXACT[7] + mask], x)


def test_what_a_place_picks_is_another_element():
    """floor(10 · i · 0.1) of the f32 0.1: at 1, 2 … 7 the next lower number is another whole one."""
    floors = (
        ARANGE
        + """
    %ten = arith.constant 10.0 : f32
    %t = arith.mulf %s, %ten : f32 loc("numtrace.4")
    %u = math.floor %t : f32 loc("numtrace.4")
"""
        + SUM.format(weight="%u")
    )
    assert _apart(floors, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])
    assert not _apart(floors, [0.0, 1.0, 1.0, 3.0, 4.0, 5.0, 6.0, 7.0])


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


PICKED = """
func.func @main(%x: !torch.vtensor<[8],f32>, %z: !torch.vtensor<[8],f32>)
    -> (!torch.vtensor<[8],f32>, !torch.vtensor<[8],f32>) {
  %zero = torch.constant.float 0.0
  %end = torch.constant.float 0.8
  %step = torch.constant.float 0.1
  %none = torch.constant.none
  %one = torch.constant.int 1
  %r = torch.aten.arange.start_step %zero, %end, %step, %none, %none, %none, %none : !torch.float,
      !torch.float, !torch.float, !torch.none, !torch.none, !torch.none, !torch.none -> !torch.vtensor<[8],f32>
  %a = torch.aten.mul.Tensor %x, %r : !torch.vtensor<[8],f32>, !torch.vtensor<[8],f32> -> !torch.vtensor<[8],f32>
  %b = torch.aten.floor %a : !torch.vtensor<[8],f32> -> !torch.vtensor<[8],f32>
  %c = torch.aten.add.Tensor %a, %b, %one : !torch.vtensor<[8],f32>, !torch.vtensor<[8],f32>, !torch.int
      -> !torch.vtensor<[8],f32>
  %d = torch.aten.mul.Tensor %z, %r : !torch.vtensor<[8],f32>, !torch.vtensor<[8],f32> -> !torch.vtensor<[8],f32>
  %e = torch.aten.floor %d : !torch.vtensor<[8],f32> -> !torch.vtensor<[8],f32>
  %f = torch.aten.add.Tensor %d, %e, %one : !torch.vtensor<[8],f32>, !torch.vtensor<[8],f32>, !torch.int
      -> !torch.vtensor<[8],f32>
  return %c, %f : !torch.vtensor<[8],f32>, !torch.vtensor<[8],f32>
}
"""


@pytest.mark.parametrize("first", [True, False])
def test_places_are_believed_of_one_dispatch_at_a_time(tmp_path, first):
    """Two of one body: of the one the place is only data, of the other 10 · 0.3 is below 3, and the floor is 2."""
    smooth, picked = "8xf32=0.4", "8xf32=1,1,1,10,1,1,1,1"
    inputs = [smooth, picked] if first else [picked, smooth]
    ran = Bench(tmp_path, PICKED, inputs=inputs).run()
    assert [site["semantic"]["max_abs"] for site in ran.record["differing"]] == [pytest.approx(1, abs=1e-6)]
    assert ran.record["split"]["semantic"]["max_abs"] == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(
    ("program", "inputs", "code", "says"),
    [
        (STEPS, ["10xf32=0"], 0, "unchanged: the exact outputs are the same"),
        (
            PICKED,
            ["8xf32=0.4", "8xf32=1,1,1,10,1,1,1,1"],
            1,
            "changes the mathematics: 1 at the output",
        ),
    ],
    ids=["a number", "an element"],
)
def test_bisect_reads_places_as_run_does(tmp_path, program, inputs, code, says):
    (tmp_path / "m.mlir").write_text(program)
    given = [word for spec in inputs for word in ("--input", spec)]
    result = inside("bisect", "m.mlir", *given, "-o", "out", cwd=tmp_path)
    assert result.code == code, result.err
    assert says in result.out


WITH_GELU = STEPS.replace(
    "  %y = torch.aten.add.Tensor %x,",
    """  %tanh = torch.constant.str "tanh"
  %g = torch.aten.gelu %x, %tanh : !torch.vtensor<[10],f32>, !torch.str -> !torch.vtensor<[10],f32>
  %y = torch.aten.add.Tensor %g,""",
)


def test_places_beside_a_fault_are_not_named(tmp_path):
    """Of tanh-GELU the constant is wrong (tests/cases/t18-gelu-tanh-constant), of arange nothing is."""
    (tmp_path / "m.mlir").write_text(WITH_GELU)
    result = inside("run", "m.mlir", "--input", "10xf32=1", "--json", "-o", "out", cwd=tmp_path)
    (variant,) = result.document["variants"]
    assert variant["verdict"] == "lowering-bug"
    assert variant["reason"].endswith("brought in at gelu")
