"""Faults that no piece holds: an accumulator that nobody fills, a hoisted weight made of another weight."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from programs import Bench, Ran

from faults.piece import filled, generic, tensor
from faults.planting import edited
from numtrace.attribute.verdict import Judgement, judge

X, W, Y = tensor(8, 16, "f32"), tensor(16, 12, "f32"), tensor(8, 12, "f32")
MATMUL = f"%y = linalg.matmul ins(%x, %w : {X}, {W}) outs(%i : {Y}) -> {Y}\n"

#: y = x·w, and beside it a sum with a fill of its own.
FILLED = f"""
util.func public @main(%x: {X}, %w: {W}) -> ({Y}, {tensor(8, "f32")}) {{
{filled("i", Y)}{MATMUL}{filled("s", tensor(8, "f32"))}
{generic("t", ["ij", "i"], [("x", X)], ("s", tensor(8, "f32")), "%r = arith.addf %o, %a : f32")}
util.return %y, %t : {Y}, {tensor(8, "f32")}
}}
"""

#: The fill of the matmul is left out: its accumulator holds whatever is there.
NO_FILL = f"""
pdl.pattern @fill : benefit(1) {{
  %element = pdl.type : f32
  %type = pdl.type : {Y}
  %value = pdl.operand : %element
  %out = pdl.operand : %type
  %fill = pdl.operation "linalg.fill"(%value, %out : !pdl.value, !pdl.value) -> (%type : !pdl.type)
  pdl.rewrite %fill {{
    pdl.replace %fill with (%out : !pdl.value)
  }}
}}
"""

#: y = x·(w2²), its square made once, before the first call; and z = x·w1.
WEIGHTS = f"""
util.global private @w1 = #flow.parameter.named<"model"::"w1"> : {W}
util.global private @w2 = #flow.parameter.named<"model"::"w2"> : {W}
util.func public @main(%x: {X}) -> ({Y}, {Y}) {{
%w1 = util.global.load @w1 : {W}
%w2 = util.global.load @w2 : {W}
%e = tensor.empty() : {W}
{generic("w", ["ij", "ij"], [("w2", W)], ("e", W), "%r = arith.mulf %a, %a : f32")}
{filled("i", Y)}{MATMUL}
%z = linalg.matmul ins(%x, %w1 : {X}, {W}) outs(%i : {Y}) -> {Y}
util.return %y, %z : {Y}, {Y}
}}
"""


def judged(ran: Ran, baseline: Ran | None = None) -> Judgement:
    return judge(
        ran.record,
        ran.sites,
        is_baseline=baseline is None,
        baseline=baseline and baseline.record,
        tolerant=False,
    )


def test_an_accumulator_without_its_fill_is_changed_mathematics(tmp_path: Path) -> None:
    """What it holds may happen to be zero: the compiled output proves nothing, the IR does."""
    patterns = tmp_path / "patterns.mlir"
    patterns.write_text(NO_FILL)
    bench = Bench(tmp_path / "run", FILLED)
    baseline = bench.run()
    assert judged(baseline).verdict == "ok"
    ran = bench.run(f"builtin.module(iree-preprocessing-apply-pdl-patterns{{patterns-file={patterns}}})")
    found = judged(ran, baseline)
    assert found.verdict == "pass-bug"
    assert "brought in at matmul" in found.reason
    assert [site["op"] for site in ran.record["differing"]] == ["matmul"]


@pytest.fixture
def weights() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {name: rng.standard_normal((16, 12)).astype(np.float32) for name in ("w1", "w2")}


def test_a_weight_hoisted_from_the_wrong_weight_is_pinned_on_its_initializer(weights, tmp_path: Path) -> None:
    bench = Bench(tmp_path, WEIGHTS, weights)

    def stale(text: str) -> str:
        (other,) = re.findall(r"^ *util\.global private @__parameter_model_w1.*\n", text, re.MULTILINE)
        head, initializer, rest = text.replace(other, "").partition("util.initializer")
        body, end, rest = rest.partition("util.return")
        body, count = re.subn(r"(util\.global\.load (?:immutable )?@\w*)w2", r"\1w1", body)
        assert count == 1
        # Initializers read only what is defined before them.
        return head + other + initializer + body + end + rest

    with edited("flow", stale):
        ran = bench.run()
    found = judged(ran)
    assert found.verdict == "lowering-bug"
    (site,) = ran.record["differing"]
    assert site["id"].startswith("init")
    gap = np.abs(weights["w1"].astype(np.float64) ** 2 - weights["w2"].astype(np.float64) ** 2).max()
    assert site["semantic"]["max_abs"] == pytest.approx(gap, rel=1e-12)
    assert judged(Bench(tmp_path / "right", WEIGHTS, weights).run()).verdict == "ok"
