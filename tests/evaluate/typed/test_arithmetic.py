"""The rules of ``arith``, each on numbers whose bounds follow by hand."""

from __future__ import annotations

import math

import pytest
import torch
from doubtful import close, number, step

from numtrace.evaluate.typed.value import Typed

U32, U16 = 2.0**-24, 2.0**-11
TINY = 2.0**-126


def test_a_sum_of_certain_numbers_may_be_left_unrounded(typed):
    """1 + 2^-25 is 1 in f32; code that fuses it into something else may keep it: u·|result|."""
    made = step(typed, "%r = arith.addf %a, %b : E", number(1.0), number(2.0**-25))
    assert (made.exact.item(), made.typed.item()) == (1 + 2.0**-25, 1.0)
    assert made.bound.item() == close(U32)
    assert abs(made.exact.item() - made.typed.item()) <= made.bound.item()


def test_the_bounds_of_a_sum_add_up(typed):
    made = step(typed, "%r = arith.addf %a, %b : E", number(3.0, 0.25), number(1.0, 0.5))
    assert made.bound.item() == close(0.75 * (1 + U32) + 4 * 2 * U32)


def test_cancellation_keeps_the_bound(typed):
    made = step(typed, "%r = arith.subf %a, %b : E", number(3.0, 0.25), number(3.0))
    assert made.typed.item() == 0.0 and made.bound.item() == close(0.25)


def test_a_product(typed):
    """3 ± 0.1 times 2 ± 0.01: at most 3.1 · 2.01 - 6 = 0.231."""
    made = step(typed, "%r = arith.mulf %a, %b : E", number(3.0, 0.1), number(2.0, 0.01))
    assert made.bound.item() == close(0.231)
    one = step(typed, "%r = arith.mulf %a, %b : E", number(3.0), number(-2.0, 0.01))
    assert one.bound.item() == close(0.03 + 12 * U32)


def test_a_quotient(typed):
    """6 ± 0.1 over 2 ± 0.5: at most 6.1 / 1.5 - 3 = 1.0667."""
    made = step(typed, "%r = arith.divf %a, %b : E", number(6.0, 0.1), number(2.0, 0.5))
    assert made.bound.item() == close(1.6 / 1.5)


def test_a_divisor_that_may_be_zero(typed):
    made = step(typed, "%r = arith.divf %a, %b : E", number(6.0), number(0.5, 0.5))
    assert made.bound.item() == math.inf


def test_a_fused_multiply_add_is_rounded_once(typed):
    """(1 + 2^-12)² - 1 = 2^-11 + 2^-24, which f32 holds; the product alone it does not."""
    a = number(1 + 2.0**-12)
    made = step(typed, "%r = math.fma %a, %b, %c : E", a, a, number(-1.0))
    assert made.typed.item() == 2.0**-11 + 2.0**-24
    two = "%m = arith.mulf %a, %b : E\n    %r = arith.addf %m, %c : E"
    unfused = step(typed, two, a, a, number(-1.0))
    assert unfused.typed.item() == 2.0**-11
    # Code may fuse the two: u·|product|, and the sum's own rounding.
    assert abs(made.typed.item() - unfused.typed.item()) <= unfused.bound.item() <= 1.01 * U32


def test_below_the_normal_range_a_result_may_be_flushed(typed):
    made = step(typed, "%r = arith.mulf %a, %b : E", number(1e-20), number(1e-20))
    assert made.typed.item() == pytest.approx(1e-40, rel=1e-4) and made.bound.item() == close(TINY)


def test_f16_and_bf16_are_rounded_to_their_own_type(typed):
    half = step(
        typed, "%r = arith.addf %a, %b : E", number(2048.0, dtype=torch.float16), number(1.0, dtype=torch.float16),
        element="f16",
    )  # fmt: skip
    assert half.typed.item() == 2048.0 and half.exact.item() == 2049.0
    assert half.bound.item() == close(2048 * U16 + 2.0**-14)
    brain = step(
        typed, "%r = arith.mulf %a, %b : E",
        number(1 + 2.0**-7, dtype=torch.bfloat16), number(1 + 2.0**-7, dtype=torch.bfloat16), element="bf16",
    )  # fmt: skip
    # 1 + 2^-6 + 2^-14: to the nearest, 1 + 2^-6.
    assert brain.typed.item() == 1 + 2.0**-6


def test_minimum_and_maximum_round_nothing(typed):
    made = step(typed, "%r = arith.maximumf %a, %b : E", number(3.0, 0.25), number(5.0, 0.125))
    assert (made.typed.item(), made.bound.item()) == (5.0, 0.25)
    assert step(typed, "%r = arith.minimumf %a, %b : E", number(3.0), number(5.0)).bound is None


