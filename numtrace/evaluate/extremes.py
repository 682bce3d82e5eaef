"""Maxima and minima. torch's own return a NaN of their making; these keep the one that they met.

So an undefined element (see :func:`numtrace.evaluate.tensors.empty`) is still known as one afterwards.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def maximum(a: Tensor, b: Tensor) -> Tensor:
    """The greater of two values; NaN where either is."""
    return _keep_nan(torch.maximum(a, b), lambda: a + b)


def minimum(a: Tensor, b: Tensor) -> Tensor:
    """The smaller of two values; NaN where either is."""
    return _keep_nan(torch.minimum(a, b), lambda: a + b)


def amax(value: Tensor, dim: list[int]) -> Tensor:
    """The greatest element over ``dim``; NaN where there is one."""
    return _keep_nan(torch.amax(value, dim=dim), lambda: value.sum(dim=dim))


def amin(value: Tensor, dim: list[int]) -> Tensor:
    """The smallest element over ``dim``; NaN where there is one."""
    return _keep_nan(torch.amin(value, dim=dim), lambda: value.sum(dim=dim))


def amax_number(value: Tensor, dim: list[int]) -> Tensor:
    """The greatest number over ``dim``; NaN only where there is none."""
    nan = torch.isnan(value)
    greatest = torch.where(nan, -torch.inf, value).amax(dim=dim)
    return torch.where(nan.all(dim=dim), value.sum(dim=dim), greatest)


def amin_number(value: Tensor, dim: list[int]) -> Tensor:
    """The smallest number over ``dim``; NaN only where there is none."""
    return -amax_number(-value, dim)


def _keep_nan(result: Tensor, nan: Callable[[], Tensor]) -> Tensor:
    if not result.is_floating_point() or not bool(torch.isnan(result.sum())):
        return result
    return torch.where(torch.isnan(result), nan(), result)
