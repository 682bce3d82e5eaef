"""Values of which only it is known what they may be instead."""

from __future__ import annotations

import torch

from numtrace.attribute.doubts import Off, drawn, made
from numtrace.evaluate.program import Program

PROGRAM = Program.parse("""
util.func public @main(%a: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %r = arith.negf %a : tensor<2xf32>
  %s = arith.subf %a, %a : tensor<2xf32>
  util.return %r, %s : tensor<2xf32>, tensor<2xf32>
}
""")
NEGATED, CANCELLED, _ = PROGRAM.functions["main"].regions[0].ops
VALUE = torch.tensor([1.0, -2.0], dtype=torch.float64)


def test_what_is_off_is_off_by_its_size_where_it_is() -> None:
    off = Off(VALUE, torch.tensor([True, False]), torch.tensor([1e-10, 1e-10], dtype=torch.float64))
    first, second = drawn([off], 1)[0] - VALUE, drawn([off], 2)[0] - VALUE
    assert 0.5e-10 * 0.999 < abs(first[0]) < 1e-10 * 1.001
    assert first[1] == 0 and first[0] != second[0]


def test_what_is_made_of_one_doubt_twice_cancels() -> None:
    off = Off(VALUE, torch.tensor([True, True]), torch.tensor([0.1, 0.1], dtype=torch.float64))
    doubt = made(PROGRAM, CANCELLED, {CANCELLED.operands[0]: off})[CANCELLED.results[0]]
    assert drawn([doubt], 3)[0].tolist() == [0.0, 0.0]


def test_a_loop_of_many_rounds_is_drawn() -> None:
    doubt = VALUE
    for _ in range(5001):
        doubt = made(PROGRAM, NEGATED, {NEGATED.operands[0]: doubt})[NEGATED.results[0]]
    assert torch.equal(drawn([doubt], 0)[0], -VALUE)
