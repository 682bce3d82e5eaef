"""Steep functions of zeros that have noise, and what is left where equal numbers cancel: nobody's fault."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from convolved import CONSTANT, NORMED, Convolution, centred, channel_sums
from faults.piece import filled, generic
from faults.planting import edited
from programs import Bench, Recorder

from numtrace.attribute.near_ties import Ties
from numtrace.attribute.noise import Noisy, undecided
from numtrace.attribute.verdict import judge
from numtrace.evaluate.program import Program
from numtrace.worker.bisect import bisect

_ZERO = "%z = arith.constant 0.0 : f32\n"
_ONE = "%one = arith.constant 1.0 : f32\n"
POSITIVE = _ZERO + "%c = arith.cmpf ogt, %a, %z : f32\n%r = arith.uitofp %c : i1 to f32"
FLOOR = "%r = math.floor %a : f32"


@pytest.mark.parametrize("body", [POSITIVE, FLOOR], ids=["above zero", "floor"])
def test_a_decision_on_a_part_of_what_winograd_makes_is_a_near_tie(tmp_path: Path, body: str) -> None:
    """16 is no multiple of its tile: the decision reads a slice of 18 by 18."""
    whole = Convolution.of_whole_numbers(16)
    told, reason, ran = whole.with_winograd(tmp_path, whole.program(body))
    assert told == "ok", reason
    assert not ran.record["differing"]


def test_another_comparison_of_a_part_is_none(tmp_path: Path) -> None:
    whole = Convolution.of_whole_numbers(16)
    told, reason, _ = whole.with_winograd(tmp_path, whole.program(POSITIVE), "cmpf ogt", "cmpf oge")
    assert told == "pass-bug", reason


STEEP = {
    "1/x": _ONE + "%r = arith.divf %one, %a : f32",
    "rsqrt": "%m = math.absf %a : f32\n%r = math.rsqrt %m : f32",
    "log1p": "%n = arith.constant -1.0 : f32\n%m = math.absf %a : f32\n%s = arith.addf %m, %n : f32\n"
    "%r = math.log1p %s : f32",
    "cbrt": "%r = math.cbrt %a : f32",
    "powf": "%k = arith.constant 0.3 : f32\n%m = math.absf %a : f32\n%r = math.powf %m, %k : f32",
    "atan2": "%n = arith.constant -1.0 : f32\n%r = math.atan2 %a, %n : f32",
    "x/|x|": "%m = math.absf %a : f32\n%r = arith.divf %a, %m : f32",
    "tan": "%k = arith.constant 1.57079637 : f32\n%m = arith.addf %a, %k : f32\n%r = math.tan %m : f32",
}  # fmt: skip


def test_a_steep_function_of_a_zero_with_noise_is_nobodys_fault(tmp_path: Path) -> None:
    whole = Convolution.of_whole_numbers(12)
    told, reason, ran = whole.with_winograd(tmp_path, whole.program(*STEEP.values()))
    assert told != "pass-bug", reason
    assert not ran.record["differing"]


def test_a_missing_bias_is_seen_through_a_steep_function(tmp_path: Path) -> None:
    whole = Convolution.of_whole_numbers(12)
    text = whole.program(STEEP["1/x"], start="0.5")
    told, reason, ran = whole.with_winograd(tmp_path, text)
    assert told == "pass-bug", reason
    assert [site["op"] for site in ran.record["differing"]] == ["conv_2d_nchw_fchw"]


@pytest.mark.parametrize(
    "lines",
    [
        ["%r = arith.addf %q, %q : f32"],
        ["%k = arith.constant 1.0e6 : f32", "%r = arith.mulf %q, %k : f32"],
        [*NORMED, "%r = arith.mulf %q, %i : f32"],
    ],
    ids=["cancelled", "and scaled", "and normalised"],
)
def test_what_is_left_of_equal_numbers_is_nobodys_fault(tmp_path: Path, lines: list[str]) -> None:
    told, reason, ran = CONSTANT.with_winograd(tmp_path, centred(CONSTANT, *lines))
    assert told != "pass-bug", reason
    assert not ran.record["differing"]


def test_bisection_takes_it_for_the_same_meaning(tmp_path: Path) -> None:
    whole = Convolution.of_whole_numbers(12)
    made = whole.bench(tmp_path, whole.program(STEEP["1/x"], STEEP["atan2"]))
    folder = tmp_path / "search"
    folder.mkdir()
    recorder = Recorder()
    bisect(made.job(folder, "winograd") | {"every": False}, recorder)
    assert not recorder.events[-1]["steps"]


def test_only_what_noise_moves_is_undecided() -> None:
    """Of f(x) = 1/x at a zero, at 1 with another numerator, and a decision at a threshold; sample k adds k's sign."""
    source = torch.tensor([torch.inf, 2.0, 0.0], dtype=torch.float64)
    value = torch.tensor([3e16, 1.0, 1.0], dtype=torch.float64)

    def evaluate(seed: int) -> list[torch.Tensor]:
        return [torch.tensor([-1e13, 1.0 + 1e-13, seed % 2], dtype=torch.float64)]

    assert undecided(value, value, source, evaluate, 0).tolist() == [True, False, True]


