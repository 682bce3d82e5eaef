"""Terms, matches and verdicts of small programs, really compiled and run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from programs import Bench, Ran, conv_program

from numtrace.attribute.terms import ADDITIVITY_BOUND
from numtrace.attribute.verdict import judge
from numtrace.evaluate import registry as functions

WINOGRAD = "winograd"
#: The same pipeline, not by its registered name.
RAW = "builtin.module(util.func(iree-linalg-ext-convert-conv2d-to-winograd{replace-all-convs=true}))"


def weights(channels: int = 8, bias: float = 1.0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "w": rng.standard_normal((channels, channels, 3, 3)).astype(np.float32) / 8,
        "bias": (bias + rng.random(channels)).astype(np.float32),
    }


@pytest.fixture(scope="module")
def biased(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    bench = Bench(tmp_path_factory.mktemp("biased"), conv_program("bias"), weights())
    bench.run()
    return bench


@pytest.fixture(scope="module")
def by_winograd(biased: Bench) -> Ran:
    return biased.run(WINOGRAD)


@pytest.fixture(scope="module")
def demoted(biased: Bench) -> Ran:
    return biased.run("demote-bf16")


def test_a_convolution_is_verified_and_its_error_is_rounding(biased: Bench) -> None:
    baseline = biased.baseline
    assert baseline is not None
    assert {site["match"] for site in baseline.sites} <= {"verified", "moved"}
    assert 0 < baseline.record["output"]["max_abs"] < 1e-5
    assert baseline.record["split"]["semantic"]["max_abs"] < 1e-13
    assert (
        judge(baseline.record, baseline.sites, is_baseline=True, baseline=None, tolerant=False).verdict
        == "ok"
    )


@pytest.mark.parametrize("name", [WINOGRAD, RAW], ids=["by name", "raw text"])
def test_winograd_drops_the_bias_and_is_a_pass_bug(biased: Bench, by_winograd: Ran, name: str) -> None:
    ran = by_winograd if name == WINOGRAD else biased.run(name)
    differing = ran.record["differing"]
    assert len(differing) == 1
    # What is missing is the bias, no more and no less: the semantic term is its largest element.
    assert differing[0]["semantic"]["max_abs"] == pytest.approx(float(weights()["bias"].max()), rel=1e-12)
    verdict = judge(ran.record, ran.sites, is_baseline=False, baseline=biased.baseline.record, tolerant=False)
    assert verdict.verdict == "pass-bug"
    assert "conv_2d_nchw_fchw" in verdict.reason
    assert ran.record["ops_changed"] >= 1


def test_demotion_is_rounding(biased: Bench, demoted: Ran) -> None:
    ran = demoted
    assert not ran.record["differing"]
    assert ran.record["split"]["semantic"]["pass"] < 1e-13
    assert 1e-4 < ran.record["output"]["max_abs"] < 1e-1
    assert (
        judge(
            ran.record, ran.sites, is_baseline=False, baseline=biased.baseline.record, tolerant=False
        ).verdict
        == "ok"
    )


@pytest.mark.parametrize(("init", "verdict"), [("zero", "ok"), ("3.0", "pass-bug")])
def test_winograd_is_judged_by_its_numbers(tmp_path, init: str, verdict: str) -> None:
    bench = Bench(tmp_path, conv_program(init), weights())
    bench.run()
    ran = bench.run(WINOGRAD)
    assert (
        judge(
            ran.record, ran.sites, is_baseline=False, baseline=bench.baseline.record, tolerant=False
        ).verdict
        == verdict
    )
    if verdict == "pass-bug":
        # A fill of 3.0 is lost everywhere alike.
        assert ran.record["differing"][0]["semantic"]["max_abs"] == pytest.approx(3.0, rel=1e-12)
        assert ran.record["differing"][0]["semantic"]["mean_abs"] == pytest.approx(3.0, rel=1e-12)


def test_the_terms_add_up_at_every_site(biased: Bench, by_winograd: Ran, demoted: Ran) -> None:
    for ran in (biased.baseline, by_winograd, demoted):
        assert all(site["additivity"] <= ADDITIVITY_BOUND for site in ran.sites)


def test_without_an_evaluation_the_site_is_uncovered_and_what_follows_is_tainted(tmp_path) -> None:
    rows = "tensor<6x8xf32>"
    identity = "affine_map<(d0, d1) -> (d0, d1)>"
    body = f'{{indexing_maps = [{identity}, {identity}], iterator_types = ["parallel", "parallel"]}}'
    text = f"""
