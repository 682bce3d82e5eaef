"""Every operator of ONNX that the evaluator knows, on ONNX's own node tests, none of which is compiled."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from scripts import BENCH, scripts

from numtrace.evaluate.onnx_ops.registry import names

#: What the suite has rounded, in bf16 after each op, or the scale in f32 that puts 127.5 of it to a side.
ROUNDED = {
    "test_attention_3d_causal_bf16_expanded",
    "test_attention_4d_attn_mask_causal_bf16_expanded",
    "test_attention_4d_causal_bf16_expanded",
    "test_attention_4d_causal_padded_kv_bf16_expanded",
    "test_attention_4d_padded_kv_bf16_expanded",
    "test_dynamicquantizelinear",
    "test_dynamicquantizelinear_expanded",
}


@pytest.mark.filterwarnings("ignore")  # of torch, about what the cases are about
def test_the_suite_s_values(tmp_path: Path) -> None:
    (onnx_operators,) = scripts("onnx_operators")
    command = [sys.executable, str(BENCH / "onnx_cases.py"), str(tmp_path), "--import-only"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    differs, agree = set(), set()
    for path in tmp_path.glob("*/model.mlir"):
        about = json.loads((path.parent / "case.json").read_text())
        said, known = onnx_operators.evaluated(path.parent, about)
        if said == "agrees":
            agree.update(known)
        elif said.startswith("differs"):
            differs.add(path.parent.name)
    assert differs == ROUNDED
    assert names() == agree  # each has a case
