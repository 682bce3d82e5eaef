"""Sizes and numbers for pieces, drawn at random."""

from __future__ import annotations

from random import Random

import ml_dtypes
import numpy as np

NUMPY = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}


def sizes(draw: Random, *ranges: tuple[int, int]) -> list[int]:
    return [draw.randint(*ends) for ends in ranges]


def normal(draw: Random, *shape: int, element: str = "f32") -> np.ndarray:
    """Standard normal numbers of ``element``."""
    return np.random.default_rng(draw.randrange(1 << 32)).standard_normal(shape).astype(NUMPY[element])


def rounded(value: np.ndarray, element: str) -> np.ndarray:
    """``value`` rounded to ``element``, in float64."""
    return value.astype(NUMPY[element]).astype(np.float64)
