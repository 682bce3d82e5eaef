"""Where the windows of a convolution or a pooling lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from numtrace.errors import UncoveredOp
from numtrace.evaluate.onnx_ops.registry import given
from numtrace.evaluate.op import Op

#: The attributes that :func:`windows` reads.
READS = ("auto_pad", "dilations", "kernel_shape", "pads", "strides")


@dataclass(frozen=True, slots=True)
class Windows:
    """For each spatial axis the size of a window, its steps, and the elements before the first and after the last."""

    kernel: list[int]
    strides: list[int]
    dilations: list[int]
    low: list[int]
    high: list[int]

    def reach(self, axis: int) -> int:
        """The elements from the first to the last of a window."""
        return (self.kernel[axis] - 1) * self.dilations[axis] + 1


def windows(op: Op, sizes: Sequence[int], kernel: Sequence[int]) -> Windows:
    """Those of an op on an image of ``sizes``. With ``auto_pad`` SAME there are as many as the strides go into it.

    Raises:
        UncoveredOp: ``auto_pad`` is none that ONNX has.
    """
    rank = len(kernel)
    strides, dilations = (given(op, name, [1] * rank) for name in ("strides", "dilations"))
    pads = given(op, "pads", [0] * (2 * rank))
    found = Windows([*kernel], strides, dilations, pads[:rank], pads[rank:])
    match given(op, "auto_pad", "NOTSET"):
        case "NOTSET":
            return found
        case "VALID":
            return Windows([*kernel], strides, dilations, [0] * rank, [0] * rank)
        case "SAME_UPPER" | "SAME_LOWER" as same:
            whole = [
                max((-(-size // step) - 1) * step + found.reach(axis) - size, 0)
                for axis, (size, step) in enumerate(zip(sizes, strides, strict=True))
            ]
            smaller, larger = [n // 2 for n in whole], [n - n // 2 for n in whole]
            low, high = (smaller, larger) if same == "SAME_UPPER" else (larger, smaller)
            return Windows([*kernel], strides, dilations, low, high)
        case other:
            raise UncoveredOp(op.attributes["name"].value, f"auto_pad {other}")
