"""Single numbers with a bound, and one elementwise step on them."""

from __future__ import annotations

import pytest
import torch
from kernels import elementwise
from torch import Tensor

from numtrace.evaluate.typed.value import Typed


def number(value: float, bound: float | None = None, dtype: torch.dtype = torch.float32) -> Typed:
    """A tensor of one element; ``bound`` None: it is certain."""
    held = torch.tensor([value], dtype=dtype)
    return Typed(held.double(), held, None if bound is None else torch.tensor([bound]))


def step(typed, body: str, *values: Typed | Tensor, element: str = "f32") -> Typed:
    """``body`` on %a, %b and %c; ``typed`` is the fixture."""
    return typed(elementwise(f"    {body}", 1, element, "abc"[: len(values)]), *values)


def close(value: float):
    return pytest.approx(value, rel=1e-5)
