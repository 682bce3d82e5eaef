"""The functions that ``bench/ulps.py`` measures: in float64, with mpmath, as a program, and at which arguments."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import mpmath
import numpy as np
import torch
from torch import Tensor

from numtrace.evaluate.formats import float_format
from numtrace.evaluate.mathematics import cbrt

DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
CHUNK = 1 << 22

UNARY: dict[str, tuple[Callable, Callable]] = {
    name: (getattr(torch, name), getattr(mpmath, name))
    for name in (
        "exp", "expm1", "log", "log10", "log1p", "sqrt", "tanh", "sinh", "cosh", "sin", "cos", "tan",
        "asin", "acos", "atan", "asinh", "acosh", "atanh", "erf", "erfc",
    )
} | {
    "exp2": (torch.exp2, lambda x: mpmath.power(2, x)),
    "log2": (torch.log2, lambda x: mpmath.log(x, 2)),
    "rsqrt": (torch.rsqrt, lambda x: 1 / mpmath.sqrt(x)),
    "cbrt": (lambda x: cbrt(None, None, x), lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x))),
}  # fmt: skip
BINARY: dict[str, tuple[Callable, Callable]] = {
    "math.powf": (torch.pow, mpmath.power),
    "math.atan2": (torch.atan2, mpmath.atan2),
    "arith.remf": (torch.fmod, lambda a, b: mpmath.sign(a) * mpmath.fmod(abs(a), abs(b))),
    "arith.divf": (torch.div, lambda a, b: a / b),  # the control: half an ulp, or this script is wrong
}
#: |x · df/dx| where part of the error is a change of the argument (of powf: of the exponent).
SLOPES: dict[str, Callable] = {
    "math.sin": lambda y, x: (x * torch.cos(x)).abs(),
    "math.cos": lambda y, x: (x * torch.sin(x)).abs(),
    "math.tan": lambda y, x: (x * (1 + y * y)).abs(),
    "math.exp2": lambda y, x: (x * y).abs() * math.log(2),
    "math.powf": lambda y, a, b: (b * torch.log(a.abs()) * y).abs(),
}


def references(op: str) -> tuple[Callable, Callable]:
    """The function on float64 tensors, and on mpmath numbers."""
    return BINARY[op] if op in BINARY else UNARY[op.removeprefix("math.")]


def program(op: str, dtype: str, operands: int) -> str:
    """A module with one function ``main``: the op on every element."""
    kind = f"tensor<?x{dtype}>"
    names = [f"%x{i}" for i in range(operands)]
    maps = ", ".join(["affine_map<(d0) -> (d0)>"] * (operands + 1))
    return f"""func.func @main({", ".join(f"{name}: {kind}" for name in names)}) -> {kind} {{
  %zero = arith.constant 0 : index
  %size = tensor.dim %x0, %zero : {kind}
  %empty = tensor.empty(%size) : {kind}
  %result = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel"]}}
      ins({", ".join(names)} : {", ".join([kind] * operands)}) outs(%empty : {kind}) {{
  ^bb0({", ".join(f"%a{i}: {dtype}" for i in range(operands))}, %out: {dtype}):
    %y = {op} {", ".join(f"%a{i}" for i in range(operands))} : {dtype}
    linalg.yield %y : {dtype}
  }} -> {kind}
  return %result : {kind}
}}
"""


def unary_arguments(dtype: str, step: int) -> Iterator[tuple[Tensor, ...]]:
    if dtype != "f32":
        yield (torch.from_numpy(np.arange(1 << 16, dtype=np.uint16).view(np.int16)).view(DTYPES[dtype]),)
        return
    for start in range(0, 1 << 32, step * CHUNK):
        bits = np.arange(start, min(start + step * CHUNK, 1 << 32), step, dtype=np.int64)
        yield (torch.from_numpy(bits.astype(np.uint32).view(np.int32)).view(torch.float32),)
    turns = (torch.arange(1, 1 << 16, dtype=torch.float64) * (torch.pi / 2)).float()
    spots = [
        2.0**-126,
        0.25,
        0.5,
        0.66,
        1.0,
        88.0,
        88.37,
        88.72,
        89.4,
        127.0,
        2.0**24,
        2.0**63,
        2.0**64,
        3.4e38,
    ]
    around = torch.tensor(spots).view(torch.int32)[:, None] + torch.arange(-4096, 4096, dtype=torch.int32)
    near = (turns.view(torch.int32)[:, None] + torch.arange(-2, 3, dtype=torch.int32)).reshape(-1)
    special = torch.cat([around.reshape(-1), near]).view(torch.float32)
    yield (torch.cat([special, -special]),)


def binary_arguments(op: str, dtype: str, count: int) -> Iterator[tuple[Tensor, ...]]:
    """Pairs of any magnitudes, of close ones, and for powf of results that are in range."""
    random = torch.Generator().manual_seed(0)
    emax = float_format(dtype).emax

    def draw(size: int, reach: float) -> Tensor:
        sign = torch.randint(0, 2, (size,), generator=random) * 2.0 - 1
        exponent = (torch.rand(size, generator=random, dtype=torch.float64) * 2 - 1) * reach
        return sign * torch.exp2(exponent)

    pairs = min(CHUNK, count // 3 + 1)
    for reach in (2.0, 8.0, emax - 1.0) * -(-count // (3 * CHUNK)):
        a, b = draw(pairs, reach), draw(pairs, reach)
        if op == "math.powf":
            a = torch.where(torch.rand(pairs, generator=random) < 0.9, a.abs(), a)
            size = torch.rand(pairs, generator=random, dtype=torch.float64) * (emax + 1) * math.log(2)
            whole = torch.randint(-9, 10, (pairs,), generator=random)  # powf of a negative base wants these
            b = torch.where(a < 0, whole, b.sign() * size / a.abs().log())
        yield a.to(DTYPES[dtype]), b.to(DTYPES[dtype])
