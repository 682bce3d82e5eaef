"""A sample of the ONNX backend node tests through numtrace, as ``bench/onnx_suite.py`` runs all of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from scripts import scripts

#: The verdict, and whether the compiled output is the suite's; the evaluator agrees with every one.
SAMPLE = {
    "test_add_uint8": ("ok", True),
    "test_identity": ("ok", True),
    "test_argmax_default_axis_example": ("ok", True),
    "test_averagepool_2d_ceil": ("ok", True),
    "test_basic_conv_with_padding": ("ok", True),
    "test_castlike_no_saturate_FLOAT_to_FLOAT8E4M3FN": ("ok", True),
    "test_center_crop_pad_pad_expanded": ("ok", True),
    "test_dequantizelinear_axis": ("ok", True),
    "test_einsum_sum": ("ok", True),  # in f64
    "test_nonmaxsuppression_limit_output_size": ("ok", True),  # assertions on what is in doubt
    "test_softmax_axis_1": ("ok", True),
    # IREE's faults, see bench/onnx_reasons.toml.
    "test_castlike_FLOAT_to_FLOAT8E5M2": ("lowering-bug", False),
    "test_gelu_tanh_2": ("lowering-bug", False),
    "test_gridsample_nearest": ("lowering-bug", False),
    "test_lstm_with_peepholes": ("lowering-bug", False),
    "test_qlinearmatmul_3D_uint8_float32": ("lowering-bug", False),
}


@pytest.fixture(scope="module")
def bench():
    """The two scripts, and the table of reasons, as modules."""
    return scripts("onnx_cases", "onnx_suite", "reasons")


@pytest.fixture(scope="module")
def cases(bench) -> dict[str, Any]:
    return {case.name: case for case in bench[0].collected() if case.name in SAMPLE}


@pytest.mark.parametrize("name", SAMPLE)
def test_a_case(name: str, bench, cases, tmp_path: Path) -> None:
    make, suite, reasons = bench
    make.make(cases[name], tmp_path / name)
    assert json.loads((tmp_path / name / "case.json").read_text())["accepted"]
    result = suite.judged(tmp_path / name)
    verdict, right = SAMPLE[name]
    assert result["evaluator"] == "yes", result
    assert (result["verdict"], result["compiled"] == "yes") == (verdict, right), result
    if verdict != "ok":  # and for the same reason as in the table
        told = reasons.explained(reasons.read(suite.TABLE), {name: result}, suite.holds)
        assert told.unexplained == []


@pytest.mark.parametrize(
    ("name", "verdict", "evaluator", "compiled", "code"),
    [
        ("test_add", "ok", "yes", "yes", 0),
        ("test_add", "ok", "yes", "output 0: 1 of 2 off by up to 1", 1),  # ok beside a wrong output
        ("test_add", "over-tolerance", "yes", "output 0: 1 of 2 off by up to 1", 1),  # without a reason
        ("test_gelu_tanh_2", "lowering-bug", "yes", "output 0: 1 of 60 off by up to 1e-5", 0),
        ("test_gelu_tanh_2", "ok", "yes", "output 0: 1 of 60 off by up to 1e-5", 1),
        (
            "test_gelu_tanh_2",
            "lowering-bug",
            "output 0: 1 of 60 off by up to 1e-5",
            "yes",
            1,
        ),  # of another kind
    ],
)
def test_the_report(
    bench, tmp_path: Path, monkeypatch, name: str, verdict: str, evaluator: str, compiled: str, code: int
) -> None:
    _, suite, reasons = bench
    mine = [reason | {"cases": [name]} for reason in reasons.read(suite.TABLE) if name in reason["cases"]]
    monkeypatch.setattr(suite, "read", lambda table: mine)
    (tmp_path / name).mkdir()
    result = {"commit": "abc", "verdict": verdict, "evaluator": evaluator, "compiled": compiled, "reason": ""}
    (tmp_path / name / "result.json").write_text(json.dumps(result))
    assert suite.report([tmp_path / name]) == code
