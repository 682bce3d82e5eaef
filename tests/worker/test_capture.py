"""The operands that a dispatch got, taken from the run of a traced program."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from iree.compiler import ir

sys.path.insert(0, str(Path(__file__).parent))  # of the module beside this one

from alone_programs import FLAGS

from numtrace.errors import RunError, UncoveredOp
from numtrace.evaluate.program import Program
from numtrace.instrument.compiler import phase
from numtrace.instrument.parameters import write_irpa
from numtrace.instrument.runtime import run_module
from numtrace.instrument.traces import insert_traces
from numtrace.worker.capture import Capture
from numtrace.worker.modules import archives, arguments, entry, load_globals

#: softmax(x w) (w + w); the sum of the weights is made once, in an initializer.
TWO_LAYERS = """
util.global private @w = #flow.parameter.named<"model"::"w"> : tensor<4x4xf32>
func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %w = util.global.load @w : tensor<4x4xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x4xf32>
  %v = arith.addf %w, %w : tensor<4x4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %y = linalg.matmul ins(%x, %w : tensor<4x4xf32>, tensor<4x4xf32>) outs(%init : tensor<4x4xf32>) -> tensor<4x4xf32>
  %z = linalg.softmax dimension(1) ins(%y : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %u = linalg.matmul ins(%z, %v : tensor<4x4xf32>, tensor<4x4xf32>) outs(%init : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %u : tensor<4x4xf32>
}
"""


@pytest.fixture(scope="module")
def traced(tmp_path_factory):
    folder = tmp_path_factory.mktemp("traced")
    (folder / "program.mlir").write_text(TWO_LAYERS)
    phase(folder / "program.mlir", folder / "flow.mlir", None, "flow", FLAGS)
    module = ir.Module.parse((folder / "flow.mlir").read_text(), ir.Context())
    sites = insert_traces(module)
    (folder / "traced.mlir").write_text(module.operation.get_asm(enable_debug_info=True))
    phase(folder / "traced.mlir", folder / "traced.vmfb", "flow", None, FLAGS)
    write_irpa(folder / "weights.irpa", {"w": np.arange(16, dtype=np.float32).reshape(4, 4)})
    return folder, [site.id for site in sites]


def capture(traced, site):
    folder, _ = traced
    params = archives([("model", str(folder / "weights.irpa"))])
    program = Program.parse((folder / "flow.mlir").read_text())
    function, x = entry(program, "main"), torch.eye(4)
    walk = Capture(program, load_globals(program, params), function, arguments(function, [x]), site)
    run_module(folder / "traced.vmfb", "main", [x], [params.provider("model")], callback=walk.receive)
    return walk.captured


def test_parameters_and_what_other_dispatches_made(traced):
    w = torch.arange(16.0).reshape(4, 4)
    first = capture(traced, "main/0")
    assert [tuple(value.shape) for value in first.operands] == [(4, 4), (4, 4)]
    assert torch.equal(first.operands[0], torch.eye(4)) and torch.equal(first.operands[1], w)
    assert torch.equal(first.results[0], w)
    last = capture(traced, traced[1][-1])
    soft = w.double().softmax(dim=1)
    assert last.operands[0].dtype == torch.float32
    assert torch.allclose(last.operands[0].double(), soft, atol=1e-6)
    assert torch.equal(last.operands[1], 2 * w)  # by way of a global that the initializer filled
    assert torch.allclose(last.results[0].double(), soft @ (2 * w).double(), atol=1e-4)


def test_a_dispatch_of_an_initializer(traced):
    made = capture(traced, "init0/0")
    assert torch.equal(made.results[0].reshape(4, 4), 2 * torch.arange(16.0).reshape(4, 4))
    assert "init0/0" in traced[1]


def test_no_such_dispatch(traced):
    with pytest.raises(UncoveredOp, match="main/99"):
        capture(traced, "main/99")


def test_a_program_that_ends_before_the_dispatch(traced):
    folder, ids = traced
    program = Program.parse((folder / "flow.mlir").read_text())
    function = entry(program, "main")
    params = archives([("model", str(folder / "weights.irpa"))])
    walk = Capture(
        program, load_globals(program, params), function, arguments(function, [torch.eye(4)]), ids[-1]
    )
    with pytest.raises(RunError, match="ended before dispatch"):
        _ = walk.captured
    with pytest.raises(RunError, match="traced dispatch main/5 where its IR has init0/0"):
        walk.receive("main/5", [])
