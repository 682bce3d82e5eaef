"""Correct ops whose error is large, and legitimately so: none of it is a fault."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np

from faults.numbers import NUMPY, normal, sizes
from faults.piece import Piece, filled, generic, tensor


def _sound(kind: str, op: str, arguments, data, result: str, text: str) -> Piece:
    return Piece(kind, op, tuple(arguments), tuple(data), result, text)


def long_sum(draw: Random) -> Piece:
    """A sum of up to a million terms, of one sign or of both."""
    n = draw.choice([10_000, 100_000, 1_000_000])
    one_sign = draw.random() < 0.5
    x, y = tensor(1, n, "f32"), tensor(1, "f32")
    data = normal(draw, 1, n)
    text = filled("i", y) + generic("out", ["ij", "i"], [("x", x)], ("i", y), "%r = arith.addf %o, %a : f32")
    kind = "long sum of one sign" if one_sign else "long sum of both signs"
    return _sound(kind, "sum", [("x", x)], [np.abs(data) if one_sign else data], y, text)


def sum_of_ones(draw: Random) -> Piece:
    """In f16 a sum of ones stands still at 2048, in bf16 at 256; in f32 it is exact up to 2^24."""
    element, n = draw.choice([("f32", 100_000), ("f16", 5_000), ("f16", 100_000), ("bf16", 3_000)])
    m = draw.randint(1, 4)
    x, y = tensor(m, n, element), tensor(m, element)
    text = filled("i", y) + generic(
        "out", ["ij", "i"], [("x", x)], ("i", y), f"%r = arith.addf %o, %a : {element}"
    )
    data = np.ones((m, n), NUMPY[element])
    return _sound(f"stagnating {element} sum", "sum", [("x", x)], [data], y, text)


def cancellation(draw: Random) -> Piece:
    """x - x·(1 + ε): nothing of the result is left but rounding."""
    m, n = sizes(draw, (4, 40), (4, 40))
    t, epsilon = tensor(m, n, "f32"), draw.choice([1e-6, 3e-5, 1e-3])
    text = f"%e = tensor.empty() : {t}\n" + generic(
        "out", ["ij", "ij"], [("x", t)], ("e", t),
        f"%k = arith.constant {float(np.float32(1 + epsilon))!r} : f32\n%t = arith.mulf %a, %k : f32\n"
        "%r = arith.subf %a, %t : f32",
    )  # fmt: skip
    return _sound("cancellation", "sub", [("x", t)], [normal(draw, m, n) * np.float32(1000)], t, text)


def chain(draw: Random) -> Piece:
    """Matmuls in bf16 or f16 one after another, each result rounded."""
    n, element, count = draw.randint(8, 32), draw.choice(["bf16", "f16"]), draw.choice([5, 20])
    t, wide = tensor(n, n, element), tensor(n, n, "f32")
    text = f"%e = tensor.empty() : {t}\n" + filled("i", wide)
    last = "x"
    for step in range(count):
        text += f"%s{step} = linalg.matmul ins(%{last}, %w : {t}, {t}) outs(%i : {wide}) -> {wide}\n"
        name = "out" if step == count - 1 else f"y{step}"
        text += generic(
            name, ["ij", "ij"], [(f"s{step}", wide)], ("e", t), f"%r = arith.truncf %a : f32 to {element}"
        )
        last = name
    w = (normal(draw, n, n) / np.float32(np.sqrt(n))).astype(NUMPY[element])
    x = normal(draw, n, n, element=element)
    return _sound(f"{count} matmuls in {element}", "matmul", [("x", t), ("w", t)], [x, w], t, text)


def denormals(draw: Random) -> Piece:
    m, n = sizes(draw, (4, 40), (4, 40))
    t = tensor(m, n, "f32")
    op = draw.choice(["addf", "mulf"])
    scale = np.float32(1e-38) if op == "addf" else np.float32(1e-20)
    text = f"%e = tensor.empty() : {t}\n" + generic(
        "out", ["ij", "ij", "ij"], [("x", t), ("z", t)], ("e", t), f"%r = arith.{op} %a, %b : f32"
    )
    data = [normal(draw, m, n) * scale, normal(draw, m, n) * scale]
    return _sound("denormals", op, [("x", t), ("z", t)], data, t, text)


def dynamic_range(draw: Random) -> Piece:
    """A matmul of numbers from 2^-30 to 2^30."""
    m, k, n = sizes(draw, (4, 32), (8, 300), (4, 32))
    x, w, y = tensor(m, k, "f32"), tensor(k, n, "f32"), tensor(m, n, "f32")
    data = []
    for shape in ((m, k), (k, n)):
        exponents = np.random.default_rng(draw.randrange(1 << 32)).integers(-30, 31, shape)
        data.append(np.ldexp(normal(draw, *shape), exponents).astype(np.float32))
    text = filled("i", y) + f"%out = linalg.matmul ins(%x, %w : {x}, {w}) outs(%i : {y}) -> {y}\n"
    return _sound("large dynamic range", "matmul", [("x", x), ("w", w)], data, y, text)


def large_logits(draw: Random) -> Piece:
    m, n = sizes(draw, (4, 40), (4, 200))
    element = draw.choice(["f32", "f32", "bf16"])
    t, scale = tensor(m, n, element), draw.choice([100.0, 3e4, 1e6])
    text = (
        f"%e = tensor.empty() : {t}\n%out = linalg.softmax dimension(1) ins(%x : {t}) outs(%e : {t}) -> {t}\n"
    )
    return _sound(
        f"softmax of {element} logits",
        "softmax",
        [("x", t)],
        [(normal(draw, m, n) * np.float32(scale)).astype(NUMPY[element])],
        t,
        text,
    )


def layer_norm(draw: Random) -> Piece:
    """Of numbers far from zero: (x - mean)·rsqrt(mean of squares + ε)."""
    m, n = sizes(draw, (4, 24), (16, 200))
    x, y = tensor(m, n, "f32"), tensor(m, "f32")
    count = f"%n = arith.constant {float(n)} : f32\n"
    text = (
        filled("i", y)
        + generic("s", ["ij", "i"], [("x", x)], ("i", y), "%r = arith.addf %o, %a : f32")
        + generic("m", ["i", "i"], [("s", y)], ("ie", y), count + "%r = arith.divf %a, %n : f32")
        + generic(
            "v", ["ij", "i", "i"], [("x", x), ("m", y)], ("i", y),
            "%d = arith.subf %a, %b : f32\n%q = arith.mulf %d, %d : f32\n%r = arith.addf %o, %q : f32",
        )
        + f"%e = tensor.empty() : {x}\n"
        + generic(
            "out", ["ij", "i", "i", "ij"], [("x", x), ("m", y), ("v", y)], ("e", x),
            count + "%d = arith.subf %a, %b : f32\n%t = arith.divf %c, %n : f32\n%k = arith.constant 1.0e-5 : f32\n"
            "%u = arith.addf %t, %k : f32\n%w = math.rsqrt %u : f32\n%r = arith.mulf %d, %w : f32",
        )
    )  # fmt: skip
    data = normal(draw, m, n) + np.float32(draw.choice([100.0, 1e4]))
    return _sound("layer norm with a large mean", "layer_norm", [("x", x)], [data], x, text)


def narrow_accumulation(draw: Random) -> Piece:
    """An accumulator of f16 or bf16 that the program asks for."""
    element = draw.choice(["f16", "bf16"])
    m, k, n = sizes(draw, (4, 24), (16, 600), (4, 24))
    x, w, y = tensor(m, k, element), tensor(k, n, element), tensor(m, n, element)
    text = filled("i", y) + f"%out = linalg.matmul ins(%x, %w : {x}, {w}) outs(%i : {y}) -> {y}\n"
    data = [normal(draw, m, k, element=element), normal(draw, k, n, element=element)]
    return _sound(f"{element} accumulation asked for", "matmul", [("x", x), ("w", w)], data, y, text)


def integers(draw: Random) -> Piece:
    m, k, n = sizes(draw, (4, 40), (8, 300), (4, 40))
    x, w, y = tensor(m, k, "i8"), tensor(k, n, "i8"), tensor(m, n, "i32")
    text = filled("i", y, "0") + f"%out = linalg.matmul ins(%x, %w : {x}, {w}) outs(%i : {y}) -> {y}\n"
    rng = np.random.default_rng(draw.randrange(1 << 32))
    data = [rng.integers(-128, 128, shape).astype(np.int8) for shape in ((m, k), (k, n))]
    return _sound("integer matmul", "matmul", [("x", x), ("w", w)], data, y, text)


def attention(draw: Random) -> Piece:
    b, m, k, d = sizes(draw, (1, 3), (4, 40), (4, 40), (4, 32))
    element = draw.choice(["f32", "f16"])
    q, kv = tensor(b, m, d, element), tensor(b, k, d, element)
    maps = ", ".join(
        f"affine_map<(b, m, n, k, l) -> {form}>"
        for form in ("(b, m, k)", "(b, l, k)", "(b, l, n)", "()", "(b, m, n)")
    )
    text = (
        f"%s = arith.constant {float(NUMPY[element](d**-0.5))!r} : {element}\n%e = tensor.empty() : {q}\n"
        f"%out = iree_linalg_ext.attention <{{indexing_maps = [{maps}]}}> "
        f"ins(%x, %k, %v, %s : {q}, {kv}, {kv}, {element}) outs(%e : {q}) {{\n"
        f"^bb0(%score: f32):\niree_linalg_ext.yield %score : f32\n}} -> {q}\n"
    )
    scale = NUMPY[element](draw.choice([1.0, 8.0]))
    data = [normal(draw, *shape, element=element) * scale for shape in ((b, m, d), (b, k, d), (b, k, d))]
    return _sound(f"attention in {element}", "attention", [("x", q), ("k", kv), ("v", kv)], data, q, text)


KINDS: tuple[Callable[[Random], Piece], ...] = (
    long_sum, sum_of_ones, cancellation, chain, denormals, dynamic_range, large_logits, layer_norm,
    narrow_accumulation, integers, attention,
)  # fmt: skip
