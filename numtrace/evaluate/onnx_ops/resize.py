"""Resize: each axis by itself, as a matrix of weights of the old elements in the new ones."""

from __future__ import annotations

import torch
from torch import Tensor

from numtrace.errors import UncoveredOp
from numtrace.evaluate.onnx_ops.registry import evaluates_onnx, given
from numtrace.evaluate.op import Op

#: Of a place in float32, in units of it and one: the scale's own rounding, its inverse's, a product's and a sum's.
_PLACE_ERROR = 4 * 2.0**-24


@evaluates_onnx(
    "Resize",
    reads=(
        "axes", "coordinate_transformation_mode", "cubic_coeff_a", "exclude_outside", "extrapolation_value", "mode",
        "nearest_mode",
    ),
    since=13,
)  # fmt: skip
def resize(
    op: Op, x: Tensor, roi: Tensor | None = None, scales: Tensor | None = None, sizes: Tensor | None = None
) -> Tensor:
    axes = [axis % x.dim() for axis in given(op, "axes", list(range(x.dim())))]
    outside = torch.zeros((), dtype=torch.bool)
    for number, axis in enumerate(axes):
        size = x.shape[axis]
        if sizes is not None and sizes.numel():
            new = int(sizes[number])
            length = float(new)  # of the whole new axis, which need not be a number of elements
            scale = new / size
        else:
            assert scales is not None
            scale = float(scales[number])
            length = size * scale
            new = int(length)
        if scale == 1 and new == size and given(op, "coordinate_transformation_mode") != "tf_crop_and_resize":
            continue
        part = (0.0, 1.0)
        if roi is not None and roi.numel():
            part = (float(roi[number]), float(roi[number + len(axes)]))
        at = _places(op, new, size, scale, length, part)
        weights = _weights(op, at, size)
        x = torch.movedim(torch.tensordot(x, weights, dims=([axis], [1])), -1, axis)
        beyond = ((at < 0) | (at > size - 1)).reshape([-1 if d == axis else 1 for d in range(x.dim())])
        outside = outside | beyond
    if given(op, "coordinate_transformation_mode") == "tf_crop_and_resize":
        x = torch.where(outside, given(op, "extrapolation_value", 0.0), x)
    return x


def _places(op: Op, new: int, size: int, scale: float, length: float, part: tuple[float, float]) -> Tensor:
    """Where each new element is among the old ones."""
    i = torch.arange(new, dtype=torch.float64)
    match given(op, "coordinate_transformation_mode", "half_pixel"):
        case "half_pixel":
            return (i + 0.5) / scale - 0.5
        case "half_pixel_symmetric":
            return size / 2 * (1 - new / length) + (i + 0.5) / scale - 0.5
        case "pytorch_half_pixel":
            return (i + 0.5) / scale - 0.5 if length > 1 else torch.zeros_like(i)
        case "align_corners":
            return i * (size - 1) / (length - 1) if length != 1 else torch.zeros_like(i)
        case "asymmetric":
            return i / scale
        case "tf_crop_and_resize":
            start, end = part
            if length > 1:
                return start * (size - 1) + i * (end - start) * (size - 1) / (length - 1)
            return 0.5 * (start + end) * (size - 1) + torch.zeros_like(i)
        case other:
            raise UncoveredOp("onnx.Resize", f"coordinate_transformation_mode {other}")


def _weights(op: Op, at: Tensor, size: int) -> Tensor:
    """(new, old)."""
    mode = given(op, "mode", "nearest")
    if mode == "nearest":
        taps = [(_nearest(given(op, "nearest_mode", "round_prefer_floor"), at), torch.ones_like(at))]
    elif mode == "linear":
        low = torch.floor(at)
        taps = [(low, 1 - (at - low)), (low + 1, at - low)]
    else:
        low, a = torch.floor(at), given(op, "cubic_coeff_a", -0.75)
        taps = [(low + k, _cubic((at - low - k).abs(), a)) for k in (-1, 0, 1, 2)]
    weights = torch.zeros(len(at), size, dtype=torch.float64)
    rows = torch.arange(len(at))
    for place, weight in taps:
        if given(op, "exclude_outside", 0):
            weight = torch.where((place < 0) | (place > size - 1), 0.0, weight)
        weights.index_put_((rows, place.clamp(0, size - 1).long()), weight, accumulate=True)
    return weights / weights.sum(1, keepdim=True) if given(op, "exclude_outside", 0) else weights


def _nearest(mode: str, at: Tensor) -> Tensor:
    """The old element that each new one takes.

    Raises:
        UncoveredOp: for some of them that hangs on the rounding of the scale and the place, which are float32: of a
            scale of 0.2 the fifth is at 4.9999999 or at 5.
    """

    def rounded(at: Tensor) -> Tensor:
        return {
            "round_prefer_floor": torch.ceil(at - 0.5),
            "round_prefer_ceil": torch.floor(at + 0.5),
            "floor": torch.floor(at),
            "ceil": torch.ceil(at),
        }[mode]

    off = _PLACE_ERROR * (at.abs() + 1)
    close = rounded(at - off) != rounded(at + off)
    exact = 2 * at == torch.round(2 * at)  # as float32 has it: a scale of 2 is no question
    if bool((close & ~exact).any()):
        raise UncoveredOp("onnx.Resize", "which element is nearest hangs on the rounding of float32")
    return rounded(at)


def _cubic(distance: Tensor, a: float) -> Tensor:
    """R. Keys, "Cubic convolution interpolation for digital image processing", IEEE Trans. ASSP 29(6), 1981."""
    d = distance
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = a * (((d - 5) * d + 8) * d - 4)
    return torch.where(d <= 1, near, torch.where(d < 2, far, 0.0))
