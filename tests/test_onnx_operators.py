"""Every operator of ONNX that the evaluator knows, on ONNX's own node tests, none of which is compiled."""

from __future__ import annotations

from pathlib import Path

import pytest

from numtrace.evaluate.onnx_ops.registry import names

BENCH = Path(__file__).parents[1] / "bench"

#: The suite computes these op by op in bf16, see bench/onnx_reasons.toml.
ROUNDED_EACH_TIME = {
    f"test_attention_{name}_bf16_expanded"
    for name in (
        "3d_causal", "4d_attn_mask_causal", "4d_causal", "4d_causal_padded_kv", "4d_padded_kv",
    )
}  # fmt: skip

#: Operators that ONNX has node tests of only with attributes, or of opsets, that the evaluator does not know.
WITHOUT_A_CASE: set[str] = set()


@pytest.mark.filterwarnings("ignore")  # of NumPy and torch, about what the cases are about
def test_the_suite_s_values(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(BENCH)
    import onnx_cases
    import onnx_operators

    differs, agree = {}, set()
    for case in onnx_cases.collected():
        about = onnx_cases.imported(case, tmp_path / case.name)
        if not about["step"]:
            said, _ = onnx_operators.evaluated(tmp_path / case.name, about)
            if said == "agrees":
                agree.update(node.op_type for node in case.model.graph.node)
            elif said.startswith("differs"):
                differs[case.name] = said
    assert differs.keys() == ROUNDED_EACH_TIME, differs
    assert names() - agree == WITHOUT_A_CASE
