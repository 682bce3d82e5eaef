"""What noise alone speaks for: not ok where it can be seen, and no accusation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from convolved import CONSTANT, NORMED, Convolution, centred
from faults.piece import filled, generic
from programs import Bench

from numtrace.attribute.noise import undecided
from numtrace.attribute.verdict import judge

#: What keeps f of a difference that cancels away from noise, and what that is without it.
SURE = {
    "1/(q + 1e-3)": (
        "%one = arith.constant 1.0 : f32\n%k = arith.constant 1.0e-3 : f32\n%s = arith.addf %q, %k : f32\n"
        "%r = arith.divf %one, %s : f32",
        "1.000000e-03",
    ),
    "an eps": (
        "\n".join((*NORMED, "%r = arith.mulf %q, %i : f32")).replace("1.0e-12", "1.0e-5"),
        "9.99999974E-6",
    ),
    "q > -1e-6": (
        "%k = arith.constant -1.0e-6 : f32\n%c = arith.cmpf ogt, %q, %k : f32\n%r = arith.uitofp %c : i1 to f32",
        "-9.99999997E-7",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("body", "constant"), SURE.values(), ids=SURE)
def test_a_program_that_lost_what_kept_it_from_noise_is_not_ok(
    tmp_path: Path, body: str, constant: str
) -> None:
    """The source knows each element to many digits, and the program without the constant none of them."""
    text = centred(CONSTANT, body)
    told, reason, _ = CONSTANT.with_winograd(tmp_path, text)
    assert told == "ok", reason
    (tmp_path / "wrong").mkdir()
    told, reason, _ = CONSTANT.with_winograd(tmp_path / "wrong", text, constant, "0.000000e+00")
    assert told != "ok", reason


def test_elements_that_hang_on_one_decision_are_one() -> None:
    """A hundred elements that noise moves all at once, in the fifth round."""
    value, source = (torch.full((100,), number, dtype=torch.float64) for number in (1.0, 0.0))

    def evaluate(seed: int) -> list[torch.Tensor]:
        return [source if seed == 4 else value]

    assert bool(undecided(value, value, source, evaluate, 0).all())


WHOLE = Convolution.of_whole_numbers(12)
_IMAGE = "tensor<1x8x14x14xf32>"
_SIGN = "%z = arith.constant 0.0 : f32\n%c = arith.cmpf ogt, %a, %z : f32\n%r = arith.uitofp %c : i1 to f32"


def _looped(body: str) -> str:
    """Four rounds of the convolution, ``body`` on it, and a border of zeros."""
    out = WHOLE.out
    return f"""
util.global private @w = #flow.parameter.named<"model"::"w"> : tensor<8x8x3x3xf32>
util.func public @main(%x: {_IMAGE}) -> {_IMAGE} {{
  %w = util.global.load @w : tensor<8x8x3x3xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zz = arith.constant 0.0 : f32
  %last = scf.for %it = %c0 to %c4 step %c1 iter_args(%s = %x) -> ({_IMAGE}) {{
    {filled("i", out)}
    %y = linalg.conv_2d_nchw_fchw {{dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}}
      ins(%s, %w : {_IMAGE}, tensor<8x8x3x3xf32>) outs(%i : {out}) -> {out}
    {filled("e", out)}{generic("g", ["nchw", "nchw"], [("y", out)], ("e", out), body)}
    %p = tensor.pad %g low[0,0,1,1] high[0,0,1,1] {{
    ^bb0(%a0: index, %a1: index, %a2: index, %a3: index):
      tensor.yield %zz : f32
    }} : {out} to {_IMAGE}
    scf.yield %p : {_IMAGE}
  }}
  util.return %last : {_IMAGE}
}}
"""


def test_a_decision_in_a_loop_accuses_nobody(tmp_path: Path) -> None:
    """Its values are matched with none of the source's: no site differs, and the outputs do."""
    told, reason, ran = WHOLE.with_winograd(tmp_path, _looped(_SIGN))
    assert told == "inconclusive", reason
    assert not ran.record["differing"]


