"""The faults: for each kind, ops drawn at random with what is wrong with them.

All that is wrong is in the IR of ``Piece.wrong``; numtrace is given nothing but the program.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np

from faults import precision
from faults.numbers import normal, sizes
from faults.piece import MULTIPLY_ADD, Piece, filled, generic, tensor


def dropped_bias(draw: Random) -> Piece:
    if draw.random() < 0.5:
        m, k, n = sizes(draw, (4, 40), (8, 80), (4, 40))
        arguments, shapes = (("x", tensor(m, k, "f32")), ("w", tensor(k, n, "f32"))), ((m, k), (k, n))
        result, b, op = tensor(m, n, "f32"), tensor(n, "f32"), "matmul"
        made = "%y = linalg.matmul"
        maps = ["ij", "j", "ij"]
    else:
        c, f, s = sizes(draw, (2, 8), (2, 8), (4, 12))
        arguments = (("x", tensor(1, c, s + 2, s + 2, "f32")), ("w", tensor(f, c, 3, 3, "f32")))
        shapes = ((1, c, s + 2, s + 2), (f, c, 3, 3))
        result, b, n, op = tensor(1, f, s, s, "f32"), tensor(f, "f32"), f, "conv"
        made = "%y = linalg.conv_2d_nchw_fchw"
        maps = ["nfhw", "f", "nfhw"]
    types = ", ".join(type_ for _, type_ in arguments)

    def text(body: str) -> str:
        return (
            filled("i", result)
            + f"{made} ins(%x, %w : {types}) outs(%i : {result}) -> {result}\n"
            + generic("out", maps, [("y", result), ("b", b)], ("ie", result), body)
        )

    return Piece(
        "dropped bias", op, (*arguments, ("b", b)), (*(normal(draw, *s) for s in shapes), normal(draw, n) + 2), result,
        right=text("%r = arith.addf %a, %b : f32"),
        wrong=text("%z = arith.constant 0.0 : f32\n%t = arith.mulf %b, %z : f32\n%r = arith.addf %a, %t : f32"),
    )  # fmt: skip


def shifted_window(draw: Random) -> Piece:
    """A convolution or a pool whose windows begin one element late, as after one-sided padding."""
    c, f, n, k = sizes(draw, (2, 8), (2, 8), (8, 40), (2, 4))
    x, w, y = tensor(c, n + k, "f32"), tensor(f, c, k, "f32"), tensor(f, n, "f32")
    if draw.random() < 0.5:
        body = MULTIPLY_ADD
        ins, arguments = [("x", x), ("w", w)], (("x", x), ("w", w))
        data, op = (normal(draw, c, n + k), normal(draw, f, c, k)), "conv"
        maps = ["({}, {})", "fck", "fn"]
    else:
        body = "%r = arith.maximumf %o, %a : f32"
        w, y = tensor(k, "f32"), tensor(c, n, "f32")
        # The window has no weights; what gives it its size is an operand that is not read.
        ins, arguments = [("x", x), ("w", w)], (("x", x), ("w", w))
        data, op = (normal(draw, c, n + k), normal(draw, k)), "pool"
        maps = ["({}, {})", "k", "cn"]

    def text(window: str) -> str:
        start = "0.0" if op == "conv" else "0xFF800000"
        return filled("i", y, start) + generic(
            "out", [maps[0].format("c", window), *maps[1:]], ins, ("i", y), body
        )

    return Piece("shifted window", op, arguments, data, y, text("n + k"), text("n + k + 1"))


def shifted_pad(draw: Random) -> Piece:
    """Padding of one on each side becomes two on one; what pads is no dispatch, so only a pass can do it."""
    c, n = sizes(draw, (2, 8), (6, 30))
    x, p, w, y = tensor(c, n, "f32"), tensor(c, n + 2, "f32"), tensor(c, 3, "f32"), tensor(c, n, "f32")

    def text(low: int) -> str:
        return (
            filled("z", p)
            + f"%p = tensor.insert_slice %x into %z[0, {low}] [{c}, {n}] [1, 1] : {x} into {p}\n"
            + filled("i", y)
            + generic("out", ["(c, n + k)", "ck", "cn"], [("p", p), ("w", w)], ("i", y), MULTIPLY_ADD)
        )

    return Piece(
        "off-by-one pad", "conv", (("x", x), ("w", w)), (normal(draw, c, n), normal(draw, c, 3)), y,
        text(1), text(2 * draw.randrange(2)), code=None,
    )  # fmt: skip


def swapped(draw: Random) -> Piece:
    m, n = sizes(draw, (4, 40), (4, 40))
    op, element = draw.choice(["subf", "divf"]), draw.choice(["f32", "f32", "f16", "bf16"])
    t = tensor(m, n, element)
    x, z = normal(draw, m, n, element=element), normal(draw, m, n, element=element)

    def text(first: str, second: str) -> str:
        body = f"%r = arith.{op} %{first}, %{second} : {element}"
        return f"%e = tensor.empty() : {t}\n" + generic(
            "out", ["ij", "ij", "ij"], [("x", t), ("z", t)], ("e", t), body
        )

    data = tuple((np.abs(v) + np.asarray(0.5, v.dtype)).astype(v.dtype) for v in (x, z))
    return Piece("swapped operands", op, (("x", t), ("z", t)), data, t, text("a", "b"), text("b", "a"))


def reduction_identity(draw: Random) -> Piece:
    m, n = sizes(draw, (4, 40), (8, 200))
    join, sign, right, wrong = draw.choice(
        [
            ("maximumf", -1, "0xFF800000", "0.0"),
            ("minimumf", 1, "0x7F800000", "0.0"),
            ("addf", 1, "0.0", "1.0"),
        ]
    )
    x, y = tensor(m, n, "f32"), tensor(m, "f32")
    data = sign * (np.abs(normal(draw, m, n)) + np.float32(0.25))

    def text(start: str) -> str:
        body = f"%r = arith.{join} %o, %a : f32"
        return filled("i", y, start) + generic("out", ["ij", "i"], [("x", x)], ("i", y), body)

    return Piece("wrong reduction identity", join, (("x", x),), (data,), y, text(right), text(wrong))


def stale_accumulator(draw: Random) -> Piece:
    """The accumulator begins with what another tensor holds, as where its fill is missing."""
    m, n = sizes(draw, (4, 32), (4, 32))
    x, w, y = tensor(m, m, "f32"), tensor(m, n, "f32"), tensor(m, n, "f32")

    def text(start: str) -> str:
        return (
            filled("i", y)
            + f"%s = linalg.matmul ins(%x, %w : {x}, {w}) outs(%i : {y}) -> {y}\n"
            + generic("out", ["ij", "ij", "ij"], [("s", y), ("w", w)], ("ie", y), start)
        )

    right = text("%r = arith.mulf %a, %b : f32")
    wrong = text("%p = arith.addf %a, %b : f32\n%r = arith.mulf %p, %b : f32")
    return Piece(
        "missing accumulator init", "matmul", (("x", x), ("w", w)), (normal(draw, m, m), normal(draw, m, n)), y,
        right, wrong,
    )  # fmt: skip


def transposed(draw: Random) -> Piece:
    n, k = sizes(draw, (4, 32), (8, 64))
    x, w, y = tensor(n, k, "f32"), tensor(k, n, "f32"), tensor(n, n, "f32")

    def text(out: str) -> str:
        return filled("i", y) + generic(
            "out", ["ik", "kj", out], [("x", x), ("w", w)], ("i", y), MULTIPLY_ADD
        )

    return Piece(
        "transposed result", "matmul", (("x", x), ("w", w)), (normal(draw, n, k), normal(draw, k, n)), y,
        text("ij"), text("ji"),
    )  # fmt: skip


def wrong_axis(draw: Random) -> Piece:
    n = draw.randint(6, 40)
    t = tensor(n, n, "f32")
    data = (normal(draw, n, n) * np.float32(2),)
    if draw.random() < 0.5:
        right, wrong = (
            f"%e = tensor.empty() : {t}\n%out = linalg.softmax dimension({d}) ins(%x : {t}) outs(%e : {t}) -> {t}\n"
            for d in (1, 0)
        )
        return Piece("wrong axis", "softmax", (("x", t),), data, t, right, wrong)
    y = tensor(n, "f32")
    right, wrong = (
        filled("i", y) + generic("out", [m, "i"], [("x", t)], ("i", y), "%r = arith.addf %o, %a : f32")
        for m in ("ij", "ji")
    )
    return Piece("wrong axis", "sum", (("x", t),), data, y, right, wrong)


def other_kernel(draw: Random) -> Piece:
    """Another kernel of the same interface."""
    m, n = sizes(draw, (4, 40), (4, 40))
    if draw.random() < 0.5:
        right, wrong = draw.choice(
            [("arith.addf", "arith.mulf"), ("arith.maximumf", "arith.minimumf"), ("arith.subf", "arith.addf")]
        )
        t = tensor(m, n, "f32")
        one, other = (
            f"%e = tensor.empty() : {t}\n"
            + generic("out", ["ij", "ij", "ij"], [("x", t), ("z", t)], ("e", t), f"%r = {op} %a, %b : f32")
            for op in (right, wrong)
        )
        data = (normal(draw, m, n), normal(draw, m, n) + np.float32(3))
        return Piece("another kernel", f"{right} for {wrong}", (("x", t), ("z", t)), data, t, one, other)
    x, w = tensor(m, n, "f32"), tensor(n, n, "f32")
    one, other = (
        filled("i", x) + generic("out", ["ik", b, "ij"], [("x", x), ("w", w)], ("i", x), MULTIPLY_ADD)
        for b in ("kj", "jk")
    )
    data = (normal(draw, m, n), normal(draw, n, n))
    return Piece("another kernel", "matmul", (("x", x), ("w", w)), data, x, one, other)


KINDS: tuple[Callable[[Random], Piece], ...] = (
    dropped_bias, shifted_window, shifted_pad, swapped, reduction_identity, stale_accumulator, transposed, wrong_axis,
    other_kernel, precision.narrow_operands, precision.narrow_accumulator, precision.truncated_constant,
    precision.overflow, precision.missing_term, precision.one_element,
)  # fmt: skip
