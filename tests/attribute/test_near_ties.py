"""Decisions on whole numbers that winograd leaves with 1e-13 of noise: near ties, and what must not pass for one."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from convolved import Convolution
from faults.piece import filled, generic
from programs import Recorder

from numtrace.attribute.decisions import decides
from numtrace.attribute.near_ties import Ties, noise_of
from numtrace.evaluate.program import Program
from numtrace.worker.bisect import bisect

#: Its result is exact, and often zero.
WHOLE = Convolution.of_whole_numbers(12)
_ZERO = "%z = arith.constant 0.0 : f32\n"
_ABOVE = "%c = arith.cmpf ogt, {}, %z : f32\n%r = arith.uitofp %c : i1 to f32"
POSITIVE = _ZERO + _ABOVE.format("%a")
FLOOR = "%r = math.floor %a : f32"
#: Zero where the convolution is negative, in every evaluation of it.
RECTIFIED = _ZERO + "%m = arith.maximumf %a, %z : f32\n" + _ABOVE.format("%m")


def test_a_decision_on_what_is_equal_but_for_rounding_is_a_near_tie(tmp_path: Path) -> None:
    whole = "%i = arith.fptosi %a : f32 to i32\n%r = arith.sitofp %i : i32 to f32"
    half = "%h = arith.constant 0.5 : f32\n%m = arith.mulf %a, %h : f32\n%r = math.roundeven %m : f32"
    root = "%m = math.absf %a : f32\n%r = math.sqrt %m : f32"
    told, reason, ran = WHOLE.with_winograd(tmp_path, WHOLE.program(POSITIVE, FLOOR, whole, half, root))
    assert told == "ok", reason
    assert "hang on the rounding of float64" in reason
    assert not ran.record["differing"]
    assert ran.record["split"]["semantic"]["pass"] < 1e-11
    deciding = [site for site in ran.sites if site["near_ties"]]
    assert deciding and all(site["match"] == "verified" for site in deciding)
    assert all(site["semantic"]["max_abs"] < 1e-11 for site in deciding)


#: The channel that is greatest, and what a table has for it, in dispatches of their own.
_ARGMAX = """
  %lowest = arith.constant 0xFF800000 : f32
  %first = arith.constant 0 : i32
  %ve = tensor.empty() : tensor<1x12x12xf32>
  %be = tensor.empty() : tensor<1x12x12xi32>
  %m = linalg.fill ins(%lowest : f32) outs(%ve : tensor<1x12x12xf32>) -> tensor<1x12x12xf32>
  %n = linalg.fill ins(%first : i32) outs(%be : tensor<1x12x12xi32>) -> tensor<1x12x12xi32>
  %best:2 = linalg.generic {indexing_maps = [affine_map<(n, h, w, c) -> (n, c, h, w)>,
      affine_map<(n, h, w, c) -> (n, h, w)>, affine_map<(n, h, w, c) -> (n, h, w)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%y : tensor<1x8x12x12xf32>) outs(%m, %n : tensor<1x12x12xf32>, tensor<1x12x12xi32>) {
  ^bb0(%p: f32, %a: f32, %b: i32):
    %k = linalg.index 3 : index
    %ki = arith.index_cast %k : index to i32
    %c = arith.cmpf ogt, %p, %a : f32
    %v = arith.select %c, %p, %a : f32
    %j = arith.select %c, %ki, %b : i32
    linalg.yield %v, %j : f32, i32
  } -> (tensor<1x12x12xf32>, tensor<1x12x12xi32>)
  %apart = util.optimization_barrier %best#1 : tensor<1x12x12xi32>
  %table = arith.constant dense<[1.0, 20.0, 300.0, 4.0, 50.0, 600.0, 7.0, 80.0]> : tensor<8xf32>
  %last = linalg.generic {indexing_maps = [affine_map<(n, h, w) -> (n, h, w)>, affine_map<(n, h, w) -> (n, h, w)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%apart : tensor<1x12x12xi32>) outs(%ve : tensor<1x12x12xf32>) {
  ^bb0(%b: i32, %o: f32):
    %at = arith.index_cast %b : i32 to index
    %g = tensor.extract %table[%at] : tensor<8xf32>
    linalg.yield %g : f32
  } -> tensor<1x12x12xf32>
"""


def test_what_is_gathered_by_a_near_tie_is_none_of_the_gathers_fault(tmp_path: Path) -> None:
    text = WHOLE.program(more=_ARGMAX, results="tensor<1x12x12xf32>")
    told, reason, ran = WHOLE.with_winograd(tmp_path, text)
    assert told == "ok", reason
    y = torch.nn.functional.conv2d(torch.from_numpy(WHOLE.x), torch.from_numpy(WHOLE.weights))
    tied = int(((y == y.amax(1, keepdim=True)).sum(1) > 1).sum())
    assert 0 < sum(site["near_ties"] for site in ran.sites) <= tied
    assert ran.record["split"]["semantic"]["max_abs"] == 0


@pytest.mark.parametrize("body", [POSITIVE, RECTIFIED], ids=["noise at the threshold", "exact zeros"])
def test_another_comparison_is_no_near_tie(tmp_path: Path, body: str) -> None:
    """x >= 0 in place of x > 0: where x is zero it differs on the source's own bits."""
    told, reason, ran = WHOLE.with_winograd(tmp_path, WHOLE.program(body), "cmpf ogt", "cmpf oge")
    assert told == "pass-bug", reason
    (site,) = ran.record["differing"]
    assert "elementwise" in site["dispatch"]


def test_a_dropped_bias_is_not_hidden_by_the_floor_after_it(tmp_path: Path) -> None:
    """Whole numbers all shifted by one are as near to whole numbers."""
    told, reason, ran = WHOLE.with_winograd(tmp_path, WHOLE.program(FLOOR, start="1.0"))
    assert told == "pass-bug", reason
    assert [site["op"] for site in ran.record["differing"]] == ["conv_2d_nchw_fchw"]


#: What the logarithm of is taken, the eps in it as MLIR prints it and another, and by what the result differs at zeros.
EPS = {
    "a maximum": (
        "%e = arith.constant 1.0e-12 : f32\n%b = math.absf %a : f32\n%r = arith.maximumf %b, %e : f32",
        "9.99999996E-13", "2.000000e-11", math.log(20),
    ),
    "a sum": (
        _ZERO + "%b = arith.maximumf %a, %z : f32\n%q = arith.mulf %b, %b : f32\n"
        "%e = arith.constant 1.0e-20 : f32\n%r = arith.addf %q, %e : f32",
        "9.99999968E-21", "1.000000e-14", math.log(1e6),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("kept", "old", "new", "apart"), EPS.values(), ids=EPS)
@pytest.mark.parametrize("stored", [False, True], ids=["fused", "stored"])
def test_another_eps_is_no_near_tie(
    tmp_path: Path, kept: str, old: str, new: str, apart: float, stored: bool
) -> None:
    """1e-14 is far below the noise of the convolution, and far above the noise of its zeros' squares."""
    out, log = WHOLE.out, "%r = math.log %a : f32"
    more = (
        filled("e0", out) + generic("m", ["nchw", "nchw"], [("y", out)], ("e0", out), kept)
        + (f"%b = util.optimization_barrier %m : {out}\n" if stored else "")
        + filled("e1", out)
        + generic("last", ["nchw", "nchw"], [("b" if stored else "m", out)], ("e1", out), log)
    )  # fmt: skip
    text = WHOLE.program(more=more, results=out)
    (tmp_path / "right").mkdir()
    (tmp_path / "wrong").mkdir()
    told, reason, _ = WHOLE.with_winograd(tmp_path / "right", text)
    assert told == "ok", reason
    told, reason, ran = WHOLE.with_winograd(tmp_path / "wrong", text, old, new)
    assert told == "pass-bug", reason
    assert ran.record["split"]["semantic"]["pass"] == pytest.approx(apart, rel=1e-6)


def _zero_sum() -> Convolution:
    """Filters whose weights add up to 0 but for f32, on an image that is 1e5 everywhere but in a corner."""
    x = np.full((1, 8, 14, 14), 1e5, np.float32)
    x[..., 10:, 10:] += np.random.default_rng(2).integers(0, 3, (4, 4)).astype(np.float32)
    w = np.random.default_rng(3).integers(-8, 9, (8, 8, 3, 3)).astype(np.float32) / 16
    w[:, :, 1, 1] -= w.sum((2, 3))
    return Convolution(x, w)


NOT_ZERO = _ZERO + "%c = arith.cmpf une, %a, %z : f32\n%r = arith.uitofp %c : i1 to f32"


@pytest.mark.parametrize("flat", [False, True], ids=["but for a corner", "flat"])
def test_whether_what_cancels_is_zero_is_a_near_tie(tmp_path: Path, flat: bool) -> None:
    """Noise never makes an exact zero of what another order of adding makes 1e-11 of."""
    conv = _zero_sum()
    if flat:
        conv = Convolution(np.full_like(conv.x, 1e5), conv.weights)
    steep = "%k = arith.constant 1.0 : f32\n%r = arith.divf %k, %a : f32"
    told, reason, ran = conv.with_winograd(tmp_path, conv.program(NOT_ZERO, POSITIVE, steep))
    assert told != "pass-bug", reason
    assert not ran.record["differing"], reason


def test_bisection_takes_near_ties_for_the_same_meaning(tmp_path: Path) -> None:
    made = WHOLE.bench(tmp_path, WHOLE.program(FLOOR))
    folder = tmp_path / "search"
    folder.mkdir()
    recorder = Recorder()
    bisect(made.job(folder, "winograd") | {"every": False}, recorder)
    assert not recorder.events[-1]["steps"]
    assert not any(stage["changed"] for stage in recorder.events[-1]["stages"])


#: An op that is of no source op.
OP: Any = SimpleNamespace(stamps=())


def test_a_value_is_the_sources_only_if_all_of_it_is() -> None:
    source = torch.tensor([[1.0, 2.0], [3.0, 0.0]], dtype=torch.float64)
    noise = torch.tensor([[1e-13, 0.0], [0.0, -1e-13]], dtype=torch.float64)

    def settled(value: torch.Tensor, moved: torch.Tensor) -> torch.Tensor:
        ties = Ties({1: [source]})
        ties.note(OP, (0, 0), value + moved, 0.0, 3.0)
        return ties.settled(OP, (0, 0), value)[0]

    assert torch.equal(settled(source + noise, 2 * noise), source)
    assert torch.equal(settled((source + noise).T, 2 * noise.T), source.T)
    assert torch.equal(settled((source + noise).reshape(4), 2 * noise.reshape(4)), source.reshape(4))
    # What noise does not move keeps its bits, and so does all of a value that is another in one element.
    assert torch.equal(settled(source + noise, noise / 64), source + noise)
    other = source + torch.tensor([[0.0, 0.0], [0.0, 1e-9]])
    assert settled(other, 2 * noise) is other


def test_without_a_measurement_nothing_is_the_sources() -> None:
    value = torch.tensor([1.0], dtype=torch.float64)
    assert Ties({1: [value + 1e-15]}).settled(OP, (0, 0), value) == (value, None)


def test_a_value_is_that_of_its_own_op() -> None:
    """x and x + 1e-20 are the same to noise of 1e-14, and their logarithms are not."""
    x = torch.tensor([0.0, 3.0], dtype=torch.float64)
    ties = Ties({1: [x], 2: [x + 1e-20]})
    for stamp, settled in ((1, x), (2, x + 1e-20)):
        op: Any = SimpleNamespace(stamps=(stamp,))
        made = x + torch.tensor([1e-14, 0.0])
        ties.note(op, (stamp, 0), made + torch.tensor([1e-14, 0.0]), 0.0, 3.0)
        assert torch.equal(ties.settled(op, (stamp, 0), made)[0], settled)


def test_where_all_cancels_the_noise_is_noted() -> None:
    """15 - 15 with noise of 1e-14 before: of the result nothing is left but that."""
    ties, made = (
        Ties({1: [torch.zeros(2, dtype=torch.float64)]}),
        torch.tensor([1e-14, -2e-14], dtype=torch.float64),
    )
    ties.note(OP, (0, 0), 2 * made, 0.0, 15.0)
    assert torch.equal(ties.settled(OP, (0, 0), made)[0], torch.zeros(2, dtype=torch.float64))


def test_a_sample_that_is_no_number_tells_nothing() -> None:
    value = torch.tensor([1.0, 2.0], dtype=torch.float64)
    samples = [value + torch.tensor([float("nan"), 1e-14]), value + torch.tensor([1e-14, float("inf")])]
    assert noise_of(value, samples).tolist() == pytest.approx([32e-14, 32e-14], rel=0.1)


@pytest.mark.parametrize(
    ("body", "jumps"),
    [
        ("%c = arith.cmpf ogt, %x, %y : f32\n%r = arith.select %c, %x, %y : f32", False),
        ("%c = arith.cmpf ogt, %x, %y : f32\n%r = arith.select %c, %y, %x : f32", False),
        ("%c = arith.cmpf ogt, %x, %y : f32\n%n = arith.negf %y : f32\n%r = arith.select %c, %x, %n : f32", True),
        ("%c = arith.cmpf ogt, %x, %y : f32\n%r = arith.uitofp %c : i1 to f32", True),
        ("%r = math.floor %x : f32", True),
        ("%r = arith.addf %x, %y : f32", False),
    ],
)  # fmt: skip
def test_a_maximum_written_as_a_choice_does_not_jump(body: str, jumps: bool) -> None:
    text = f"func.func @main(%x: f32, %y: f32) -> f32 {{\n{body}\nreturn %r : f32\n}}"
    program = Program.parse(text)
    assert decides([program.body]) is jumps
