"""The main job as a user runs it: the tiny SDXL VAE decoder, bf16 and winograd, through the installed command.

The bounds are those of the project's first issue; the structure behind them (which convolutions there are, that
Winograd's rewrite leaves their bias unread) is worked out from the architecture.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from commands import installed

from numtrace.attribute.terms import ADDITIVITY_BOUND

#: 3x3 convolutions of the tiny decoder: conv_in, 2 resnets of the mid block and 2 in each of 4 up blocks with two
#: each, 3 upsamplers, conv_out.
CONVOLUTIONS_3X3 = 1 + 2 * (2 + 4 * 2) + 3 + 1
#: Besides: post_quant_conv and the shortcuts of up blocks 2 and 3, which are 1x1; q, k, v, scores, values; to_out.
CONTRACTIONS = CONVOLUTIONS_3X3 + 3 + 5 + 1


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    out = tmp_path_factory.mktemp("main") / "run"
    done = installed(
        "run", "--pass", "demote-bf16", "--pass", "winograd", "--json", "--out", out, cwd=out.parent
    )
    assert done.code == 1, done.err[-2000:]  # winograd is a bug
    document = done.document
    assert json.loads((out / "report.json").read_text()) == document
    return document


def variant(report: dict[str, Any], name: str) -> dict[str, Any]:
    return next(v for v in report["variants"] if v["name"] == name)


def test_variants_and_verdicts(report: dict[str, Any]) -> None:
    verdicts = {v["name"]: v["verdict"] for v in report["variants"]}
    assert verdicts == {
        "baseline": "ok",
        "demote-bf16": "ok",
        "winograd": "pass-bug",
        "demote-bf16+winograd": "pass-bug",
    }


def test_sizes_of_the_errors(report: dict[str, Any]) -> None:
    error = {v["name"]: v["output"]["max_abs"] for v in report["variants"]}
    assert error["baseline"] < 5e-5
    assert 3e-3 < error["demote-bf16"] < 3e-2
    assert min(error["winograd"], error["demote-bf16+winograd"]) > 0.1


def test_no_site_is_left_out_and_the_terms_add_up(report: dict[str, Any]) -> None:
    for v in report["variants"]:
        coverage = v["coverage"]
        states = ("verified", "moved", "differs", "ambiguous", "unmatched", "uncovered")
        assert coverage["sites"] == len(v["sites"]) == sum(coverage[state] for state in states)
        assert coverage["uncovered"] == coverage["tainted"] == 0
        assert v["traced_equal"] is True
        for site in v["sites"]:
            assert site["additivity"] <= ADDITIVITY_BOUND, site["id"]
            assert all(site[term]["nan"] == site[term]["inf"] == 0 for term in ("total", "introduced"))


def test_exact_evaluation_tells_rounding_from_changed_mathematics(report: dict[str, Any]) -> None:
    for name in ("baseline", "demote-bf16"):
        semantic = variant(report, name)["split"]["semantic"]
        assert semantic["max_abs"] < 1e-11 and semantic["pass"] < 1e-11
        assert not [site["id"] for site in variant(report, name)["sites"] if site["match"] == "differs"]
    assert variant(report, "winograd")["split"]["semantic"]["pass"] > 0.1
    constants = variant(report, "baseline")["constants"]
    truncated = [c for c in constants if c["beyond_half_ulp"]]
    assert [(c["op"], c["source"]) for c in truncated] == [("div", 0.13025)]
    assert truncated[0]["stored"] == pytest.approx(0.130249992, abs=1e-9)


def test_winograd_differs_at_the_convolutions_it_rewrote_and_nowhere_else(report: dict[str, Any]) -> None:
    winograd = variant(report, "winograd")
    differing = [site for site in winograd["sites"] if site["match"] == "differs"]
    assert len(differing) == CONVOLUTIONS_3X3
    assert winograd["ops_changed"] == CONVOLUTIONS_3X3
    assert "no longer reads decoder.conv_in.bias" in winograd["reason"]
    others = [s for s in winograd["sites"] if s["match"] != "differs" and not s["constant"]]
    scale = {site["id"]: site["semantic"]["rel_l2"] or 0.0 for site in others}
    assert max(scale.values()) < 1e-11


def test_demotion_touches_the_contractions(report: dict[str, Any]) -> None:
    assert variant(report, "demote-bf16")["ops_changed"] == CONTRACTIONS


def test_sites_carry_module_paths(report: dict[str, Any]) -> None:
    modules = {site["module"] for site in variant(report, "baseline")["sites"]}
    assert "decoder.mid_block.resnets.0.conv1" in modules
    assert not any("/" in site["location"] for site in variant(report, "baseline")["sites"])
