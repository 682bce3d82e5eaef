"""Softmax, attention and the Winograd transforms, on numbers for which they can be worked out by hand."""

from __future__ import annotations

import math

import pytest
import torch
from kernels import attention, softmax

from numtrace.evaluate.typed.value import Typed

U = 2.0**-24


def test_a_softmax_of_equal_numbers(typed):
    made = typed(softmax(1, 4, "f32"), torch.full((1, 4), 7.0))
    assert made.typed.tolist() == made.exact.tolist() == [[0.25] * 4]
    assert 0 < made.bound.max().item() < 40 * U


def test_a_softmax_of_two_numbers(typed):
    """ln 3 apart: a quarter and three quarters, in bf16 to its 8 digits."""
    x = torch.tensor([[0.0, math.log(3)]])
    made = typed(softmax(1, 2, "f32"), x)
    assert made.exact[0].tolist() == pytest.approx([0.25, 0.75], rel=1e-6)
    assert (made.typed.double() - made.exact).abs().max().item() <= made.bound.max().item() < 1e-6
    brain = typed(softmax(1, 2, "bf16"), x.bfloat16())
    assert brain.typed.dtype == torch.bfloat16 and brain.bound.max().item() < 0.05


def test_a_weight_of_nothing_is_certain(typed):
    made = typed(softmax(1, 2, "f32"), torch.tensor([[-math.inf, 0.0]]))
    assert made.typed.tolist() == [[0.0, 1.0]]
    assert made.bound[0, 0].item() < 1e-30


def test_a_softmax_of_numbers_in_doubt(typed):
    """0 ± 0.1 against 0: between 1/(1 + e^0.1) and 1/(1 + e^-0.1), 0.025 from a half; the rule knows the exponents
    only one by one: (e^0.2 - 1) or so of each."""
    x = torch.zeros(1, 2)
    made = typed(softmax(1, 2, "f32"), Typed(x.double(), x, torch.tensor([[0.1, 0.0]])))
    assert 0.025 < made.bound.max().item() < 0.3


def heads(query: float, element: torch.dtype) -> list[torch.Tensor]:
    """One query and two keys that it is equally far from: the mean of both values, 1 and 3."""
    return [
        torch.full((1, 1, 2), query, dtype=element),
        torch.ones(1, 2, 2, dtype=element),
        torch.tensor([[[1.0], [3.0]]], dtype=element),
    ]


def test_attention_to_two_equal_keys(typed):
    made = typed(attention(1, 1, 2, 2, 1, "f32", 0.5), *heads(1.0, torch.float32))
    assert made.exact.item() == made.typed.item() == 2.0
    assert 0 < made.bound.item() < 200 * U


def test_attention_rounds_the_scaled_query_to_its_type(typed):
    """Scores of 2·30·0.5 = 30 from a query rounded three times or four in f16: 4·2^-11·30 = 0.0586 in each exponent,
    e^±0.0586 in each weight; and the weights' own rounding."""
    made = typed(attention(1, 1, 2, 2, 1, "f16", 0.5), *heads(30.0, torch.float16))
    wide = typed(attention(1, 1, 2, 2, 1, "f32", 0.5), *heads(30.0, torch.float32))
    assert made.exact.item() == made.typed.item() == 2.0
    assert 0.0586 < made.bound.item() < 1.0
    assert wide.bound.item() < 1e-3


def test_a_scaled_query_that_overflows_its_type(typed):
    """1.44 · 50000 is beyond f16, though scale · query is not."""
    made = typed(attention(1, 1, 2, 2, 1, "f16", 1.0), *heads(50000.0, torch.float16))
    assert made.bound.item() == math.inf


def test_a_masked_key_counts_for_nothing(typed):
    mask = torch.tensor([[[True, False]]])
    made = typed(attention(1, 1, 2, 2, 1, "f32", 0.5, "i1"), *heads(1.0, torch.float32), mask)
    assert made.exact.item() == made.typed.item() == 1.0
    added = torch.tensor([[[0.0, -math.inf]]])
    made = typed(attention(1, 1, 2, 2, 1, "f32", 0.5, "f32"), *heads(1.0, torch.float32), added)
    assert made.typed.item() == 1.0


WINOGRAD = """
func.func @main(%x: tensor<1x8x8x1xTYPE>) -> tensor<8x8x1x1x1x1xTYPE> {
  %e = tensor.empty() : tensor<8x8x1x1x1x1xTYPE>
  %y = iree_linalg_ext.winograd.input_transform output_tile_size(6) kernel_size(3) image_dimensions([1, 2])
      ins(%x : tensor<1x8x8x1xTYPE>) outs(%e : tensor<8x8x1x1x1x1xTYPE>) -> tensor<8x8x1x1x1x1xTYPE>
  return %y : tensor<8x8x1x1x1x1xTYPE>
}
"""


def test_a_winograd_transform_of_one_corner(typed):
    """The first column of the matrix is (1, 0, …): only [0, 0] hears of the corner. For it 9 terms twice, entries
    rounded: (2·9 + 2)u, and u for the result; where nothing comes, what may have been flushed: 9·(1 + 15)·2^-126, 15
    being the greatest sum of a row."""
    x = torch.zeros(1, 8, 8, 1)
    x[0, 0, 0, 0] = 1.0
    made = typed(WINOGRAD.replace("TYPE", "f32"), x, deterministic=True)
    assert made.typed.flatten().nonzero().tolist() == [[0]] and made.typed.flatten()[0].item() == 1.0
    bound = made.bound.flatten()
    assert bound[0].item() == pytest.approx(21 * U, rel=1e-3)
    assert bound[1:].max().item() == pytest.approx(9 * 16 * 2.0**-126, rel=1e-3)


def test_a_winograd_transform_in_f16_is_as_far_off_as_its_type(typed):
    x = torch.randn(1, 8, 8, 1, generator=torch.Generator().manual_seed(0))
    half = typed(WINOGRAD.replace("TYPE", "f16"), x.half())
    full = typed(WINOGRAD.replace("TYPE", "f32"), x.half().float())
    assert ((half.typed.double() - half.exact).abs() <= half.bound).all()
    assert 1000 < (half.bound / full.bound).median().item() < 20000  # 2^13 = 8192, less λ for more
