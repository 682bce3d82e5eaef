"""A convolution, and ops on it: winograd leaves 1e-13 of noise on it, also where whole numbers made it exact."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from faults.piece import filled, generic
from faults.planting import edited
from programs import Bench, Ran

from numtrace.attribute.verdict import judge


@dataclass(frozen=True, slots=True)
class Convolution:
    """``x``: 1x8xSxS, ``weights``: 8x8x3x3, float32. The result ``%y`` is 1x8x(S-2)x(S-2)."""

    x: np.ndarray
    weights: np.ndarray

    @classmethod
    def of_whole_numbers(cls, size: int) -> Convolution:
        """Of numbers from -2 to 2, with a result of ``size`` by ``size``: exact, and often zero."""
        rng = np.random.default_rng(0)
        shapes = (1, 8, size + 2, size + 2), (8, 8, 3, 3)
        return cls(*(rng.integers(-2, 3, shape).astype(np.float32) for shape in shapes))

    @property
    def out(self) -> str:
        """The type of the result."""
        size = self.x.shape[-1] - 2
        return f"tensor<1x8x{size}x{size}xf32>"

    def program(self, *bodies: str, start: str = "0.0", more: str = "", results: str = "") -> str:
        """The convolution, and elementwise ops on it, each with a result."""
        image, weight, out = "x".join(map(str, self.x.shape)), "tensor<8x8x3x3xf32>", self.out
        made = "".join(
            filled(f"e{n}", out) + generic(f"out{n}", ["nchw", "nchw"], [("y", out)], (f"e{n}", out), body)
            for n, body in enumerate(bodies)
        )
        names = ", ".join([f"%out{n}" for n in range(len(bodies))]) or "%last"
        types = ", ".join([out] * len(bodies)) or results
        return f"""
util.global private @w = #flow.parameter.named<"model"::"w"> : {weight}
util.func public @main(%x: tensor<{image}xf32>) -> ({types}) {{
  %w = util.global.load @w : {weight}
  {filled("i", out, start)}
  %y = linalg.conv_2d_nchw_fchw {{dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}}
      ins(%x, %w : tensor<{image}xf32>, {weight}) outs(%i : {out}) -> {out}
  {made}{more}
  util.return {names} : {types}
}}
"""

    def bench(self, folder: Path, text: str) -> Bench:
        np.save(folder / "x.npy", self.x)
        made = Bench(folder / "bench", text, {"w": self.weights}, inputs=[f"@{folder / 'x.npy'}"])
        made.run()
        return made

    def with_winograd(self, folder: Path, text: str, old: str = "", new: str = "") -> tuple[str, str, Ran]:
        """The verdict on winograd and its reason; ``old`` in the IR after it is replaced by ``new``."""
        made = self.bench(folder, text)
        with edited("preprocessing", lambda ir: ir.replace(old, new)) if old else nullcontext():
            ran = made.run("winograd")
        assert made.baseline is not None
        told = judge(ran.record, ran.sites, is_baseline=False, baseline=made.baseline.record, tolerant=False)
        return told.verdict, told.reason, ran
