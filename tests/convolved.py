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


def channel_sums(name: str, of: str, type_: str) -> str:
    """``%name``: ``%of`` summed over the image."""
    sums = "tensor<1x8xf32>"
    return f"""{filled(f"zero_{name}", sums)}
  %{name} = linalg.reduce ins(%{of} : {type_}) outs(%zero_{name} : {sums}) dimensions = [2, 3] (%p: f32, %o: f32) {{
    %v = arith.addf %p, %o : f32
    linalg.yield %v : f32
  }}
"""


def centred(conv: Convolution, *lines: str) -> str:
    """y - mean(y) over each channel, ``%q``, and what ``lines`` make of it."""
    out, sums = conv.out, "tensor<1x8xf32>"
    body = "\n".join(
        (
            "%n = arith.constant 144.0 : f32",
            "%m = arith.divf %b, %n : f32",
            "%q = arith.subf %a, %m : f32",
            *lines,
        )
    )
    return conv.program(
        more=channel_sums("t", "y", out)
        + filled("e", out)
        + generic("last", ["nchw", "nc", "nchw"], [("y", out), ("t", sums)], ("e", out), body),
        results=out,
    )


#: A constant image: each channel of the convolution is one number.
CONSTANT = Convolution(
    np.ones((1, 8, 14, 14), np.float32),
    np.random.default_rng(5).standard_normal((8, 8, 3, 3)).astype(np.float32),
)
#: The reciprocal root of ``%q`` squared and an eps, ``%i``.
NORMED = (
    "%sq = arith.mulf %q, %q : f32", "%eps = arith.constant 1.0e-12 : f32", "%va = arith.addf %sq, %eps : f32",
    "%i = math.rsqrt %va : f32",
)  # fmt: skip
