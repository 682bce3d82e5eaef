"""Faults that leave most of a value right: precision lost in the code, a term or an element that is off.

How large they must be to be found is worked out for each from its numbers (``detectable.py``).
"""

from __future__ import annotations

from random import Random

import numpy as np

from faults.detectable import truncated, verdict
from faults.numbers import normal, rounded, sizes
from faults.piece import MULTIPLY_ADD, Piece, filled, generic, tensor


def _narrowing(draw: Random) -> tuple[str, bool]:
    """To which type, and whether in so many words.

    IREE leaves out a cast to bf16 and back within a dispatch. So only a pass can plant that one, and it asks for
    rounding; what wrong code rounds, it rounds by its bits.
    """
    narrow = draw.choice(["bf16", "f16"])
    return narrow, narrow == "bf16" and draw.random() < 0.4


def _narrowed(value: str, into: str, narrow: str, asked: bool) -> str:
    cast = f"%{value}n = arith.truncf %{value} : f32 to {narrow}\n"
    if narrow == "f16" or asked:
        return cast + f"%{into} = arith.extf %{value}n : {narrow} to f32\n"
    return (
        cast
        + f"%{value}i = arith.bitcast %{value}n : bf16 to i16\n%{value}j = arith.extui %{value}i : i16 to i32\n"
        f"%{value}k = arith.constant 16 : i32\n%{value}l = arith.shli %{value}j, %{value}k : i32\n"
        f"%{into} = arith.bitcast %{value}l : i32 to f32\n"
    )


def _contraction(
    kind: str,
    a: np.ndarray,
    b: np.ndarray,
    wrong: str,
    exact: np.ndarray,
    off: np.ndarray,
    *,
    asked: bool,
    bits: bool,
) -> Piece:
    """a·b with ``wrong`` for the body of its loops, which makes ``off`` of ``exact`` at least."""
    (m, k), n = a.shape, b.shape[1]
    x, w, y = tensor(m, k, "f32"), tensor(k, n, "f32"), tensor(m, n, "f32")
    right, other = (
        filled("i", y) + generic("out", ["ik", "kj", "ij"], [("x", x), ("w", w)], ("i", y), body)
        for body in (MULTIPLY_ADD, wrong)
    )
    code = verdict(exact, off, np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64), k + 1)
    return Piece(
        kind, "matmul", (("x", x), ("w", w)), (a, b), y, right, other,
        code=None if asked else code, changed=None if bits else "ok",
    )  # fmt: skip


def narrow_operands(draw: Random) -> Piece:
    """f32 operands are rounded to bf16 or f16 before they are multiplied. A pass may do so: it was asked for."""
    m, n = sizes(draw, (4, 24), (4, 24))
    k = draw.choice([8, 32, 100, 288, 576, 1152, 4608])
    narrow, asked = _narrowing(draw)
    a, b = normal(draw, m, k), normal(draw, k, n)
    cast = "".join(_narrowed(v, f"{v}w", narrow, asked) for v in "ab")
    exact, off = a.astype(np.float64) @ b.astype(np.float64), rounded(a, narrow) @ rounded(b, narrow)
    wrong = cast + MULTIPLY_ADD.replace("%a, %b", "%aw, %bw")
    bits = narrow == "bf16" and not asked
    return _contraction(f"{narrow} operands", a, b, wrong, exact, off, asked=asked, bits=bits)


def narrow_accumulator(draw: Random) -> Piece:
    """A matmul that the IR sums in f32 is summed in f16 or bf16. A pass may do so: it was asked for."""
    m, n = sizes(draw, (4, 24), (4, 24))
    k = draw.choice([4, 16, 64, 300])
    narrow, asked = _narrowing(draw)
    a, b = normal(draw, m, k), normal(draw, k, n)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    # Whatever the order of the sum, its result is rounded to the narrow type at last.
    off = rounded(exact, narrow)
    wrong = "%m = arith.mulf %a, %b : f32\n%s = arith.addf %o, %m : f32\n" + _narrowed(
        "s", "r", narrow, asked
    )
    bits = narrow == "bf16" and not asked
    return _contraction(f"{narrow} accumulator", a, b, wrong, exact, off, asked=asked, bits=bits)


def truncated_constant(draw: Random) -> Piece:
    m, n = sizes(draw, (4, 40), (4, 40))
    constant = float(np.float32(draw.uniform(0.05, 3.0)))
    cut = truncated(constant, draw.randint(7, 18))
    t = tensor(m, n, "f32")
    data = normal(draw, m, n)

    def text(value: float) -> str:
        return f"%k = arith.constant {value!r} : f32\n%e = tensor.empty() : {t}\n" + generic(
            "out", ["ij", "", "ij"], [("x", t), ("k", "f32")], ("e", t), "%r = arith.mulf %a, %b : f32"
        )

    exact, other = (data.astype(np.float64) * value for value in (constant, cut))
    code = verdict(exact, other, np.abs(exact), 1)
    return Piece(
        "truncated constant", "mul", (("x", t),), (data,), t, text(constant), text(cut), code,
        changed="pass-bug" if cut != constant else None,
    )  # fmt: skip


