"""Which source op a pass broke, from the programs before and after it."""

from __future__ import annotations

import torch

from numtrace.attribute.rewrite import changed_ops, suspects
from numtrace.attribute.sums import SummingMachine
from numtrace.evaluate.program import Program

#: 1 → 2 → 4 and 3 → 4, which is returned; 3 is a branch of its own.
PROGRAM = """
util.func public @main(%a: tensor<2xf32>) -> tensor<2xf32> {
  %c = arith.constant dense<2.0> : tensor<2xf32> loc("numtrace.2")
  %1 = math.exp %a : tensor<2xf32> loc("numtrace.1")
  %2 = arith.mulf %1, %c : tensor<2xf32> loc("numtrace.2")
  %3 = arith.negf %a : tensor<2xf32> loc("numtrace.3")
  %4 = arith.subf %2, %3 : tensor<2xf32> loc("numtrace.4")
  util.return %4 : tensor<2xf32>
}
"""
INPUT = torch.tensor([0.5, 2.0])


def evaluated(text: str):
    program = Program.parse(text)
    machine = SummingMachine(program, {})
    machine.run(program.functions["main"].regions[0], [INPUT])
    return program, machine.sums


def found(*replacements: tuple[str, str]) -> list[int]:
    after = PROGRAM
    for old, new in replacements:
        assert old in after
        after = after.replace(old, new)
    (program, sums), (other, now) = evaluated(PROGRAM), evaluated(after)
    return suspects(program, program.functions["main"], changed_ops(program, other), sums, now)


def test_the_op_that_was_rewritten_wrongly_is_found_and_not_its_readers():
    assert found(("math.exp %a", "math.exp2 %a")) == [1]


def test_a_right_rewrite_beside_it_is_not_accused():
    """-x is 0 - x: changed, and the same value."""
    negated = '%z = arith.constant dense<0.0> : tensor<2xf32> loc("numtrace.3")\n  %3 = arith.subf %z, %a'
    assert found(("%3 = arith.negf %a", negated), ("arith.subf %2, %3", "arith.addf %2, %3")) == [4]


def test_a_difference_that_is_healed_further_down_is_not_accused():
    """exp(a) doubled in the op before and not in the op after: another intermediate, the same product."""
    moved = (
        '%1 = math.exp %a : tensor<2xf32> loc("numtrace.1")',
        '%e = math.exp %a : tensor<2xf32> loc("numtrace.1")\n'
        '  %1 = arith.addf %e, %e : tensor<2xf32> loc("numtrace.1")',
    )
    one = ("dense<2.0>", "dense<1.0>")
    assert found(moved, one, ("arith.negf %a", "arith.addf %a, %a")) == [3]


def test_an_op_that_was_fused_with_another_is_named_before_its_readers():
    fused = ("%2 = arith.mulf %1, %c : tensor<2xf32> loc(\"numtrace.2\")",
             "%2 = arith.addf %1, %c : tensor<2xf32> loc(fused[\"numtrace.2\", \"numtrace.9\"])")  # fmt: skip
    assert found(fused)[0] == 2


def test_the_stamp_of_a_function_beside_an_ops_own_is_no_second_op():
    """What was inlined carries both: the op, at the call in the function."""
    inlined = PROGRAM.replace('loc("numtrace.1")', 'loc(callsite("numtrace.1" at "numtrace.0"))')
    inlined = inlined.replace(
        "  util.return %4 : tensor<2xf32>\n}", '  util.return %4 : tensor<2xf32>\n} loc("numtrace.0")'
    )
    (program, sums), (other, now) = (
        evaluated(inlined),
        evaluated(inlined.replace("math.exp %a", "math.exp2 %a")),
    )
    changed = [stamp for stamp in changed_ops(program, other) if stamp]
    assert suspects(program, program.functions["main"], changed, sums, now) == [1]
