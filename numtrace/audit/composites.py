"""Softmax, attention, norms and activations: what passes split up, put together or raise to one op."""

from __future__ import annotations

from collections.abc import Iterator

from numtrace.audit.program import Program, elementwise, filled, function, generic, tensor


def programs() -> Iterator[Program]:
    for sizes, axis in (((4, 7), 1), ((4, 7), 0), ((2, 3, 5), 1), ((3, 1), 1)):
        yield Program(f"softmax.{'x'.join(map(str, sizes))}_{axis}", _softmax(sizes, axis), data="normal")
    yield Program("softmax.spelled_out", _spelled_softmax(), data="normal")
    for name, parts in _ATTENTIONS.items():
        yield Program(f"attention.{name}", _attention(*parts), data="normal")
    yield Program("layer_norm", _layer_norm(), data="normal")
    yield Program("rms_norm", _rms_norm(), data="normal")
    for name, body in _ACTIVATIONS.items():
        type_ = tensor((3, 5), "f32")
        made = elementwise("result", {"x": type_}, type_, body)
        yield Program(f"elementwise.{name}", function({"x": type_}, made, {"result": type_}), data="normal")


def _softmax(sizes, axis) -> str:
    type_ = tensor(sizes, "f32")
    body = (
        f"  %e = tensor.empty() : {type_}\n"
        f"  %result = linalg.softmax dimension({axis}) ins(%x : {type_}) outs(%e : {type_}) -> {type_}\n"
    )
    return function({"x": type_}, body, {"result": type_})


def _spelled_softmax() -> str:
    """The maximum of each row, the exponentials less it, their sum, the quotient."""
    x, row = tensor((4, 7), "f32"), tensor((4,), "f32")
    body = filled("least", row, "-3.0e38") + filled("zero", row)
    body += generic(
        "most", ["ij", "i"], {"x": x}, ("least", row), "%v = arith.maximumf %a, %o : f32", "j", "ij"
    )
    body += generic(
        "powers", ["ij", "i", "ij"], {"x": x, "most": row}, (None, x),
        "%d = arith.subf %a, %b : f32\n    %v = math.exp %d : f32",
    )  # fmt: skip
    body += generic(
        "sums", ["ij", "i"], {"powers": x}, ("zero", row), "%v = arith.addf %a, %o : f32", "j", "ij"
    )
    body += generic(
        "result", ["ij", "i", "ij"], {"powers": x, "sums": row}, (None, x), "%v = arith.divf %a, %b : f32"
    )
    return function({"x": x}, body, {"result": x})


_ATTENTIONS = {
    "plain": ("bmk1", "bk2k1", "bk2n", "bmn", ""),
    "transposed_v": ("bmk1", "bk2k1", "bnk2", "bmn", ""),
    "transposed_k": ("bmk1", "bk1k2", "bk2n", "bmn", ""),
    "masked": ("bmk1", "bk2k1", "bk2n", "bmn", "bmk2"),
    "masked_by_row": ("bmk1", "bk2k1", "bk2n", "bmn", "mk2"),
    "transposed_result": ("bmk1", "bk2k1", "bk2n", "bnm", ""),
    "without_batch": ("mk1", "k2k1", "k2n", "mn", ""),
}
_LENGTHS = {"b": 2, "m": 5, "n": 4, "k1": 3, "k2": 6}