def test_an_integer_that_noise_moves_by_one_is_not_anything() -> None:
    """Of 168 the noise may make 167: that explains 167, and neither 34 nor what stays."""
    source = torch.tensor([167, 34, 168], dtype=torch.int16)
    value = torch.tensor([168, 168, 34], dtype=torch.int16)

    def evaluate(seed: int) -> list[torch.Tensor]:
        return [value - torch.tensor([seed % 2, seed % 2, 0], dtype=torch.int16)]

    assert undecided(value, value, source, evaluate, 0).tolist() == [True, False, False]


def test_whole_numbers_have_no_noise() -> None:
    """3 + 4 and 8 / 4 are exact; 1 / 3 is not."""
    text = """
    util.func public @main(%a: tensor<f32>, %b: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
      %0 = arith.addf %a, %b : tensor<f32>
      %1 = arith.divf %b, %a : tensor<f32>
      util.return %0, %1 : tensor<f32>, tensor<f32>
    }
    """
    program = Program.parse(text)
    body = program.functions["main"].regions[0]

    def made(a: float, b: float) -> list[float]:
        values = [torch.tensor(x, dtype=torch.float64) for x in (a, b)]
        return [value.item() for value in Noisy(program, Ties(), 1).run(body, values)]

    assert made(4.0, 8.0) == [12.0, 2.0]
    total, quotient = made(3.0, 1.0)
    assert total == 4.0 and quotient != 1 / 3 and abs(quotient - 1 / 3) < 2.0**-43


def test_noise_that_grows_over_several_dispatches_is_nobodys_fault(tmp_path: Path) -> None:
    """A group norm with eps 1e-12 of an image that is 100 but for 1e-5: its noise of 1e-14 is 1e-9 of what is left."""
    rng = np.random.default_rng(0)
    x = (100 + rng.integers(-1, 2, (1, 8, 14, 14)) * 1e-5).astype(np.float32)
    conv = Convolution(x, CONSTANT.weights)
    out, sums = conv.out, "tensor<1x8xf32>"
    mean = "%n = arith.constant 144.0 : f32\n%m = arith.divf %b, %n : f32\n"
    both = ["nchw", "nc", "nchw"]
    more = (
        channel_sums("t", "y", out) + filled("e", out)
        + generic("q", both, [("y", out), ("t", sums)], ("e", out), mean + "%r = arith.subf %a, %m : f32")
        + filled("f", out) + generic("sq", ["nchw", "nchw"], [("q", out)], ("f", out), "%r = arith.mulf %a, %a : f32")
        + channel_sums("var", "sq", out) + filled("g", out)
        + generic("last", both, [("q", out), ("var", sums)], ("g", out), mean
                  + "%eps = arith.constant 1.0e-12 : f32\n%s = arith.addf %m, %eps : f32\n%i = math.rsqrt %s : f32\n"
                  "%r = arith.mulf %a, %i : f32")
    )  # fmt: skip
    text = conv.program(more=more, results=out)
    told, reason, ran = conv.with_winograd(tmp_path, text)
    assert told != "pass-bug", reason
    assert not ran.record["differing"] or "noise" in reason
    (tmp_path / "wrong").mkdir()
    told, reason, _ = conv.with_winograd(tmp_path / "wrong", text, "1.440000e+02", "1.430000e+02")
    assert told == "pass-bug", reason


