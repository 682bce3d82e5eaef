"""Programs of one dispatch, compiled to ``flow``, with what their dispatch takes and exactly makes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from iree.compiler import ir

from numtrace.instrument.compiler import phase

FLAGS = ["--iree-hal-target-backends=llvm-cpu", "--iree-llvmcpu-target-cpu=host"]


def matmul(m: int, k: int, n: int, element: str = "f32", accumulator: str = "f32") -> str:
    """A plain matmul into zeros."""
    a, b, c = f"tensor<{m}x{k}x{element}>", f"tensor<{k}x{n}x{element}>", f"tensor<{m}x{n}x{accumulator}>"
    return f"""
func.func @main(%a: {a}, %b: {b}) -> {c} {{
  %zero = arith.constant 0.0 : {accumulator}
  %empty = tensor.empty() : {c}
  %init = linalg.fill ins(%zero : {accumulator}) outs(%empty : {c}) -> {c}
  %y = linalg.matmul ins(%a, %b : {a}, {b}) outs(%init : {c}) -> {c}
  return %y : {c}
}}
"""


#: x + 1 and x > 0, of one dispatch.
TWO_RESULTS = """
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xi1>) {
  %one = arith.constant 1.0 : f32
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  %f = tensor.empty() : tensor<4xi1>
  %r:2 = linalg.generic {
      indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%e, %f : tensor<4xf32>, tensor<4xi1>) {
  ^bb0(%a: f32, %o: f32, %p: i1):
    %s = arith.addf %a, %one : f32
    %t = arith.cmpf ogt, %a, %zero : f32
    linalg.yield %s, %t : f32, i1
  } -> (tensor<4xf32>, tensor<4xi1>)
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xi1>
}
"""

#: a * b of as many elements as are given.
DYNAMIC = """
func.func @main(%a: tensor<?xf32>, %b: tensor<?xf32>) -> tensor<?xf32> {
  %r = arith.mulf %a, %b : tensor<?xf32>
  return %r : tensor<?xf32>
}
"""

#: x[i] for every i, whether it is in x or not.
GATHER = """
func.func @main(%x: tensor<9xf32>, %i: tensor<4xi64>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.generic {
      indexing_maps = [affine_map<(d) -> (d)>, affine_map<(d) -> (d)>], iterator_types = ["parallel"]}
      ins(%i : tensor<4xi64>) outs(%e : tensor<4xf32>) {
  ^bb0(%p: i64, %q: f32):
    %k = arith.index_cast %p : i64 to index
    %v = tensor.extract %x[%k] : tensor<9xf32>
    linalg.yield %v : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}
"""


def flow(text: str, folder: Path, flags: Sequence[str] = ()) -> ir.Module:
    """The program at ``flow``."""
    source, target = folder / "program.mlir", folder / "flow.mlir"
    source.write_text(text)
    phase(source, target, None, "flow", [*FLAGS, *flags])
    return ir.Module.parse(target.read_text(), ir.Context())