def test_of_two_that_may_be_zero_a_maximum_may_be_either(typed):
    # Flushed to be compared, x and -x are equal, and either is returned as it is: 2x apart.
    x = 2.0**-127
    made = step(typed, "%r = arith.maximumf %a, %b : E", number(x, x), number(-x, x))
    assert (made.typed.item(), made.bound.item()) == (x, 2 * x)


def test_a_maximum_in_f16_may_be_flushed(typed):
    """It is taken in f32, and put back into f16 by a conversion that may have no denormals."""
    a, b = (number(value, dtype=torch.float16) for value in (3 * 2.0**-17, -1.0))
    made = step(typed, "%r = arith.maximumf %a, %b : E", a, b, element="f16")
    assert (made.typed.item(), made.bound.item()) == (3 * 2.0**-17, 3 * 2.0**-17)
    divided = "%m = arith.maximumf %a, %b : E\n    %r = arith.divf %a, %m : E"
    assert step(typed, divided, a, b, element="f16").bound.item() == math.inf


def test_a_sign_is_exact(typed):
    made = step(typed, "%r = arith.negf %a : E", number(3.0, 0.25))
    assert (made.typed.item(), made.bound.item()) == (-3.0, 0.25)


COMPARED = "%c = arith.cmpf ogt, %a, %b : E\n    %r = arith.select %c, %a, %b : E"


def test_a_near_tie_may_be_decided_either_way(typed):
    """1 ± 0.1 against 1.05: either may be chosen, 0.05 apart, each with its own bound."""
    made = step(typed, COMPARED, number(1.0, 0.1), number(1.05))
    assert made.typed.item() == close(1.05)
    assert made.bound.item() == close(0.05 + 0.1)


def test_a_clear_decision_is_no_tie(typed):
    made = step(typed, COMPARED, number(1.0, 0.1), number(1.2))
    assert made.typed.item() == close(1.2) and made.bound.item() == 0.0
    assert step(typed, COMPARED, number(1.0), number(1.0)).bound is None


CAST = """
func.func @main(%a: tensor<1xf32>) -> tensor<1xTYPE> {
  %r = arith.truncf %a : tensor<1xf32> to tensor<1xTYPE>
  return %r : tensor<1xTYPE>
}
"""


def cast(typed, element: str, value: float, bound: float | None = None) -> Typed:
    return typed(CAST.replace("TYPE", element), number(value, bound))


def test_a_cast_of_a_certain_number_is_certain(typed):
    made = cast(typed, "f16", 1 + 2.0**-12)
    assert made.typed.item() == 1.0 and made.exact.item() == 1 + 2.0**-12 and made.bound is None


def test_a_cast_that_straddles_a_boundary_is_off_by_a_whole_step(typed):
    """1 + 2^-11 ± 2^-20 lies on both sides of the middle between 1 and 1 + 2^-10: the tie goes to 1."""
    made = cast(typed, "f16", 1 + 2.0**-11, 2.0**-20)
    assert (made.typed.item(), made.bound.item()) == (1.0, 2.0**-10)
    odd = cast(typed, "f16", 1 + 3 * 2.0**-11, 2.0**-20)  # between 1 + 2^-10 and 1 + 2^-9, to the latter
    assert (odd.typed.item(), odd.bound.item()) == (1 + 2.0**-9, 2.0**-10)


def test_a_cast_away_from_a_boundary_is_certain_though_its_operand_is_not(typed):
    assert cast(typed, "f16", 1 + 2.0**-12, 2.0**-20).bound.item() == 0.0


def test_a_cast_to_bf16_may_be_left_out(typed):
    """What is cast back at once stays in f32: off by what the rounding would have taken."""
    assert cast(typed, "bf16", 1 + 2.0**-9).bound.item() == 2.0**-9
    assert cast(typed, "bf16", 1 + 2.0**-9, 2.0**-20).bound.item() == close(2.0**-9 + 2.0**-20)
    straddling = cast(typed, "bf16", 1 + 2.0**-8, 2.0**-20)
    assert (straddling.typed.item(), straddling.bound.item()) == (1.0, 2.0**-7)


def test_a_cast_to_f16_may_flush(typed):
    made = cast(typed, "f16", 3 * 2.0**-17)
    assert (made.typed.item(), made.bound.item()) == (3 * 2.0**-17, 3 * 2.0**-17)


def test_an_infinite_f16_is_certain_when_it_is_far_beyond(typed):
    made = cast(typed, "f16", 1e6, 1.0)
    assert (made.typed.item(), made.bound.item()) == (math.inf, 0.0)
    assert cast(typed, "f16", 65519.0, 2.0).bound.item() == math.inf


def test_beyond_f8_anything_may_be_made(typed):
    assert cast(typed, "f8E4M3FN", 500.0).bound.item() == math.inf
    assert cast(typed, "f8E4M3FN", 17.0).bound.item() == 0.0
    assert cast(typed, "f8E4M3FN", 17.0).typed.float().item() == 16.0  # 16 and 18 are numbers: a tie, to even