_LINE = "tensor<8xf32>"
#: An elementwise program, what is put in the place of what, and data beside which it shows.
PLANTED = {
    "a rounding of exact halves": (
        "%q = arith.constant 0.25 : f32\n%m = arith.mulf %a, %q : f32\n%r = math.roundeven %m : f32",
        "math.roundeven", "math.round", [2, 10, -2, -10, 1, 3, 0, 100],
    ),
    "another eps beside zeros": (
        "%e = arith.constant 1.0e-20 : f32\n%m = arith.mulf %a, %a : f32\n%s = arith.addf %m, %e : f32\n"
        "%r = math.log %s : f32",
        "9.99999968E-21", "1.000000e-14", [0, 1, 2, 3, 0, 5, 100, 0],
    ),
    "no eps beside large numbers": (
        "%e = arith.constant 1.0e-6 : f32\n%s = arith.addf %a, %e : f32\n%r = math.log %s : f32",
        "9.99999997E-7", "0.000000e+00", [1e8, 1e6, 1, 1e-3, 1e-6, 2e-6, 1e-5, 3],
    ),
    "a root of what cancels": (
        "%m = arith.mulf %a, %a : f32\n%n = arith.mulf %a, %a : f32\n%d = arith.subf %m, %n : f32\n"
        "%q = math.sqrt %d : f32\n%h = arith.constant 0.5 : f32\n%r = arith.addf %q, %h : f32",
        "5.000000e-01", "2.500000e-01", [0.1, 0.7, 1.3, 2.9, 3.1, 1e3, 1e-3, 7],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("body", "old", "new", "data"), PLANTED.values(), ids=PLANTED)
def test_a_fault_beside_what_is_exact_is_no_noise(
    tmp_path: Path, body: str, old: str, new: str, data: list[float]
) -> None:
    np.save(tmp_path / "x.npy", np.array(data, np.float32))
    text = f"util.func public @main(%x: {_LINE}) -> {_LINE} {{\n{filled('e', _LINE)}" + generic(
        "out", ["i", "i"], [("x", _LINE)], ("e", _LINE), body
    )
    bench = Bench(
        tmp_path / "bench", f"{text}\nutil.return %out : {_LINE}\n}}", inputs=[f"@{tmp_path / 'x.npy'}"]
    )
    with edited("preprocessing", lambda ir: ir.replace(old, new)):
        ran = bench.run()
    told = judge(ran.record, ran.sites, is_baseline=True, baseline=None, tolerant=False)
    assert told.verdict == "lowering-bug", told.reason


def test_noise_at_the_outputs_does_not_acquit_what_a_site_is_sure_of(tmp_path: Path) -> None:
    """A dropped bias of 3, and a sum of floors, each a near tie, that reaches every element."""
    whole = Convolution.of_whole_numbers(12)
    out, sums = whole.out, "tensor<1x8xf32>"
    more = (
        filled("e", out) + generic("fl", ["nchw", "nchw"], [("y", out)], ("e", out), FLOOR)
        + channel_sums("t", "fl", out) + filled("f", out)
        + generic("last", ["nchw", "nc", "nchw"], [("y", out), ("t", sums)], ("f", out),
                  "%k = arith.constant 0.01 : f32\n%m = arith.mulf %b, %k : f32\n%r = arith.addf %a, %m : f32")
    )  # fmt: skip
    told, reason, _ = whole.with_winograd(tmp_path, whole.program(start="3.0", more=more, results=out))
    assert told == "pass-bug", reason
    assert "conv_2d_nchw_fchw" in reason


def test_complex_numbers_have_noise_of_their_size() -> None:
    """(1 + i)² is 2i: its real part, where 1 - 1 cancels, moves by as little of 2 as the imaginary part does."""
    program = Program.parse("""
    func.func @main(%z: complex<f32>) -> (f32, f32) {
      %w = complex.mul %z, %z : complex<f32>
      %re = complex.re %w : complex<f32>
      %im = complex.im %w : complex<f32>
      return %re, %im : f32, f32
    }
    """)
    body = program.functions["main"].regions[0]
    for seed in range(4):
        re, im = Noisy(program, Ties(), seed).run(body, [torch.tensor(1 + 1j, dtype=torch.complex128)])
        assert 2**-48 <= abs(float(re)) <= 2**-47
        assert 2**-48 <= abs(float(im) - 2) <= 2**-47
