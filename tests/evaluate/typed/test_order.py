from __future__ import annotations

import pytest
import torch

from numtrace.errors import UncoveredOp
from numtrace.evaluate.affine import Domain, Linear
from numtrace.evaluate.typed import order
from numtrace.evaluate.typed.order import contract_in_order, sum_in_order


def loops(*numbers: int) -> tuple[Linear, ...]:
    return tuple(Linear(((number, 1),)) for number in numbers)


MATMUL = (loops(0, 2), loops(2, 1), loops(0, 1))


def test_ten_thousand_ones_in_f16_stay_at_2048():
    """2048 + 1 is halfway between 2048 and 2050: to even, for ever."""
    assert sum_in_order(torch.ones(1, 10_000, dtype=torch.float16), [1], torch.zeros(1), "f16").tolist() == [
        2048.0
    ]


def test_ones_in_bf16_stay_at_256():
    assert sum_in_order(torch.ones(300, dtype=torch.bfloat16), [0], torch.zeros(()), "bf16").item() == 256.0


def test_ones_after_two_to_the_24_are_lost_in_f32():
    terms = torch.ones(100)
    assert sum_in_order(terms, [0], torch.tensor(2.0**24), "f32").item() == 2.0**24
    assert sum_in_order(terms, [0], torch.tensor(2.0**23), "f32").item() == 2.0**23 + 100


def test_the_order_is_row_major_over_the_summed_dimensions():
    """Of (rows, columns) with 2^24 last, the ones before it are kept; with it first they are lost."""
    last = torch.ones(2, 2)
    last[1, 1] = 2.0**24
    first = last.flip(0, 1)
    assert sum_in_order(last, [0, 1], torch.zeros(()), "f32").item() == 2.0**24 + 4  # 3 + 2^24, to even
    assert sum_in_order(first, [0, 1], torch.zeros(()), "f32").item() == 2.0**24


def test_dimensions_that_are_not_summed_stay():
    terms = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert sum_in_order(terms, [0], torch.tensor([10.0, 20.0, 30.0]), "f32").tolist() == [15.0, 27.0, 39.0]


def test_a_contraction_in_f16_rounds_at_every_step():
    """2048 + 1·1 + 1·1 stays at 2048; 1·1 + 1·1 + 2048·1 is 2050."""
    a, b = torch.tensor([[2048.0, 1.0, 1.0], [1.0, 1.0, 2048.0]]), torch.ones(3, 1)
    domain = Domain.whole([2, 1, 3])
    out = torch.zeros(2, 1, dtype=torch.float16)
    made = contract_in_order((a.half(), MATMUL[0]), (b.half(), MATMUL[1]), (out, MATMUL[2]), domain, "f16")
    assert made.dtype == torch.float16 and made.tolist() == [[2048.0], [2050.0]]


def test_what_would_take_minutes_is_not_summed(monkeypatch):
    monkeypatch.setattr(order, "LIMIT", 5)
    a, b, out = torch.ones(2, 3), torch.ones(3, 1), torch.zeros(2, 1)
    with pytest.raises(UncoveredOp, match="6 multiplications"):
        contract_in_order((a, MATMUL[0]), (b, MATMUL[1]), (out, MATMUL[2]), Domain.whole([2, 1, 3]), "f32")
