"""The size of a tensor's elements, that differences of them are measured by."""

from __future__ import annotations

import torch
from torch import Tensor

#: From this ratio on to the largest element, the others have a size of their own …
_APART = 2.0**20
#: … unless they may be what float64 left of a cancellation among the large ones.
_NOISE = 2.0**40
#: Of these torch knows no arithmetic.
_UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)
#: Larger than any number that a network computes with: a mask's lowest value.
_SENTINEL = 2.0**60


def largest(value: Tensor) -> float:
    """The largest finite magnitude; 0 where there is none."""
    if not value.numel():
        return 0.0
    value = value.double() if value.dtype in _UNSIGNED else value
    low, high = (float(end) for end in torch.aminmax(value))
    top = max(-low, high)
    if top == top and top != float("inf"):
        return abs(top)
    finite = value[torch.isfinite(value)].double()
    return float(finite.abs().max()) if finite.numel() else 0.0


def sizes(value: Tensor) -> tuple[float, float, float]:
    """The size of the large elements, of the others, and the magnitude that parts them.

    A mask of -1e9 or of the lowest float beside scores near 1 must not be what their differences are measured
    by. Values that fill the range between are one group: then both sizes are that of the largest element.
    """
    if value.dtype == torch.bool:
        return 1.0, 1.0, 0.0
    value = value.double() if value.dtype in _UNSIGNED else value
    top = largest(value)
    edge = top / _APART
    magnitude = value.abs()
    if not top or bool(((magnitude > edge) & (magnitude < top / 2)).any()):
        return top, top, 0.0
    rest = largest(torch.where(magnitude <= edge, value, 0.0))
    if not rest or (rest < top / _NOISE and top < _SENTINEL):
        return top, top, 0.0
    return top, rest, edge
