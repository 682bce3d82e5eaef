"""The walk over a flow program: loops and branches with dispatches in them."""

from __future__ import annotations

import pytest
import torch

import numtrace.evaluate  # noqa: F401  (registers the dialects)
from numtrace.attribute.lanes import COMPILED, EXACT, REFERENCE, Lanes, Tag
from numtrace.errors import UncoveredOp
from numtrace.evaluate.program import Program

LOOP = """
flow.executable private @ex {
  flow.executable.export public @f
  builtin.module {
    func.func @f() {
      return
    }
  }
}
util.func public @main(%a: tensor<1xf32>, %n: index, %c: i1) -> (tensor<1xf32>, tensor<1xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = scf.for %i = %c0 to %n step %c1 iter_args(%v = %a) -> tensor<1xf32> {
    %1 = flow.dispatch @ex::@f(%v, %i) : (tensor<1xf32>, index) -> tensor<1xf32>
    scf.yield %1 : tensor<1xf32>
  }
  %2 = scf.if %c -> tensor<1xf32> {
    %3 = flow.dispatch @ex::@f(%0) : (tensor<1xf32>) -> tensor<1xf32>
    scf.yield %3 : tensor<1xf32>
  } else {
    scf.yield %a : tensor<1xf32>
  }
  util.return %0, %2 : tensor<1xf32>, tensor<1xf32>
}
"""


def follow(lanes: Lanes, program: Program, taken: bool) -> tuple[list[tuple[float, int]], list[float]]:
    """Walks with dispatches that double in the compiled lane and triple in the reference's.

    Returns the operands that the dispatches got in the compiled lane, and the results in all three lanes.
    """
    function = program.functions["main"]
    arguments = [torch.tensor([1.0]), torch.tensor(3), torch.tensor(taken)]
    seen, found = [], []
    for op in lanes.walk(function, arguments):
        if op.name == "util.return":
            found = [
                float(lanes.get(lane, slot)) for slot in op.operands for lane in (COMPILED, REFERENCE, EXACT)
            ]
            assert lanes.tags(op.operands[:1]).differing == {"here"}
            continue
        value, *index = [lanes.get(COMPILED, slot) for slot in op.operands]
        seen.append((float(value), int(index[0]) if index else -1))
        reference = lanes.get(REFERENCE, op.operands[0])
        lanes.set(COMPILED, op.results[0], 2 * value)
        lanes.set(REFERENCE, op.results[0], 3 * reference)
        lanes.set(EXACT, op.results[0], 5 * lanes.get(EXACT, op.operands[0]))
        lanes.tag(op.results[0], Tag(differing=frozenset({"here"})))
    return seen, found


def test_a_loop_hands_every_lane_on() -> None:
    program = Program.parse(LOOP)
    lanes = Lanes(program, {})
    seen, found = follow(lanes, program, taken=False)
    assert seen == [(1.0, 0), (2.0, 1), (4.0, 2)]
    assert found == [8.0, 27.0, 125.0, 1.0, 1.0, 1.0]


def test_a_branch_is_taken_as_in_the_compiled_program() -> None:
    program = Program.parse(LOOP)
    seen, found = follow(Lanes(program, {}), program, taken=True)
    assert seen[3:] == [(8.0, -1)]
    assert found == [8.0, 27.0, 125.0, 16.0, 81.0, 625.0]


def test_dispatches_in_a_function_that_is_called_are_not_taken_for_what_is_between_dispatches():
    """Their traces come in between: the walk must say so, and not run past them."""
    text = (
        LOOP.partition("util.func")[0]
        + """
util.func private @inner(%a: tensor<1xf32>) -> tensor<1xf32> {
  %0 = flow.dispatch @ex::@f(%a) : (tensor<1xf32>) -> tensor<1xf32>
  util.return %0 : tensor<1xf32>
}
util.func private @outer(%a: tensor<1xf32>) -> tensor<1xf32> {
  %0 = util.call @inner(%a) : (tensor<1xf32>) -> tensor<1xf32>
  util.return %0 : tensor<1xf32>
}
util.func public @main(%a: tensor<1xf32>) -> tensor<1xf32> {
  %0 = util.call @outer(%a) : (tensor<1xf32>) -> tensor<1xf32>
  util.return %0 : tensor<1xf32>
}
"""
    )
    program = Program.parse(text)
    with pytest.raises(UncoveredOp, match="a function that is called"):
        list(Lanes(program, {}).walk(program.functions["main"], [torch.tensor([1.0])]))
