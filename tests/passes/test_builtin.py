"""Every built-in pass does to a small program what its summary says, in the installed IREE."""

import re
import subprocess
from collections import Counter

import pytest

from numtrace.passes import probe, registry
from numtrace.passes.builtin import PASSES

CONV = "{dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}"
IMAGE = "tensor<1x16x14x14xf32>"
PROGRAM = f"""
util.func public @main(%x: tensor<1x8x16x16xf32>, %w: tensor<16x8x3x3xf32>, %b: {IMAGE},
                       %w1: tensor<16x16x1x1xf32>, %m: tensor<196x32xf32>) -> tensor<16x32xf32> {{
  %0 = linalg.conv_2d_nchw_fchw {CONV} ins(%x, %w : tensor<1x8x16x16xf32>, tensor<16x8x3x3xf32>)
      outs(%b : {IMAGE}) -> {IMAGE}
  %1 = linalg.conv_2d_nchw_fchw {CONV} ins(%0, %w1 : {IMAGE}, tensor<16x16x1x1xf32>)
      outs(%b : {IMAGE}) -> {IMAGE}
  %2 = tensor.collapse_shape %1 [[0, 1], [2, 3]] : {IMAGE} into tensor<16x196xf32>
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x32xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<16x32xf32>) -> tensor<16x32xf32>
  %3 = linalg.matmul ins(%2, %m : tensor<16x196xf32>, tensor<196x32xf32>)
      outs(%f : tensor<16x32xf32>) -> tensor<16x32xf32>
  util.return %3 : tensor<16x32xf32>
}}
"""


def after(name):
    """The program after the pass, as text, and how often each op occurs."""
    from iree.compiler import ir, passmanager

    with ir.Context() as context:
        module = ir.Module.parse(PROGRAM)
        if name:
            text = probe.pipeline_text(registry.get(name))
            passmanager.PassManager.parse(text, context).run(module.operation)
        return str(module), Counter(
            re.findall(r"(?:linalg|iree_linalg_ext|arith|tensor)\.[\w.]+", str(module))
        )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # conv, conv, matmul: two operands each, but both fills and the bias stay f32
        ("demote-bf16", {"arith.truncf": 6, "linalg.conv_2d_nchw_fchw": 2, "linalg.matmul": 1}),
        ("demote-f16", {"arith.truncf": 6, "linalg.conv_2d_nchw_fchw": 2, "linalg.matmul": 1}),
        ("demote-bf16-conv", {"arith.truncf": 4, "linalg.conv_2d_nchw_fchw": 2}),
        ("demote-bf16-matmul", {"arith.truncf": 2, "linalg.matmul": 1}),
        ("winograd", {"linalg.conv_2d_nchw_fchw": 1, "iree_linalg_ext.winograd.filter_transform": 1}),
        ("img2col", {"linalg.conv_2d_nchw_fchw": 0, "linalg.matmul": 3}),
        ("im2col-op", {"linalg.conv_2d_nchw_fchw": 0, "iree_linalg_ext.im2col": 2}),
        ("conv-channels-last", {"linalg.conv_2d_nchw_fchw": 0, "linalg.conv_2d_nhwc_hwcf": 2}),
        ("conv-1x1-to-matmul", {"linalg.conv_2d_nchw_fchw": 1, "linalg.generic": 1}),
        ("transpose-matmul", {"linalg.transpose": 1, "linalg.matmul": 1}),
        ("pad-linalg", {"tensor.pad": 2, "linalg.matmul": 1}),
        ("generalize", {"linalg.conv_2d_nchw_fchw": 0, "linalg.matmul": 0, "linalg.generic": 3}),
    ],
)
def test_pipeline_pass(name, expected):
    _, ops = after(name)
    assert {op: ops[op] for op in expected} == expected


def test_every_pipeline_pass_is_tested_above():
    (marks,) = test_pipeline_pass.pytestmark
    assert {name for name, _ in marks.args[1]} == {p.name for p in PASSES if p.pipelines}


def test_details_of_the_summaries():
    assert "output_tile_size(6)" in after("winograd")[0]
    assert "xf16>" in after("demote-f16")[0]
    assert "xbf16>" not in after("demote-f16")[0]
    assert "tensor<16x208xf32>" in after("pad-linalg")[0]  # 196 = 12·16 + 4


@pytest.mark.parametrize(("flags", "encoded"), [((), False), (registry.get("data-tiling").flags, True)])
def test_data_tiling_encodes_tensors_at_flow(flags, encoded):
    command = [probe.compiler_path(), "-", "--iree-hal-target-backends=llvm-cpu", "--compile-to=flow", *flags]
    flow = subprocess.run(command, input=PROGRAM, capture_output=True, text=True, check=True).stdout
    assert ("flow.tensor.encode" in flow) is encoded
