import pytest
import torch

from numtrace.errors import UncoveredOp
from numtrace.evaluate.machine import Machine
from numtrace.evaluate.program import Program

CALLS = """
util.func private @twice(%a: f32) -> f32 {
  %0 = arith.addf %a, %a : f32
  util.return %0 : f32
}
util.func public @main(%a: f32) -> (f32, f32) {
  %0 = util.call @twice(%a) : (f32) -> f32
  %1 = util.call @twice(%0) : (f32) -> f32
  util.return %0, %1 : f32, f32
}
"""


def test_a_function_called_twice(evaluate):
    assert [value.item() for value in evaluate(CALLS, torch.tensor(1.5))] == [3.0, 6.0]


def test_nothing_is_kept_when_an_op_is_uncovered():
    program = Program.parse(
        """
        util.func public @main(%a: f32) -> f32 {
          %0 = arith.addf %a, %a : f32
          %1 = "dialect.unknown"(%0) : (f32) -> f32
          %2 = arith.addf %0, %1 : f32
          util.return %2 : f32
        }
        """,
        unregistered=True,
    )
    machine = Machine(program)
    with pytest.raises(UncoveredOp, match=r"dialect\.unknown"):
        machine.run(program.functions["main"].regions[0], [torch.tensor(1.0)])
    assert machine.env == {}


def test_operands_of_computing_ops_are_widened_exactly(evaluate):
    text = """
    util.func public @main(%a: tensor<2xbf16>) -> tensor<2xbf16> {
      %0 = arith.mulf %a, %a : tensor<2xbf16>
      util.return %0 : tensor<2xbf16>
    }
    """
    (result,) = evaluate(text, torch.tensor([1.0078125, 3.0], dtype=torch.bfloat16))
    assert result.tolist() == [1.0078125**2, 9.0]


def test_globals_are_stored_and_loaded():
    program = Program.parse("""
    util.global private mutable @counter : tensor<1xf32>
    util.func public @main(%a: tensor<1xf32>) -> tensor<1xf32> {
      util.global.store %a, @counter : tensor<1xf32>
      %0 = util.global.load @counter : tensor<1xf32>
      util.return %0 : tensor<1xf32>
    }
    """)
    machine = Machine(program)
    (result,) = machine.run(program.functions["main"].regions[0], [torch.tensor([4.0])])
    assert result.tolist() == machine.globals["counter"].tolist() == [4.0]
