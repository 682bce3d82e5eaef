"""Programs that compile in a moment, with results that are known beforehand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

#: One f32 step over 1 that bf16 drops and f16 keeps: demoting the weight to bf16 costs 2^-9 a product.
WEIGHT = 1 + 2**-9

LAYER = """
util.global private @w = #flow.parameter.named<"model"::"fc.weight"> : tensor<8x16xf32>
util.global private @b = #flow.parameter.named<"model"::"fc.bias"> : tensor<16xf32>
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x16xf32> {
  %w = util.global.load @w : tensor<8x16xf32>
  %b = util.global.load @b : tensor<16xf32>
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x16xf32>) -> tensor<4x16xf32>
  %y = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x16xf32>) outs(%init : tensor<4x16xf32>)
      -> tensor<4x16xf32> loc("matmul_0"("block.fc"))
  %r = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%y, %b : tensor<4x16xf32>, tensor<16xf32>) outs(%empty : tensor<4x16xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<4x16xf32> loc("add_0"("block.fc"))
  return %r : tensor<4x16xf32>
}
"""


def write_layer(folder: Path) -> list[str]:
    """Writes a linear layer and its weights; returns the arguments of ``numtrace run`` for it, from ``folder``.

    Each of the 4x16 outputs is 8 * WEIGHT + 0.5 = 8.515625.
    """
    (folder / "layer.mlir").write_text(LAYER)
    weights = {"fc.weight": np.full((8, 16), WEIGHT, np.float32), "fc.bias": np.full(16, 0.5, np.float32)}
    save_file(weights, folder / "layer.safetensors")
    return ["layer.mlir", "--params", "model=layer.safetensors", "--input", "4x8xf32=1"]


def elementwise(kind: str, body: str, *, arguments: int = 1, count: int = 4) -> str:
    """A function of ``arguments`` tensors; ``body`` computes %r of type ``kind`` from %a (and %b)."""
    tensor = f"tensor<{count}x{kind}>"
    names = ["a", "b"][:arguments]
    maps = ", ".join(["affine_map<(i) -> (i)>"] * (arguments + 1))
    ins = f"ins({', '.join(f'%{n}_' for n in names)} : {', '.join([tensor] * arguments)})"
    return f"""
func.func @main({", ".join(f"%{n}_: {tensor}" for n in names)}) -> {tensor} {{
  %empty = tensor.empty() : {tensor}
  %y = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel"]}}
      {ins} outs(%empty : {tensor}) {{
  ^bb0({", ".join(f"%{n}: {kind}" for n in names)}, %o: {kind}):
    {body}
    linalg.yield %r : {kind}
  }} -> {tensor} loc("step_0"("block.act"))
  return %y : {tensor}
}}
"""


#: Adds %x to itself %n times, in a loop outside of dispatches.
LOOP = """
func.func @main(%x: tensor<4xf32>, %n: tensor<i64>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %k = tensor.extract %n[] : tensor<i64>
  %end = arith.index_cast %k : i64 to index
  %r = scf.for %i = %c0 to %end step %c1 iter_args(%a = %x) -> tensor<4xf32> {
    %s = arith.addf %a, %x : tensor<4xf32>
    scf.yield %s : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
"""
