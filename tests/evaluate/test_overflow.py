import pytest
import torch

import numtrace.evaluate  # noqa: F401  (registers the dialects)
from numtrace.evaluate.machine import Machine
from numtrace.evaluate.overflow import Watch
from numtrace.evaluate.program import Program

TEXT = """
func.func @main(%a: f32, %b: f32) -> f32 {{
  %0 = {op} : f32 loc("numtrace.7")
  return %0 : f32
}}
"""
INF = float("inf")


@pytest.mark.parametrize(
    ("op", "a", "b", "left"),
    [
        ("math.exp %a", 1000.0, 0.0, True),  # 2e434
        ("math.exp %a", -1000.0, 0.0, True),  # 5e-435
        ("math.exp %a", 700.0, 0.0, False),  # 1e304
        ("math.exp %a", -INF, 0.0, False),  # zero, exactly
        ("math.log %a", 0.0, 0.0, False),  # a pole
        ("arith.divf %a, %b", 1.0, 0.0, False),
        ("arith.divf %a, %b", 1e200, 1e-200, True),
        ("arith.divf %a, %b", 1.0, INF, False),
        ("arith.divf %a, %b", 0.0, 3.0, False),
        ("arith.mulf %a, %b", 1e-200, 1e-200, True),
        ("arith.mulf %a, %b", 0.0, 1e-200, False),
        ("arith.addf %a, %b", 1.0, -1.0, False),
        ("arith.addf %a, %b", 1.7e308, 1.7e308, True),
        ("math.powf %a, %b", 10.0, 400.0, True),
        ("math.powf %a, %b", 0.0, -1.0, False),
    ],
)
def test_what_leaves_float64(op, a, b, left):
    program = Program.parse(TEXT.format(op=op))
    machine = Machine(program)
    machine.watch = Watch()
    machine.run(program.functions["main"].regions[0], [torch.tensor(x, dtype=torch.float64) for x in (a, b)])
    assert machine.watch.beyond_float64 == ({7} if left else set())
