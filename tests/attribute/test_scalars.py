"""Rounded constants: which scalar of the source, or which closed form, a stored one stands for."""

from __future__ import annotations

import math

import pytest
import torch

from numtrace.attribute.scalars import derived_constants, rounded_constants, source_scalars
from numtrace.evaluate.program import Program

BODY = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
  %c = arith.constant {value} : f32
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.generic {{indexing_maps = [affine_map<(d) -> (d)>, affine_map<(d) -> (d)>],
      iterator_types = ["parallel"]}} ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {{
  ^bb0(%in: f32, %out: f32):
    %m = arith.mulf %in, %c : f32 loc("numtrace.{stamp}")
    linalg.yield %m : f32
  }} -> tensor<4xf32>
  return %r : tensor<4xf32>
}}
"""


def function(value: float, stamp: int = 3):
    program = Program.parse(BODY.format(value=f"{value:.17e}", stamp=stamp))
    return program, program.functions["main"]


def f32(value: float) -> float:
    return float(torch.tensor(value, dtype=torch.float32))


def test_a_truncated_scalar_is_found_by_its_op() -> None:
    stored = 0.130249992
    program, main = function(f32(stored))
    ((_, rounded),) = rounded_constants(main, {3: frozenset({0.13025, 7.0})})
    assert rounded.source == 0.13025 and rounded.stored == f32(stored)
    assert rounded.beyond_half_ulp  # the nearest f32 is 0.130250007
    assert program


def test_the_scalar_of_another_op_is_not_taken() -> None:
    _, main = function(f32(0.13025), stamp=4)
    assert rounded_constants(main, {3: frozenset({0.13025})}) == []


def test_an_exact_constant_is_no_finding() -> None:
    _, main = function(0.5)
    assert rounded_constants(main, {3: frozenset({0.5})}) == []


@pytest.mark.parametrize(
    "value", [math.sqrt(2), 1 / math.sqrt(24), math.sqrt(2 / math.pi), math.log(2), 0.044715, 1 / 3]
)
def test_closed_forms_that_lowerings_compute(value: float) -> None:
    _, main = function(f32(value))
    ((_, rounded),) = derived_constants(main, [])
    assert rounded.source == pytest.approx(value, rel=1e-15)


def test_numbers_of_few_bits_stand_for_themselves() -> None:
    for value in (1.0, 0.125, 640.0, 1.5):
        _, main = function(value)
        assert derived_constants(main, []) == []


def test_scalars_of_the_source_are_kept_by_the_ops_that_use_them() -> None:
    program = Program.parse(
        """
func.func @main(%x: tensor<4xf64>) -> tensor<4xf64> {
  %c = arith.constant 1.300000e-01 : f64 loc("numtrace.1")
  %e = tensor.splat %c : tensor<4xf64> loc("numtrace.2")
  return %e : tensor<4xf64> loc("numtrace.3")
}
"""
    )
    assert source_scalars(program) == {2: frozenset({0.13})}


@pytest.mark.parametrize(
    "value", [-torch.finfo(torch.float32).max, torch.finfo(torch.float32).smallest_normal]
)
def test_a_mask_or_the_least_float_stands_for_nothing(value):
    """The square of the one and the inverse square of the other are infinite."""
    _, main = function(value)
    assert derived_constants(main, []) == []


def test_an_infinite_constant_stands_for_nothing():
    main = Program.parse(BODY.format(value="0xFF800000", stamp=3)).functions["main"]
    assert derived_constants(main, []) == []
