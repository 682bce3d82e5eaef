"""One rounding, directly to the narrow type, held against exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
import torch
from kernels import TORCH

from numtrace.evaluate.formats import FORMATS
from numtrace.evaluate.typed.rounding import flushable, round_to, smallest, unit


def nearest(x: float, element: str) -> float:
    """x rounded half to even, in fractions: Python rounds those so."""
    fmt = FORMATS[element]
    if x == 0:
        return x
    exponent = max(math.frexp(x)[1] - 1, fmt.emin)
    step = Fraction(2) ** (exponent - fmt.precision + 1)
    value = round(Fraction(x) / step) * step
    if abs(value) > fmt.max_finite:
        return math.copysign(math.inf, x)
    return float(value)


@pytest.mark.parametrize("element", ["f32", "f16", "bf16"])
def test_every_magnitude_is_rounded_as_a_fraction_is(element):
    draw = np.random.default_rng(1)
    x = draw.standard_normal(4000) * 2.0 ** draw.integers(-160, 140, 4000)
    if element == "f16":
        x = draw.standard_normal(4000) * 2.0 ** draw.integers(-30, 18, 4000)
    made = round_to(torch.from_numpy(x), element)
    assert made.dtype == TORCH[element]
    assert made.double().tolist() == [nearest(float(v), element) for v in x]


@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_ties_and_their_neighbours(element):
    """Halfway between two numbers, and a hair beside it: the hair is lost in f32, so two roundings go wrong."""
    p = FORMATS[element].precision
    half, hair = 2.0**-p, 2.0**-45
    grid = [1 + 2 * half * i for i in range(8)]
    x = [g + half + d for g in grid for d in (-hair, 0.0, hair)]
    made = round_to(torch.tensor(x, dtype=torch.float64), element).double().tolist()
    # Below the middle down, at the middle to the even one, above it up.
    expected = []
    for i, g in enumerate(grid):
        expected += [g, g if i % 2 == 0 else g + 2 * half, g + 2 * half]
    assert made == expected
    assert round_to(-torch.tensor(x, dtype=torch.float64), element).double().tolist() == [
        -v for v in expected
    ]


def test_below_the_smallest_number():
    x = torch.tensor([2.0**-25, 2.0**-25 + 2.0**-60, 3 * 2.0**-26, 1e-300], dtype=torch.float64)
    assert round_to(x, "f16").double().tolist() == [0.0, 2.0**-24, 2.0**-24, 0.0]
    assert round_to(-x, "f16").double().tolist() == [0.0, -(2.0**-24), -(2.0**-24), 0.0]
    x = torch.tensor([2.0**-134, 2.0**-134 * (1 + 2.0**-40), 2.0**-150], dtype=torch.float64)
    assert round_to(x, "bf16").double().tolist() == [0.0, 2.0**-133, 0.0]


def test_beyond_the_largest_number():
    """65520 is halfway to 65536: to even, which is infinite; a hair below it stays."""
    x = torch.tensor([65519.99, 65520.0, 1e300, -1e300, math.inf], dtype=torch.float64)
    assert round_to(x, "f16").double().tolist() == [65504.0, math.inf, math.inf, -math.inf, math.inf]
    assert torch.isnan(round_to(torch.tensor([math.nan], dtype=torch.float64), "bf16")).all()


def test_f32_to_bf16_as_ml_dtypes_does():
    x = np.random.default_rng(2).standard_normal(1000).astype(np.float32)
    made = round_to(torch.from_numpy(x), "bf16").float().numpy()
    assert (made == x.astype(ml_dtypes.bfloat16).astype(np.float32)).all()


def test_units():
    assert (unit("f32"), unit("f16"), unit("bf16"), unit("f8E4M3FN")) == (
        2.0**-24,
        2.0**-11,
        2.0**-8,
        2.0**-4,
    )


def test_a_result_below_the_normal_range_may_be_zero():
    assert (smallest("f32"), smallest("bf16"), smallest("f16")) == (2.0**-126, 2.0**-126, 2.0**-14)
    assert smallest("f8E5M2") == 2.0**-17  # half of the smallest number, 2^-16


def test_denormal_operands_are_in_doubt_where_arithmetic_is_in_f32():
    x = torch.tensor([0.0, 1e-40, -1e-40, 2.0**-126, 1.0])
    assert flushable(x).tolist() == [False, True, True, False, False]
    assert flushable(x.bfloat16()).tolist() == [False, True, True, False, False]
    assert flushable(torch.tensor([1e-6], dtype=torch.float16)) is None
    assert flushable(torch.ones(3)) is None


def test_what_is_too_large_for_an_f8_without_infinities_is_not_a_number():
    """The numbers of f8E4M3FN end with 448; 480, the next, is its NaN. 464 is half-way, and 448 the even one."""
    x = torch.tensor([448.0, 464.0, 464.5, -500.0, math.inf, -math.inf, math.nan], dtype=torch.float64)
    for value in (x, x.float()):
        made = round_to(value, "f8E4M3FN").double().tolist()
        assert made[:2] == [448.0, 448.0] and all(math.isnan(one) for one in made[2:])
    wide = torch.tensor([1e6, math.inf], dtype=torch.float64)
    assert (
        round_to(wide, "f8E4M3FNUZ").double().isnan().all()
        and round_to(wide, "f8E5M2FNUZ").double().isnan().all()
    )
    assert round_to(wide, "f8E5M2").double().tolist() == [math.inf, math.inf]
