"""Values between the elements of an image, at given places."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from numtrace.errors import UncoveredOp
from numtrace.evaluate.onnx_ops.registry import evaluates_onnx, given
from numtrace.evaluate.op import Op

#: ONNX's names (those before opset 20 too) and torch's.
_MODES = {
    "linear": "bilinear", "bilinear": "bilinear", "nearest": "nearest", "cubic": "bicubic", "bicubic": "bicubic",
}  # fmt: skip


@evaluates_onnx("GridSample", reads=("align_corners", "mode", "padding_mode"), since=16)
def grid_sample(op: Op, x: Tensor, grid: Tensor) -> Tensor:
    """As torch's, which ONNX took it from; where it is nearest, halves round to even."""
    if x.dim() not in (4, 5):
        raise UncoveredOp("onnx.GridSample", f"{x.dim() - 2} spatial dimensions")
    return functional.grid_sample(
        x,
        grid,
        mode=_MODES[given(op, "mode", "linear")],
        padding_mode=given(op, "padding_mode", "zeros"),
        align_corners=bool(given(op, "align_corners", 0)),
    )
