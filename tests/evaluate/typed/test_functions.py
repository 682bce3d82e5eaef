"""The rules of ``math``. The expected distances come from the functions' own addition theorems."""

from __future__ import annotations

import math

import pytest
import torch
from doubtful import close, number, step
from kernels import elementwise

from numtrace.evaluate.typed import functions
from numtrace.evaluate.typed.accuracy import Accuracy, Interval

U32 = 2.0**-24


@pytest.fixture(autouse=True)
def half_an_ulp(monkeypatch):
    """Of functions whose code is as good as it gets, so that nothing depends on what was measured."""
    exact = Accuracy((Interval(-math.inf, math.inf, 0.5),))
    monkeypatch.setattr(functions, "accuracy", lambda name, element: exact)


def test_a_function_of_a_certain_number_is_off_by_two_roundings(typed):
    made = step(typed, "%r = math.exp %a : E", number(1.0))
    assert made.typed.item() == torch.tensor(math.e, dtype=torch.float64).float().item()
    assert made.bound.item() == close(2 * U32 * math.e)


def test_the_measured_error_and_that_of_the_argument_are_added(typed, monkeypatch):
    """3 ulps are 6u of the result; the argument off by 2^-20 of itself makes e·(e^(2^-20) - 1) more."""
    found = Accuracy((Interval(-math.inf, math.inf, 3.0),), argument=2.0**-20)
    monkeypatch.setattr(functions, "accuracy", lambda name, element: found)
    made = step(typed, "%r = math.exp %a : E", number(1.0))
    assert made.bound.item() == pytest.approx(math.e * (7 * U32 + 2.0**-20), rel=1e-3)


def test_between_the_ends_of_a_monotone_function(typed):
    """exp(1 ± 0.1): e·(e^0.1 - 1) at most."""
    made = step(typed, "%r = math.exp %a : E", number(1.0, 0.1))
    assert made.bound.item() == pytest.approx(math.e * math.expm1(0.1), rel=1e-5)


def test_a_function_near_the_end_of_its_domain_has_no_limit(typed):
    assert step(typed, "%r = math.log %a : E", number(0.1, 0.2)).bound.item() == math.inf
    assert step(typed, "%r = math.rsqrt %a : E", number(0.1, 0.1)).bound.item() == math.inf
    assert step(typed, "%r = math.sqrt %a : E", number(4.0, 2.25)).bound.item() == pytest.approx(
        2 - 1.75**0.5
    )


def test_sine_and_cosine_move_no_more_than_their_argument(typed):
    assert step(typed, "%r = math.sin %a : E", number(0.0, 0.25)).bound.item() == close(0.25)
    assert step(typed, "%r = math.cos %a : E", number(0.0, 1e9)).bound.item() == close(2.0)


def test_steps_jump_by_one(typed):
    assert step(typed, "%r = math.floor %a : E", number(2.95, 0.1)).bound.item() == 1.0
    assert step(typed, "%r = math.floor %a : E", number(2.5, 0.1)).bound.item() == 0.0
    assert step(typed, "%r = math.floor %a : E", number(2.5)).bound is None


def test_a_power_is_farthest_off_at_a_corner(typed):
    """(2 ± 0.1)^(3 ± 0.1): 2.1^3.1 - 8."""
    made = step(typed, "%r = math.powf %a, %b : E", number(2.0, 0.1), number(3.0, 0.1))
    assert made.bound.item() == pytest.approx(2.1**3.1 - 8, rel=1e-4)


def test_an_absolute_value_and_a_copied_sign(typed):
    assert step(typed, "%r = math.absf %a : E", number(-2.0, 0.25)).bound.item() == 0.25
    unsure = step(typed, "%r = math.copysign %a, %b : E", number(3.0), number(0.1, 0.2))
    assert unsure.bound.item() == 6.0
    assert step(typed, "%r = math.copysign %a, %b : E", number(3.0), number(0.5, 0.2)).bound.item() == 0.0


def test_a_number_that_may_be_nan_is_classified_as_it_is_typed(typed):
    body = "    %n = math.isnan %a : E\n    %r = arith.select %n, %b, %a : E"
    made = typed(elementwise(body, 1, "f32"), number(math.nan), number(7.0))
    assert made.typed.item() == 7.0


SINE = """
func.func @main() -> tensor<3xf32> {
  %e = tensor.empty() : tensor<3xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      outs(%e : tensor<3xf32>) {
  ^bb0(%o: f32):
    %j = linalg.index 0 : index
    %i = arith.index_cast %j : index to i32
    %f = arith.sitofp %i : i32 to f32
    %r = math.sin %f : f32
    linalg.yield %r : f32
  } -> tensor<3xf32>
  return %y : tensor<3xf32>
}
"""


def test_a_function_of_an_index_is_as_far_off_as_of_any_number(typed):
    """The positions are certain, their sines are not."""
    made = typed(SINE)
    for at in range(3):
        given = step(typed, "%r = math.sin %a : E", number(float(at)))
        assert made.typed[at].item() == given.typed.item()
        assert made.bound[at].item() == given.bound.item() > 0


def test_an_exponential_of_a_doubtful_number_reaches_to_its_upper_end(typed):
    # Of -110 ± 80 it may be e^-30, though e^-110 itself is below the normal range.
    made = step(typed, "%r = math.exp %a : E", number(-110.0, 80.0))
    assert made.bound.item() == pytest.approx(math.exp(-30), rel=1e-4)
    made = step(typed, "%r = math.exp %a : E", number(1.0, 1e-3))
    assert made.bound.item() == pytest.approx(math.e * math.expm1(1e-3), rel=1e-3)


@pytest.mark.parametrize("name", ["sin", "cos", "tanh", "erf", "atan", "exp"])
def test_a_function_of_what_may_be_anything_may_be_anything(typed, name: str):
    assert step(typed, f"%r = math.{name} %a : E", number(2.0, math.inf)).bound.item() == math.inf
