"""Contractions: transposed, broadcast, unsigned, of narrow types, batched, with a start that is not zero."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from numtrace.audit.program import (
    Program,
    elementwise,
    filled,
    function,
    generic,
    structured,
    tensor,
    transposed,
)

_SIZES = {"b": 3, "m": 5, "n": 6, "k": 7}
_ODD = {"b": 1, "m": 17, "n": 33, "k": 19}
_UNIT = {"b": 1, "m": 1, "n": 1, "k": 1}
_EVEN = {"b": 2, "m": 16, "n": 32, "k": 16}

#: Named ops with maps of their own: a, b and the result, by loop letter.
_MAPPED = {
    "matmul": ("mk", "kn", "mn"),
    "matmul.transposed_a": ("km", "kn", "mn"),
    "matmul.transposed_b": ("mk", "nk", "mn"),
    "matmul.transposed_both": ("km", "nk", "mn"),
    "matmul.broadcast_a": ("k", "kn", "mn"),
    "matmul.broadcast_b": ("mk", "k", "mn"),
    "batch_matmul": ("bmk", "bkn", "bmn"),
    "batch_matmul.transposed_a": ("bkm", "bkn", "bmn"),
    "batch_matmul.transposed_b": ("bmk", "bnk", "bmn"),
    "batch_matmul.broadcast_a": ("mk", "bkn", "bmn"),
    "batch_matmul.broadcast_b": ("bmk", "kn", "bmn"),
    "batch_reduce_matmul": ("bmk", "bkn", "mn"),
    "contract": ("bmk", "bkn", "bmn"),
    "contract.permuted": ("kbm", "nbk", "bnm"),
}
#: The order of the loops that an op insists on.
_LOOPS = {"matmul": "mnk", "batch_matmul": "bmnk", "batch_reduce_matmul": "bmnk"}
_PLAIN = ("matmul", "batch_matmul", "batch_reduce_matmul")
#: Named ops whose layout is the only one.
_FIXED = {
    "matvec": ("mk", "k", "m"),
    "vecmat": ("k", "kn", "n"),
    "batch_matvec": ("bmk", "bk", "bm"),
    "batch_vecmat": ("bk", "bkn", "bn"),
    "dot": ("k", "k", ""),
}
_FORMS: dict[str, tuple[Mapping[str, int], tuple[str, str, str], str]] = {
    "started": (_SIZES, ("f32", "f32", "f32"), "argument"),
    "from_zero": (_SIZES, ("f32", "f32", "f32"), "zeros"),
    "odd": (_ODD, ("f32", "f32", "f32"), "argument"),
    "unit": (_UNIT, ("f32", "f32", "f32"), "zeros"),
    "even": (_EVEN, ("f32", "f32", "f32"), "zeros"),
    "f16": (_SIZES, ("f16", "f16", "f32"), "argument"),
    "f16_throughout": (_SIZES, ("f16", "f16", "f16"), "argument"),
    "i8": (_SIZES, ("i8", "i8", "i32"), "argument"),
}


def programs() -> Iterator[Program]:
    for op, layout in {**_MAPPED, **_FIXED}.items():
        for form, (sizes, types, start) in _FORMS.items():
            yield Program(f"{op}.{form}", _text(op, layout, sizes, types, start))
    for op in ("matmul", "matmul.transposed_a", "matmul.transposed_b", "batch_matmul", "batch_matmul.transposed_b",
               "contract"):  # fmt: skip
        for start in ("zeros", "argument"):
            types = ("i8", "i8", "i32")
            name = f"{op}.unsigned{'' if start == 'zeros' else '_started'}"
            yield Program(name, _text(op, _MAPPED[op], _SIZES, types, start, unsigned=True))
    yield Program(
        "matmul.dynamic",
        _text("matmul", _MAPPED["matmul"], {"m": "?", "n": 6, "k": 7}, ("f32",) * 3, "argument"),
    )
    yield from _tiled()
    yield from _quantized()
    yield from _around()


def _text(op, layout, sizes, types, start, unsigned: bool = False) -> str:
    kind = op.partition(".")[0]
    operands = [
        tensor([sizes[letter] for letter in word], type_) for word, type_ in zip(layout, types, strict=True)
    ]
    attributes = ""
    if op in _MAPPED and op not in _PLAIN:
        loops = _LOOPS.get(kind) or "".join(dict.fromkeys(layout[2] + "".join(layout)))
        maps = ", ".join(f"affine_map<({', '.join(loops)}) -> ({', '.join(word)})>" for word in layout)
        attributes = f"indexing_maps = [{maps}]"
    if unsigned:
        attributes += " {cast = #linalg.type_fn<cast_unsigned>}"
    arguments, body = {"a": operands[0], "b": operands[1]}, ""
    if start == "argument":
        arguments["start"] = operands[2]
    else:
        body = filled("start", operands[2])
    inputs = {"a": operands[0], "b": operands[1]}
    return function(
        arguments,
        body + structured(kind, inputs, ("start", operands[2]), "result", attributes.strip()),
        {"result": operands[2]},
    )


def _tiled() -> Iterator[Program]:
    for name, shapes in (("mmt4d", ((2, 3, 4, 2), (3, 3, 5, 2), (2, 3, 4, 5))),
                        ("batch_mmt4d", ((2, 2, 3, 4, 2), (2, 3, 3, 5, 2), (2, 2, 3, 4, 5)))):  # fmt: skip
        a, b, result = (tensor(size, "f32") for size in shapes)
        body = structured(name, {"a": a, "b": b}, ("start", result), "result")
        yield Program(
            f"{name}.started", function({"a": a, "b": b, "start": result}, body, {"result": result})
        )


def _quantized() -> Iterator[Program]:
    for name, batch in (("quantized_matmul", ()), ("quantized_batch_matmul", (2,))):
        a, b, result = (
            tensor([*batch, 5, 7], "i8"),
            tensor([*batch, 7, 6], "i8"),
            tensor([*batch, 5, 6], "i32"),
        )
        for points, (p, q) in {"": (3, -5), "_one_zero": (0, -5), "_other_zero": (3, 0)}.items():
            body = f"  %p = arith.constant {p} : i32\n  %q = arith.constant {q} : i32\n"
            body += structured(name, {"a": a, "b": b, "p": "i32", "q": "i32"}, ("start", result), "result")
            yield Program(
                f"{name}.started{points}",
                function({"a": a, "b": b, "start": result}, body, {"result": result}),
            )


def _around() -> Iterator[Program]:
    """A matmul with something before or after it that passes move through it, or fold into it."""
    a, b, turned, result = (tensor(size, "f32") for size in ((5, 7), (7, 6), (7, 5), (5, 6)))
    product = structured("matmul", {"a": a, "b": b}, ("start", result), "product")
    given = {"a": a, "b": b, "start": result}
    added = elementwise("result", {"product": result, "more": result}, result, "%v = arith.addf %a, %b : f32")
    yield Program(
        "matmul.then_added", function(given | {"more": result}, product + added, {"result": result})
    )
    relu = "%z = arith.constant 0.0 : f32\n    %v = arith.maximumf %a, %z : f32"
    body = product + elementwise("result", {"product": result}, result, relu)
    yield Program("matmul.then_relu", function(given, body, {"result": result}))
    body = transposed("a", "t", turned, a, (1, 0))
    body += product.replace("%product", "%result")
    yield Program(
        "matmul.of_transposed", function({"t": turned, "b": b, "start": result}, body, {"result": result})
    )
    back = tensor((6, 5), "f32")
    body = product + transposed("result", "product", result, back, (1, 0))
    yield Program("matmul.then_transposed", function(given, body, {"result": back}))
    third = tensor((6, 4), "f32")
    last = tensor((5, 4), "f32")
    body = (
        product
        + filled("zeros", last)
        + structured("matmul", {"product": result, "c": third}, ("zeros", last), "result")
    )
    yield Program("matmul.of_matmul", function(given | {"c": third}, body, {"result": last}))
    both = product + structured("matmul", {"a": a, "c": b}, ("zeros", result), "second")
    yield Program(
        "matmul.twice_of_one",
        function(given | {"c": b}, filled("zeros", result) + both, {"product": result, "second": result}),
    )
    yield from _dequantized()
    narrow = generic(
        "a", ["ij", "ij"], {"x": tensor((5, 7), "i8")}, (None, a), "%v = arith.sitofp %a : i8 to f32"
    )
    wide = generic(
        "b", ["ij", "ij"], {"y": tensor((7, 6), "i8")}, (None, b), "%v = arith.sitofp %a : i8 to f32"
    )
    yield Program(
        "matmul.of_small_whole_numbers",
        function(
            {"x": tensor((5, 7), "i8"), "y": tensor((7, 6), "i8")},
            narrow + wide + filled("start", result) + product.replace("%product", "%result"),
            {"result": result},
        ),
    )


def _dequantized() -> Iterator[Program]:
    """Weights in groups of 4, each with a scale and a zero point, signed and unsigned."""
    for kind, cast in (("unsigned", "uitofp"), ("signed", "sitofp")):
        packed, scale, full = tensor((6, 3, 4), "i8"), tensor((6, 3), "f32"), tensor((6, 3, 4), "f32")
        x, result = tensor((3, 4), "f32"), tensor((6,), "f32")
        restored = generic(
            "w", ["ngk", "ng", "ng", "ngk"], {"q": packed, "s": scale, "z": scale}, (None, full),
            f"%f = arith.{cast} %a : i8 to f32\n    %d = arith.subf %f, %c : f32\n    %v = arith.mulf %d, %b : f32",
        )  # fmt: skip
        summed = generic(
            "result", ["gk", "ngk", "n"], {"x": x, "w": full}, ("start", result),
            "%p = arith.mulf %a, %b : f32\n    %v = arith.addf %o, %p : f32", "gk", "ngk",
        )  # fmt: skip
        arguments = {"x": x, "q": packed, "s": scale, "z": scale, "start": result}
        yield Program(
            f"matvec.dequantized_{kind}", function(arguments, restored + summed, {"result": result})
        )
