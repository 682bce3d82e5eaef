"""A choice by a comparison of what it chooses from is no other than torch.where, bit for bit."""

from __future__ import annotations

from itertools import product

import pytest
import torch

from numtrace.evaluate.machine import Machine
from numtrace.evaluate.op import walk
from numtrace.evaluate.program import Program
from numtrace.evaluate.typed.machine import TypedMachine
from numtrace.evaluate.typed.value import Typed

#: By the predicate's name: whether it holds for (less, equal, greater, not comparable).
HOLDS = {
    "ogt": (0, 0, 1, 0), "oge": (0, 1, 1, 0), "olt": (1, 0, 0, 0), "ole": (1, 1, 0, 0), "oeq": (0, 1, 0, 0),
    "ugt": (0, 0, 1, 1), "uge": (0, 1, 1, 1), "ult": (1, 0, 0, 1), "ule": (1, 1, 0, 1), "une": (1, 0, 1, 1),
}  # fmt: skip

NUMBERS = [-2.0, -0.0, 0.0, 1.5, 6.0, 7.0, float("inf"), float("-inf")]
LIMITS = ["0.0", "-0.0", "6.0", "-2.0", "0x7FC00000"]


def _bits(value: torch.Tensor) -> list[int]:
    return value.view(torch.int64).tolist()


@pytest.mark.parametrize(("predicate", "limit"), [*product(HOLDS, LIMITS)])
def test_bits_of_choices(predicate: str, limit: str) -> None:
    """Each order of operands and branches, with and without NaN, by hand."""
    number = float("nan") if limit.startswith("0x") else float(limit)
    for swapped, turned, nan in product((False, True), repeat=3):
        a, b = ("%l", "%x") if swapped else ("%x", "%l")
        yes, no = (b, a) if turned else (a, b)
        program = Program.parse(f"""
util.func public @main(%in: tensor<?xf32>, %out: tensor<?xf32>) -> tensor<?xf32> {{
  %l = arith.constant {limit} : f32
  %r = linalg.generic {{indexing_maps = [affine_map<(d) -> (d)>, affine_map<(d) -> (d)>],
      iterator_types = ["parallel"]}} ins(%in : tensor<?xf32>) outs(%out : tensor<?xf32>) {{
  ^bb0(%x: f32, %o: f32):
    %c = arith.cmpf {predicate}, {a}, {b} : f32
    %s = arith.select %c, {yes}, {no} : f32
    linalg.yield %s : f32
  }} -> tensor<?xf32>
  util.return %r : tensor<?xf32>
}}
""")
        assert any(op.chooses for op in walk([program.body]))
        given = [*NUMBERS, float("nan")] if nan else NUMBERS
        values = torch.tensor(given, dtype=torch.float64)
        (made,) = Machine(program).run(
            program.functions["main"].regions[0], [values, torch.zeros_like(values)]
        )
        want = []
        for value in given:
            left, right = (number, value) if swapped else (value, number)
            less, equal, greater = left < right, left == right, left > right
            holds = HOLDS[predicate][(less, equal, greater, True).index(True)]
            first, second = (right, left) if turned else (left, right)
            want.append(first if holds else second)
        assert _bits(made) == _bits(torch.tensor(want, dtype=torch.float64)), (predicate, a, b, yes, no)


RELU6 = """
util.func public @main(%in: tensor<?xf32>, %out: tensor<?xf32>) -> tensor<?xf32> {
  %zero = arith.constant 0.0 : f32
  %six = arith.constant 6.0 : f32
  %r = linalg.generic {indexing_maps = [affine_map<(d) -> (d)>, affine_map<(d) -> (d)>],
      iterator_types = ["parallel"]} ins(%in : tensor<?xf32>) outs(%out : tensor<?xf32>) {
  ^bb0(%x: f32, %o: f32):
    %c = arith.cmpf ogt, %x, %zero : f32
    %s = arith.select %c, %x, %zero : f32
    %d = arith.cmpf olt, %six, %s : f32
    %t = arith.select %d, %six, %s : f32
    linalg.yield %t : f32
  } -> tensor<?xf32>
  util.return %r : tensor<?xf32>
}
"""


def test_bounds_of_clamped_values() -> None:
    """What is certain beyond a limit is certain to be it, what may reach it is off by no more than it reaches."""
    values = torch.tensor([-1.0, -0.25, 0.25, 3.0, 5.75, 6.25, 9.0], dtype=torch.float32)
    program = Program.parse(RELU6)
    given = Typed(values.double(), values, torch.full_like(values, 0.5), False)
    zeros = Typed(torch.zeros(7, dtype=torch.float64), torch.zeros(7))
    (made,) = TypedMachine(program).run(program.functions["main"].regions[0], [given, zeros])
    assert made.typed.tolist() == [0.0, 0.0, 0.25, 3.0, 5.75, 6.0, 6.0]
    assert made.exact.tolist() == made.typed.tolist()
    assert made.bound.tolist() == pytest.approx([0.0, 0.25, 0.5, 0.5, 0.5, 0.25, 0.0], abs=1e-6)


def test_a_nan_keeps_its_doubt() -> None:
    """Of x > 0 ? x : 0 a NaN is 0; one that only the typed meaning has is in doubt."""
    program = Program.parse(RELU6)
    nan = float("nan")
    exact = torch.tensor([nan, 1.0, -1.0], dtype=torch.float64)
    typed = torch.tensor([nan, nan, -1.0], dtype=torch.float32)
    given = Typed(exact, typed, torch.tensor([0.0, nan, 0.5]), False)
    zeros = Typed(torch.zeros(3, dtype=torch.float64), torch.zeros(3))
    (made,) = TypedMachine(program).run(program.functions["main"].regions[0], [given, zeros])
    assert made.exact.tolist() == [0.0, 1.0, 0.0]
    assert made.typed.tolist() == [0.0, 0.0, 0.0]
    assert made.bound[0] == 0.0
    assert made.bound[1] == torch.inf
    assert made.bound[2] == 0.0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_what_reaches_a_limit_in_a_narrow_type(dtype):
    """In bf16 -0.914 less 0.01 loses what is left of it beside its bound: it may be 0.0105, 5e-4 beyond."""
    element = {torch.bfloat16: "bf16", torch.float16: "f16"}[dtype]
    program = Program.parse(RELU6.replace("f32", element).replace("0.0 :", "0.01 :"))
    values = torch.tensor([-0.9140625] * 7).to(dtype)
    limit = float(torch.tensor(0.01).to(dtype))
    error = 0.9140625 + limit + 5e-4
    given = Typed(values.double(), values, torch.full((7,), error), False)
    zeros = Typed(torch.zeros(7, dtype=torch.float64), torch.zeros(7, dtype=dtype))
    (made,) = TypedMachine(program).run(program.functions["main"].regions[0], [given, zeros])
    assert made.typed.tolist() == [limit] * 7
    assert made.bound.tolist() == pytest.approx([5e-4] * 7, rel=1e-2)
