"""Orders with keys that are off: values move by no more, and only what is near another may have its place."""

from __future__ import annotations

import math

import pytest
import torch
from judged import Compiled

from numtrace.errors import UncoveredOp
from numtrace.evaluate.typed.value import Typed

SORT = """
func.func @main(%a: tensor<4xf32>, %i: tensor<4xi64>) -> TYPE {
  %0:2 = iree_linalg_ext.sort dimension(0) outs(%a, %i : tensor<4xf32>, tensor<4xi64>) {
  ^bb0(%x: f32, %y: f32, %m: i64, %n: i64):
    %c = arith.cmpf oge, %x, %y : f32
    iree_linalg_ext.yield %c : i1
  } -> tensor<4xf32>, tensor<4xi64>
  return RESULT : TYPE
}
"""
KEYS = SORT.replace("TYPE", "tensor<4xf32>").replace("RESULT", "%0#0")
PLACES = SORT.replace("TYPE", "tensor<4xi64>").replace("RESULT", "%0#1")
POSITIONS = torch.arange(4)


def off(values: list[float], *error: float) -> Typed:
    typed = torch.tensor(values)
    return Typed(typed.double(), typed, torch.tensor(error))


def test_certain_keys_have_certain_places(typed):
    a = torch.tensor([1.0, 4.0, 2.0, 3.0])
    keys, places = typed(KEYS, a, POSITIONS), typed(PLACES, a, POSITIONS)
    assert keys.typed.tolist() == [4.0, 3.0, 2.0, 1.0] and keys.bound is None
    assert places.typed.tolist() == [1, 3, 2, 0] and places.bound.tolist() == [0.0] * 4


def test_of_equal_keys_any_may_be_first(typed):
    places = typed(PLACES, torch.tensor([1.0, 4.0, 4.0, -math.inf]), POSITIONS)
    assert places.bound.tolist() == [math.inf, math.inf, 0.0, 0.0]


def test_what_is_near_another_key_may_have_its_place(typed):
    """Keys off by 0.25 at most: 3.1 and 2.7 may be the other way round, 4 and 3.1 not."""
    given = off([2.7, 4.0, 3.1, 1.0], 0.25, 0.0, 0.125, 0.0)
    assert typed(KEYS, given, POSITIONS).bound.tolist() == [0.25] * 4
    assert typed(PLACES, given, POSITIONS).bound.tolist() == [0.0, math.inf, math.inf, 0.0]


def test_nothing_in_order_is_nothing(typed):
    empty = torch.empty(0)
    keys = typed(KEYS.replace("<4x", "<0x"), empty, POSITIONS[:0])
    assert keys.typed.tolist() == [] and keys.bound is None


TOPK = """
func.func @main(%a: tensor<4xf32>) -> TYPE {
  %low = arith.constant dense<0xFF800000> : tensor<2xf32>
  %none = arith.constant dense<0> : tensor<2xi32>
  %0:2 = iree_linalg_ext.topk dimension(0) ins(%a : tensor<4xf32>) outs(%low, %none : tensor<2xf32>, tensor<2xi32>) {
  ^bb0(%x: f32, %y: f32):
    %c = arith.cmpf ogt, %x, %y : f32
    iree_linalg_ext.yield %c : i1
  } -> tensor<2xf32>, tensor<2xi32>
  return RESULT : TYPE
}
"""
BEST = TOPK.replace("TYPE", "tensor<2xf32>").replace("RESULT", "%0#0")
WHERE = TOPK.replace("TYPE", "tensor<2xi32>").replace("RESULT", "%0#1")


def test_the_last_of_the_best_may_be_one_that_is_left_out(typed):
    """3.1 is the second of two; 2.7 could be, with both off by 0.25."""
    certain = torch.tensor([2.7, 4.0, 3.1, 1.0])
    assert typed(WHERE, certain).typed.tolist() == [1, 2] and typed(WHERE, certain).bound.tolist() == [
        0.0,
        0.0,
    ]
    given = off([2.7, 4.0, 3.1, 1.0], 0.25, 0.0, 0.125, 0.0)
    assert typed(BEST, given).bound.tolist() == [0.25, 0.25]
    assert typed(WHERE, given).bound.tolist() == [0.0, math.inf]


def test_an_order_of_another_form_has_no_bound(typed):
    text = PLACES.replace(
        "%c = arith.cmpf oge, %x, %y", "%p = math.absf %x : f32\n%c = arith.cmpf oge, %p, %y"
    )
    with pytest.raises(UncoveredOp, match="more than one comparison"):
        typed(text, torch.tensor([1.0, 4.0, 2.0, 3.0]), POSITIONS)


@pytest.mark.parametrize("values", [torch.tensor([0.5, -1.0, 3.0, 2.0]), torch.tensor([2.0, 5.0, 2.0, 5.0])])
def test_what_is_compiled_is_as_it_may_be(tmp_path, values):
    for number, text in enumerate((KEYS, PLACES)):
        for site in Compiled(text, tmp_path / str(number)).run(values, POSITIONS):
            assert site.near.ratio == 0
