"""The installed command, run as a user runs it, on programs that compile in a moment."""

from __future__ import annotations

import json
import os
import subprocess
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

COMMAND = Path(sysconfig.get_path("scripts"), "numtrace")

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


@dataclass(frozen=True)
class Result:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str

    @property
    def said(self) -> str:
        """The sentence of an error."""
        return "".join(line for line in self.err.splitlines(True) if line.startswith("numtrace: "))

    @property
    def document(self) -> dict[str, Any]:
        return json.loads(self.out)


Run = Callable[..., Result]


def start(*arguments: object, cwd: Path, environment: dict[str, str] | None = None) -> subprocess.Popen[str]:
    """``numtrace ARGUMENTS`` in ``cwd``, not waited for."""
    return subprocess.Popen(
        [str(COMMAND), *map(str, arguments)],
        cwd=cwd,
        env=os.environ | {"COLUMNS": "200"} | (environment or {}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def numtrace(tmp_path: Path) -> Run:
    """``numtrace ARGUMENTS`` in a folder of the test's own; nothing that it says is ever a traceback."""

    def run(*arguments: object, cwd: Path = tmp_path, stdin: str = "", environment: dict[str, str] | None = None) -> Result:
        done = subprocess.run(
            [str(COMMAND), *map(str, arguments)],
            cwd=cwd,
            env=os.environ | {"COLUMNS": "200"} | (environment or {}),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert "Traceback" not in done.stderr, done.stderr
        assert "Traceback" not in done.stdout
        return Result(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def layer(tmp_path: Path) -> list[str]:
    """A linear layer, weights and input such that every number is known: ``numtrace run *layer``.

    Each of the 4x16 outputs is 8 * WEIGHT + 0.5 = 8.515625.
    """
    (tmp_path / "layer.mlir").write_text(LAYER)
    weights = {"fc.weight": np.full((8, 16), WEIGHT, np.float32), "fc.bias": np.full(16, 0.5, np.float32)}
    save_file(weights, tmp_path / "layer.safetensors")
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


def variants(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {variant["name"]: variant for variant in document["variants"]}