def _attention(query, key, value, result, mask) -> str:
    words = {"q": query, "k": key, "v": value, **({"mask": mask} if mask else {}), "result": result}
    letters = {name: _split(word) for name, word in words.items()}
    types = {name: tensor([_LENGTHS[letter] for letter in found], "f32") for name, found in letters.items()}
    loops = [
        letter for letter in ("b", "m", "n", "k1", "k2") if any(letter in found for found in letters.values())
    ]
    maps = [f"affine_map<({', '.join(loops)}) -> ({', '.join(found)})>" for found in letters.values()]
    maps.insert(3, f"affine_map<({', '.join(loops)}) -> ()>")
    names = ["q", "k", "v", "scale", *(["mask"] if mask else [])]
    given = ", ".join("%" + name for name in names)
    spelled = ", ".join(types.get(name, "f32") for name in names)
    out = types.pop("result")
    body = (
        "  %scale = arith.constant 0.75 : f32\n"
        f"  %e = tensor.empty() : {out}\n"
        f"  %result = iree_linalg_ext.attention <{{indexing_maps = [{', '.join(maps)}]}}>\n"
        f"      ins({given} : {spelled}) outs(%e : {out}) {{\n"
        "  ^bb0(%score: f32):\n    iree_linalg_ext.yield %score : f32\n"
        f"  }} -> {out}\n"
    )
    return function(types, body, {"result": out})


def _split(word: str) -> list[str]:
    """``bk2k1`` as its loops: a letter, and the digit behind it."""
    loops: list[str] = []
    for letter in word:
        if letter.isdigit():
            loops[-1] += letter
        else:
            loops.append(letter)
    return loops


_MEAN = "%n = arith.constant 6.0 : f32\n    %v = arith.divf %a, %n : f32"


def _layer_norm() -> str:
    x, row, column = tensor((4, 6), "f32"), tensor((4,), "f32"), tensor((6,), "f32")
    body = filled("zero", row)
    body += generic("sum", ["ij", "i"], {"x": x}, ("zero", row), "%v = arith.addf %a, %o : f32", "j", "ij")
    body += generic("mean", ["i", "i"], {"sum": row}, (None, row), _MEAN)
    body += generic(
        "off", ["ij", "i", "ij"], {"x": x, "mean": row}, (None, x), "%v = arith.subf %a, %b : f32"
    )
    body += _normalised("off", x, row)
    body += generic(
        "result", ["ij", "j", "j", "ij"], {"unit": x, "g": column, "h": column}, (None, x),
        "%p = arith.mulf %a, %b : f32\n    %v = arith.addf %p, %c : f32",
    )  # fmt: skip
    return function({"x": x, "g": column, "h": column}, body, {"result": x})


def _rms_norm() -> str:
    x, row = tensor((4, 6), "f32"), tensor((4,), "f32")
    body = filled("zero", row) + _normalised("x", x, row).replace("%unit", "%result")
    return function({"x": x}, body, {"result": x})


def _normalised(name: str, x: str, row: str) -> str:
    """``%unit``: each row over the root of the mean of its squares."""
    square = "%s = arith.mulf %a, %a : f32\n    %v = arith.addf %s, %o : f32"
    root = (
        f"{_MEAN.replace('%v', '%m')}\n    %t = arith.constant 1.0e-5 : f32\n    %w = arith.addf %m, %t : f32"
    )
    return (
        generic("squares", ["ij", "i"], {name: x}, ("zero", row), square, "j", "ij")
        + generic("root", ["i", "i"], {"squares": row}, (None, row), f"{root}\n    %v = math.rsqrt %w : f32")
        + generic(
            "unit", ["ij", "i", "ij"], {name: x, "root": row}, (None, x), "%v = arith.mulf %a, %b : f32"
        )
    )


_ACTIVATIONS = {
    "gelu": (
        "%r = arith.constant 0.70710678 : f32\n    %h = arith.constant 0.5 : f32\n"
        "    %1 = arith.constant 1.0 : f32\n    %s = arith.mulf %a, %r : f32\n    %f = math.erf %s : f32\n"
        "    %g = arith.addf %f, %1 : f32\n    %m = arith.mulf %a, %h : f32\n    %v = arith.mulf %m, %g : f32"
    ),
    "sigmoid": (
        "%1 = arith.constant 1.0 : f32\n    %n = arith.negf %a : f32\n    %x = math.exp %n : f32\n"
        "    %d = arith.addf %x, %1 : f32\n    %v = arith.divf %1, %d : f32"
    ),
    "narrowed": "%n = arith.truncf %a : f32 to f16\n    %v = arith.extf %n : f16 to f32",
}