util.func public @main(%x: {rows}, %w: tensor<8x8xf32>) -> {rows} {{
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : {rows}
    %a = linalg.generic {body} ins(%x : {rows}) outs(%empty : {rows}) {{
    ^bb0(%in: f32, %out: f32):
      %t = math.tanh %in : f32
      linalg.yield %t : f32
    }} -> {rows}
    %fill = linalg.fill ins(%zero : f32) outs(%empty : {rows}) -> {rows}
    %m = linalg.matmul ins(%a, %w : {rows}, tensor<8x8xf32>) outs(%fill : {rows}) -> {rows}
    %s = linalg.softmax dimension(1) ins(%m : {rows}) outs(%empty : {rows}) -> {rows}
    util.return %s : {rows}
}}
"""
    whole = Bench(tmp_path / "whole", text).run()
    assert not any(site["tainted"] or site["match"] == "uncovered" for site in whole.sites)
    bench = Bench(tmp_path / "part", text)
    put_back = functions.without("math.tanh")
    try:
        with pytest.raises(Exception, match=r"math\.tanh"):
            # This source is not torch: the reference is the evaluator's own, and stops with it.
            bench.run()
    finally:
        put_back()


def test_one_missing_function_uncovers_its_sites_only(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A torch source keeps its reference, whatever the evaluator lacks at flow."""
    import torch

    from numtrace.importers.torch_program import export_module

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.first, self.second = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.softmax(self.second(torch.softmax(self.first(x), dim=-1).t()), dim=-1)

    net = Net()
    arrays = {name: value.detach().numpy() for name, value in net.state_dict().items()}
    text = export_module(net, (torch.zeros(8, 8),))
    whole = Bench(tmp_path / "whole", text, arrays).run()
    assert not any(site["tainted"] or site["match"] == "uncovered" for site in whole.sites)
    with_softmax = [site["id"] for site in whole.sites if "softmax" in site["dispatch"]]
    assert with_softmax, [site["dispatch"] for site in whole.sites]
    bench = Bench(tmp_path / "part", text, arrays)
    put_back = functions.without("linalg.softmax")
    try:
        part = bench.run()
    finally:
        put_back()
    assert [site["id"] for site in part.sites if site["match"] == "uncovered"] == with_softmax
    first = next(i for i, site in enumerate(part.sites) if site["match"] == "uncovered")
    assert not any(site["tainted"] for site in part.sites[: first + 1])
    assert all(site["tainted"] for site in part.sites[first + 1 :])
    assert (
        judge(part.record, part.sites, is_baseline=True, baseline=None, tolerant=False).verdict
        == "inconclusive"
    )


def test_other_op_names_and_no_locations_change_nothing(biased: Bench, tmp_path) -> None:
    """The same convolution as a generic op whose every loop and value has another name."""
    text = conv_program("bias")
    generic = text.replace(
        text[text.index("    %y = linalg.conv") : text.index("    util.return")],
        """    %y = linalg.generic {indexing_maps = [
          affine_map<(n, f, h, w, c, i, j) -> (n, c, h + i, w + j)>, affine_map<(n, f, h, w, c, i, j) -> (f, c, i, j)>,
          affine_map<(n, f, h, w, c, i, j) -> (n, f, h, w)>],
        iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
        ins(%x, %w : tensor<1x8x14x14xf32>, tensor<8x8x3x3xf32>) outs(%init : tensor<1x8x12x12xf32>) {
        ^bb0(%p: f32, %q: f32, %r: f32):
          %s = arith.mulf %p, %q : f32
          %t = arith.addf %r, %s : f32
          linalg.yield %t : f32
        } -> tensor<1x8x12x12xf32>
""",
    )
    named = biased.baseline
    other = Bench(tmp_path / "other", generic, weights()).run()
    assert other.matches() == named.matches()
    assert named.record["output"]["max_abs"] < 1e-5 and other.record["output"]["max_abs"] < 1e-5
    assert other.record["split"]["semantic"]["max_abs"] < 1e-13


def test_a_constant_that_explains_one_result_is_left_alone_in_another(tmp_path: Path) -> None:
    """√2 was rounded by the lowering; 0.01 of 32 bits is what an attribute without a value is."""
    tensor = "!torch.vtensor<[64],f32>"
    meta = "torch.onnx_meta.ir_version = 9 : si64, torch.onnx_meta.opset_version = 21 : si64"
    text = f"""
    func.func @main(%x: {tensor}) -> ({tensor}, {tensor}) attributes {{{meta}}} {{
      %0 = torch.operator "onnx.Gelu"(%x) : ({tensor}) -> {tensor}
      %1 = torch.operator "onnx.LeakyRelu"(%0) : ({tensor}) -> {tensor}
      return %0, %1 : {tensor}, {tensor}
    }}
    """
    ran = Bench(tmp_path / "bench", text).run()
    assert {site["dispatch"] for site in ran.sites} == {"main$async_dispatch_0_elementwise_64_f32"}
    assert [site["match"] for site in ran.sites] == ["verified", "verified"]
    assert [constant["source"] for constant in ran.record["constants"]] == [2**0.5]
