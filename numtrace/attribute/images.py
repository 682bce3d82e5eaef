"""What holds of pictures alone: whether a tensor looks like one, and how far two are apart in 8-bit levels.

Their peak signal-to-noise ratio is :meth:`numtrace.attribute.metrics.Difference.psnr_db`.
"""

from __future__ import annotations

import math

from torch import Tensor

from numtrace.attribute.chunks import chunks, float64


def u8_steps(actual: Tensor, expected: Tensor) -> int | None:
    """The greatest difference in 8-bit levels, max |round(255·clip(a)) − round(255·clip(e))|, clip to [0, 1].

    Halves round to even; infinities clip. None if there is a NaN, which no 8-bit picture can hold.
    """
    most = 0.0
    for _, (a, e), _ in chunks((actual, expected)):
        a, e = (float64(x).clamp(0, 1).mul_(255).round_() for x in (a, e))
        steps = (a - e).abs_().max().item()
        if math.isnan(steps):
            return None
        most = max(most, steps)
    return int(most)


def is_image(expected: Tensor) -> bool:
    """Guess whether a tensor is a picture: floats in [0, 1], not all equal, CHW, HWC, NCHW or NHWC.

    The channels are 1, 3 or 4, height and width at least 2. Probabilities can look the same.
    """
    if not expected.is_floating_point() or expected.ndim not in (3, 4) or expected.numel() == 0:
        return False
    first, middle, last = expected.shape[-3:]
    chw = first in (1, 3, 4) and min(middle, last) >= 2
    hwc = last in (1, 3, 4) and min(first, middle) >= 2
    if not (chw or hwc):
        return False
    low, high = math.inf, -math.inf
    for _, (x,), _ in chunks((expected,)):
        least, most = (float(v) for v in float64(x).aminmax())
        if not (least >= 0 and most <= 1):  # so written, NaN fails too
            return False
        low, high = min(low, least), max(high, most)
    return low < high