def overflow(draw: Random) -> Piece:
    """A mean of squares of f16 that the IR sums in f32, summed in f16: beyond 65504 it is infinite."""
    m, n = sizes(draw, (4, 24), (128, 400))
    x, wide, y = tensor(m, n, "f16"), tensor(m, "f32"), tensor(m, "f16")
    data = (normal(draw, m, n).astype(np.float32) * 40 + np.float32(5)).astype(np.float16)

    def text(inner: str, sums: str, square: str, mean: str) -> str:
        return (
            filled("i", sums)
            + f"%e = tensor.empty() : {y}\n"
            + generic(
                "s", ["ij", "i"], [("x", x)], ("i", sums), f"{square}\n%r = arith.addf %o, %m : {inner}"
            )
            + f"%n = arith.constant {2.0**-9} : {inner}\n"
            + generic("out", ["i", "", "i"], [("s", sums), ("n", inner)], ("e", y), mean)
        )

    right = text(
        "f32", wide, "%v = arith.extf %a : f16 to f32\n%m = arith.mulf %v, %v : f32",
        "%q = arith.mulf %a, %b : f32\n%r = arith.truncf %q : f32 to f16",
    )  # fmt: skip
    wrong = text("f16", y, "%m = arith.mulf %a, %a : f16", "%r = arith.mulf %a, %b : f16")
    return Piece(
        "f16 overflow", "mean of squares", (("x", x),), (data,), y, right, wrong, changed="over-tolerance"
    )


def missing_term(draw: Random) -> Piece:
    """The last term of every sum is left out, as by a loop that ends too early."""
    m, n = sizes(draw, (4, 24), (4, 24))
    k = draw.choice([7, 33, 130, 600])
    x, w, y = tensor(m, k, "f32"), tensor(k, n, "f32"), tensor(m, n, "f32")
    a, b = normal(draw, m, k), normal(draw, k, n)

    def text(body: str) -> str:
        return filled("i", y) + generic("out", ["ik", "kj", "ij"], [("x", x), ("w", w)], ("i", y), body)

    wrong = (
        f"%k = linalg.index 2 : index\n%n = arith.constant {k - 1} : index\n%c = arith.cmpi ult, %k, %n : index\n"
        "%m = arith.mulf %a, %b : f32\n%s = arith.addf %o, %m : f32\n%r = arith.select %c, %s, %o : f32"
    )
    left, other = a.astype(np.float64), b.astype(np.float64)
    code = verdict(left @ other, left[:, :-1] @ other[:-1], np.abs(left) @ np.abs(other), k + 1)
    return Piece(
        "missing last term", "matmul", (("x", x), ("w", w)), (a, b), y, text(MULTIPLY_ADD), text(wrong), code
    )


def one_element(draw: Random) -> Piece:
    """One element of many is off, by a part in a thousand down to a part in a million."""
    m, n = sizes(draw, (4, 40), (4, 40))
    t, part = tensor(m, n, "f32"), float(np.float32(1 + 2.0 ** -draw.randint(10, 20)))
    i, j = draw.randrange(m), draw.randrange(n)
    x, z = normal(draw, m, n), normal(draw, m, n)

    def text(body: str) -> str:
        return f"%e = tensor.empty() : {t}\n" + generic(
            "out", ["ij", "ij", "ij"], [("x", t), ("z", t)], ("e", t), body
        )

    wrong = (
        f"%i = linalg.index 0 : index\n%j = linalg.index 1 : index\n%u = arith.constant {i} : index\n"
        f"%v = arith.constant {j} : index\n%d = arith.cmpi eq, %i, %u : index\n%f = arith.cmpi eq, %j, %v : index\n"
        f"%g = arith.andi %d, %f : i1\n%s = arith.mulf %a, %b : f32\n%k = arith.constant {part!r} : f32\n"
        "%t = arith.mulf %s, %k : f32\n%r = arith.select %g, %t, %s : f32"
    )
    exact = x.astype(np.float64) * z.astype(np.float64)
    off = exact.copy()
    off[i, j] *= part
    code = verdict(exact, off, np.abs(exact), 1)
    right = "%r = arith.mulf %a, %b : f32"
    return Piece("one wrong element", "mul", (("x", t), ("z", t)), (x, z), t, text(right), text(wrong), code)