def test_a_branch_that_hangs_on_rounding_accuses_nobody(tmp_path: Path) -> None:
    """tanh(y) or y², by whether an element is above zero that is zero, and 1e-14 with winograd."""
    y = torch.nn.functional.conv2d(torch.from_numpy(WHOLE.x), torch.from_numpy(WHOLE.weights))
    at = (y == 0).nonzero().tolist()
    out, index = WHOLE.out, "\n".join(f"%at{d} = arith.constant {{}} : index" for d in range(4))

    def branch(body: str) -> str:
        return filled("f", out) + generic("g", ["nchw", "nchw"], [("y", out)], ("f", out), body) + (
            f"\nscf.yield %g : {out}"
        )  # fmt: skip

    told = set()
    for number, point in enumerate(at[:6]):
        more = f"""
  {index.format(*point)}
  %one = tensor.extract %y[%at0, %at1, %at2, %at3] : {out}
  %zero = arith.constant 0.0 : f32
  %above = arith.cmpf ogt, %one, %zero : f32
  %last = scf.if %above -> ({out}) {{
    {branch("%r = math.tanh %a : f32")}
  }} else {{
    {branch("%r = arith.mulf %a, %a : f32")}
  }}
"""
        folder = tmp_path / str(number)
        folder.mkdir()
        told.add(WHOLE.with_winograd(folder, WHOLE.program(more=more, results=out))[0])
    assert told <= {"ok", "inconclusive"}
    assert "inconclusive" in told  # winograd's zeros are of either sign


def test_a_truth_value_that_hangs_on_rounding_accuses_nobody(tmp_path: Path) -> None:
    """Whether elements that are zero are above it, asked outside of any dispatch."""
    y = torch.nn.functional.conv2d(torch.from_numpy(WHOLE.x), torch.from_numpy(WHOLE.weights))
    out, asked = WHOLE.out, (y == 0).nonzero().tolist()[:6]
    more = "%zero = arith.constant 0.0 : f32\n"
    for number, point in enumerate(asked):
        at = [f"%at{number}_{d}" for d in range(4)]
        more += "".join(f"{name} = arith.constant {i} : index\n" for name, i in zip(at, point, strict=True))
        more += f"%one{number} = tensor.extract %y[{', '.join(at)}] : {out}\n"
        more += f"%above{number} = arith.cmpf ogt, %one{number}, %zero : f32\n"
    names, result = ", ".join(f"%above{number}" for number in range(len(asked))), f"tensor<{len(asked)}xi1>"
    more += f"%last = tensor.from_elements {names} : {result}\n"
    told, reason, _ = WHOLE.with_winograd(tmp_path, WHOLE.program(more=more, results=result))
    assert told == "inconclusive", reason


def _torch_program(tail: str) -> str:
    """A convolution of the torch dialect, and ``tail`` on its ``%y``."""
    image, weight, out = (f"!torch.vtensor<[{shape}],f32>" for shape in ("1,8,14,14", "8,8,3,3", "1,8,12,12"))
    ints = "!torch.list<int>"
    return f"""
func.func @main(%x: {image}, %w: {weight}) -> {out} {{
  %none = torch.constant.none
  %i1 = torch.constant.int 1
  %i0 = torch.constant.int 0
  %false = torch.constant.bool false
  %s = torch.prim.ListConstruct %i1, %i1 : (!torch.int, !torch.int) -> {ints}
  %p = torch.prim.ListConstruct %i0, %i0 : (!torch.int, !torch.int) -> {ints}
  %y = torch.aten.convolution %x, %w, %none, %s, %p, %s, %false, %p, %i1
    : {image}, {weight}, !torch.none, {ints}, {ints}, {ints}, !torch.bool, {ints}, !torch.int -> {out}
  {tail.replace("OUT", out)}
  return %r : {out}
}}
"""


TORCH = {
    # √2 is rounded by the lowering, in the dispatch of the near ties.
    "floor(y) + gelu(y)": """%str = torch.constant.str "none"
  %g = torch.aten.gelu %y, %str : OUT, !torch.str -> OUT
  %f = torch.aten.floor %y : OUT -> OUT
  %r = torch.aten.add.Tensor %g, %f, %i1 : OUT, OUT, !torch.int -> OUT""",
    # relu(y) and relu(y) + 1e-20 are the same to noise.
    "log(relu(y) + 1e-20)": """%e = torch.constant.float 1.0e-20
  %a = torch.aten.relu %y : OUT -> OUT
  %b = torch.aten.add.Scalar %a, %e, %i1 : OUT, !torch.float, !torch.int -> OUT
  %r = torch.aten.log %b : OUT -> OUT""",
}


@pytest.mark.parametrize("tail", TORCH.values(), ids=TORCH)
def test_near_ties_of_torch_programs_are_nobodys_fault(tmp_path: Path, tail: str) -> None:
    arrays = {"x": WHOLE.x, "w": WHOLE.weights}
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
    bench = Bench(
        tmp_path / "bench", _torch_program(tail), inputs=[f"@{tmp_path / f'{name}.npy'}" for name in arrays]
    )
    base, ran = bench.run(), bench.run("winograd")
    told = judge(ran.record, ran.sites, is_baseline=False, baseline=base.record, tolerant=False)
    assert told.verdict == "ok", told.reason
    assert any(site["near_ties"] for site in ran.sites)
    assert not ran.record["differing"]
