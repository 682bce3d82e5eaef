"""``linalg``: structured ops by their maps and region, the others by their definition."""

from __future__ import annotations

import torch
from torch import Tensor

from numtrace.evaluate.op import Op
from numtrace.evaluate.registry import evaluates
from numtrace.evaluate.structured import evaluate_structured

STRUCTURED = (
    "linalg.generic", "linalg.copy", "linalg.map", "linalg.reduce", "linalg.transpose",
    "linalg.broadcast", "linalg.elementwise", "linalg.contract", "linalg.matmul", "linalg.batch_matmul",
    "linalg.batch_reduce_matmul", "linalg.matvec", "linalg.vecmat", "linalg.dot", "linalg.batch_matvec",
    "linalg.batch_vecmat", "linalg.mmt4d", "linalg.batch_mmt4d", "linalg.quantized_matmul",
    "linalg.quantized_batch_matmul", "linalg.conv_1d", "linalg.conv_1d_ncw_fcw", "linalg.conv_1d_nwc_wcf",
    "linalg.conv_2d", "linalg.conv_2d_nchw_fchw", "linalg.conv_2d_nhwc_hwcf", "linalg.conv_2d_nhwc_fhwc",
    "linalg.conv_2d_ngchw_fgchw", "linalg.conv_2d_ngchw_gfchw", "linalg.conv_2d_nhwgc_gfhwc",
    "linalg.conv_2d_nchw_fchw_q", "linalg.conv_2d_nhwc_hwcf_q", "linalg.conv_2d_nhwc_fhwc_q",
    "linalg.conv_2d_ngchw_gfchw_q", "linalg.conv_2d_nhwgc_gfhwc_q", "linalg.conv_3d",
    "linalg.conv_3d_ncdhw_fcdhw", "linalg.conv_3d_ndhwc_dhwcf", "linalg.conv_3d_ndhwc_dhwcf_q",
    "linalg.depthwise_conv_1d_ncw_cw", "linalg.depthwise_conv_1d_nwc_wc",
    "linalg.depthwise_conv_1d_nwc_wcm", "linalg.depthwise_conv_2d_nchw_chw",
    "linalg.depthwise_conv_2d_nhwc_hwc", "linalg.depthwise_conv_2d_nhwc_hwcm",
    "linalg.depthwise_conv_2d_nhwc_hwc_q", "linalg.depthwise_conv_2d_nhwc_hwcm_q",
    "linalg.depthwise_conv_3d_ncdhw_cdhw", "linalg.depthwise_conv_3d_ndhwc_dhwc",
    "linalg.depthwise_conv_3d_ndhwc_dhwcm", "linalg.pooling_nchw_sum", "linalg.pooling_nchw_max",
    "linalg.pooling_nhwc_sum", "linalg.pooling_nhwc_max", "linalg.pooling_nhwc_min",
    "linalg.pooling_ncw_sum", "linalg.pooling_ncw_max", "linalg.pooling_nwc_sum",
    "linalg.pooling_nwc_max", "linalg.pooling_nwc_min", "linalg.pooling_ndhwc_sum",
    "linalg.pooling_ndhwc_max", "linalg.pooling_ndhwc_min", "linalg.pooling_nhwc_max_unsigned",
    "linalg.pooling_nhwc_min_unsigned", "linalg.pooling_nwc_max_unsigned", "linalg.pooling_nwc_min_unsigned",
)  # fmt: skip


@evaluates(*STRUCTURED)
def structured(op: Op, machine, *operands: Tensor) -> tuple[Tensor, ...]:
    return evaluate_structured(op, machine, list(operands))


@evaluates("linalg.fill")
def fill(op: Op, machine, value: Tensor, out: Tensor) -> Tensor:
    return value.to(out.dtype).expand(out.shape)  # no memory until something is computed from it


@evaluates("linalg.softmax")
def softmax(op: Op, machine, value: Tensor, out: Tensor) -> Tensor:
    return torch.softmax(value, dim=op.integer("dimension"))
