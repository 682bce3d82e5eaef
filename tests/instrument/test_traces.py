"""A program with traces is text that IREE reads again."""

from __future__ import annotations

import pytest
from iree.compiler import ir

from numtrace.instrument.traces import insert_traces, printed

PROGRAM = """
flow.executable private @e {
  flow.executable.export public @d
}
util.func public @main(%x: tensor<DIMx4xf32>, %n: index) -> tensor<DIMx4xf32> {
  %r:2 = flow.dispatch @e::@d(%x, %n) : (tensor<DIMx4xf32>SIZE, index) -> (tensor<DIMx4xf32>SIZE, tensor<DIMx4xf32>SIZE)
  util.return %r#1 : tensor<DIMx4xf32>
}
"""


@pytest.mark.parametrize(("dim", "size"), [("?", "{%n}"), ("3", "")], ids=["dynamic", "static"])
def test_two_results_of_one_dispatch(dim: str, size: str) -> None:
    module = ir.Module.parse(PROGRAM.replace("DIM", dim).replace("SIZE", size), ir.Context())
    assert [site.key for site in insert_traces(module)] == ["main/0"]
    again = ir.Module.parse(printed(module), ir.Context())
    operands = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "flow.tensor.trace":
            operands.append([str(value.type) for value in op.operands])
        return ir.WalkResult.ADVANCE

    again.operation.walk(visit)
    assert operands == [[f"tensor<{dim}x4xf32>"] * 2 + ["index"] * (2 if size else 0)]