INTEGER = """
func.func @main(%a: tensor<1xf32>) -> tensor<1xi32> {
  %r = arith.fptosi %a : tensor<1xf32> to tensor<1xi32>
  return %r : tensor<1xi32>
}
"""


@pytest.mark.parametrize(("op", "bits"), [("fptosi", 31), ("fptosi", 63), ("fptoui", 32), ("fptoui", 64)])
def test_the_first_integer_beyond_the_range_is_undefined(typed, op: str, bits: int):
    width = bits + (op == "fptosi")
    text = INTEGER.replace("fptosi", op).replace("i32", f"i{width}")
    assert typed(text, number(2.0**bits)).bound.item() == math.inf
    assert typed(text, number(2.0 ** (bits - 1))).bound is None


def test_an_integer_within_rounding_of_its_threshold(typed):
    near = typed(INTEGER, number(2.95, 0.1))
    assert (near.typed.item(), near.bound.item()) == (2, 1.0)
    clear = typed(INTEGER, number(2.5, 0.1))
    assert (clear.typed.item(), clear.bound.item()) == (2, 0.0)


LARGER = "%c = arith.cmpf ogt, %a, %b : E\n    %r = arith.select %c, %a, %b : E"


def test_a_nan_in_doubt_is_compared_in_doubt(typed):
    """inf - inf where either may be a number: code that has one of them decides otherwise."""
    for value in (number(math.nan, math.nan), number(math.inf, math.inf)):
        assert not math.isfinite(step(typed, LARGER, value, number(0.0)).bound.item())
    certain = step(typed, LARGER, number(math.nan), number(0.0))
    assert (certain.typed.item(), certain.bound) == (0.0, None)


def test_a_choice_in_doubt_between_a_number_and_infinity_is_without_limit(typed):
    choice = "%c = arith.cmpf ogt, %a, %b : E\n    %r = arith.select %c, %a, %inf : E"
    body = f"%inf = arith.constant 0xFF800000 : E\n    {choice}"
    assert step(typed, body, number(1.0, 0.5), number(1.0)).bound.item() == math.inf


def test_an_integer_that_bf16_does_not_hold_may_be_kept_in_f32(typed):
    """257 is 256 in bf16; code that keeps it in f32 is 1 off, within a unit in the last place (2)."""
    body = """%i = arith.fptosi %a : E to i32
    %s = arith.sitofp %i : i32 to bf16
    %r = arith.extf %s : bf16 to E"""
    made = step(typed, body, number(257.0))
    assert (made.typed.item(), made.bound.item()) == (256.0, close(257 * 2.0**-7))
    exact = step(typed, body, number(256.0))
    assert (exact.typed.item(), exact.bound.item()) == (256.0, 0.0)


def test_a_shift_by_the_width_or_more_may_be_anything(typed):
    text = """
    util.func public @main(%a: tensor<4xi8>, %b: tensor<4xi8>) -> tensor<4xi8> {
      %r = arith.shli %a, %b : tensor<4xi8>
      util.return %r : tensor<4xi8>
    }
    """
    made = typed(
        text, torch.tensor([1, 1, 1, 1], dtype=torch.int8), torch.tensor([7, 8, -1, 0], dtype=torch.int8)
    )
    assert made.bound.tolist() == [0.0, math.inf, math.inf, 0.0]
    assert made.exact[[0, 3]].tolist() == [-128, 1]


def test_an_index_has_64_bits(typed):
    text = """
    util.func public @main(%a: tensor<2xindex>, %b: tensor<2xindex>) -> tensor<2xindex> {
      %r = arith.shrui %a, %b : tensor<2xindex>
      util.return %r : tensor<2xindex>
    }
    """
    made = typed(text, torch.tensor([8, 8]), torch.tensor([2, 64]))
    assert made.bound.tolist() == [0.0, math.inf]
    assert made.exact[0].item() == 2


COUNTED = """
func.func @main(%a: tensor<1xf32>) -> tensor<1xi32> {
  %i = arith.fptosi %a : tensor<1xf32> to tensor<1xi32>
  %r = math.ctpop %i : tensor<1xi32>
  return %r : tensor<1xi32>
}
"""


def test_the_bits_of_an_integer_in_doubt_are_in_doubt(typed):
    """2 has one bit, 3 two: 2.95 ± 0.1 may be either."""
    near = typed(COUNTED, number(2.95, 0.1))
    assert (near.typed.item(), near.bound.item()) == (1, math.inf)
    clear = typed(COUNTED, number(2.5, 0.1))
    assert (clear.typed.item(), clear.bound.item()) == (1, 0.0)
