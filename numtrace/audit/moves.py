"""What only moves data, alone and around ops that compute: pads, slices, transposes, reshapes, packs."""

from __future__ import annotations

from collections.abc import Iterator

from numtrace.audit.program import (
    Program,
    broadcast,
    elementwise,
    filled,
    function,
    generic,
    structured,
    tensor,
    transposed,
)

_ADD = "%v = arith.addf %a, %b : f32"


def programs() -> Iterator[Program]:
    yield from _single()
    yield from _transposed()
    yield from _reshaped()
    yield from _around_convolutions()
    yield from _linalg_ext()
    yield from _quantized()


def _program(name: str, arguments: dict[str, str], body: str, result: str, data: str = "whole") -> Program:
    return Program(name, function(arguments, body, {"result": result}), data)


def _single() -> Iterator[Program]:
    x, y = tensor((3, 5), "f32"), tensor((3, 4), "f32")
    out = tensor((3, 9), "f32")
    body = f"  %result = tensor.concat dim(1) %x, %y : ({x}, {y}) -> {out}\n"
    yield _program("concat.inner", {"x": x, "y": y}, body, out)
    y, out = tensor((2, 5), "f32"), tensor((5, 5), "f32")
    body = f"  %result = tensor.concat dim(0) %x, %y : ({x}, {y}) -> {out}\n"
    yield _program("concat.outer", {"x": x, "y": y}, body, out)
    out = tensor((6, 6), "f32")
    body = (
        f"  %c = arith.constant 2.0 : f32\n  %result = tensor.pad %x low[1, 0] high[2, 1] {{\n"
        f"  ^bb0(%i: index, %j: index):\n    tensor.yield %c : f32\n  }} : {x} to {out}\n"
    )
    yield _program("pad.of_twos", {"x": x}, body, out)
    out = tensor((2, 2), "f32")
    body = f"  %result = tensor.extract_slice %x[1, 0] [2, 2] [1, 3] : {x} to {out}\n"
    yield _program("slice.strided", {"x": x}, body, out)
    wide = tensor((7, 9), "f32")
    for start, made, more in (("zeros", filled("into", wide), {}), ("argument", "", {"into": wide})):
        body = made + f"  %result = tensor.insert_slice %x into %into[0, 1] [3, 5] [2, 1] : {x} into {wide}\n"
        yield _program(f"insert_slice.strided_{start}", {"x": x, **more}, body, wide)
    body = elementwise("sum", {"x": x, "y": x}, x, _ADD)
    body += elementwise("result", {"sum": x, "x": x}, x, "%v = arith.mulf %a, %b : f32")
    yield _program("elementwise.two", {"x": x, "y": x}, body, x)
    row = tensor((5,), "f32")
    body = broadcast("b", "y", row, x, (0,))
    body += elementwise("result", {"x": x, "b": x}, x, _ADD)
    yield _program("broadcast.then_added", {"x": x, "y": row}, body, x)
    one = tensor((3, 1, 5), "f32")
    body = generic("result", ["ijk", "ij", "ijk"], {"x": one, "y": tensor((3, 1), "f32")}, (None, one), _ADD)
    yield _program("elementwise.unit", {"x": one, "y": tensor((3, 1), "f32")}, body, one)
    body = elementwise("result", {"x": x, "y": x}, x, "%v = arith.mulf %a, %a : f32")
    yield _program("elementwise.unused_operand", {"x": x, "y": x}, body, x)


def _transposed() -> Iterator[Program]:
    x, t = tensor((3, 5), "f32"), tensor((5, 3), "f32")
    turn = transposed("t", "x", x, t, (1, 0))
    body = turn + elementwise("result", {"t": t, "y": t}, t, _ADD)
    yield _program("transpose.then_added", {"x": x, "y": t}, body, t)
    row = tensor((5,), "f32")
    body = turn + generic(
        "result", ["ij", "i"], {"t": t}, ("start", row), "%v = arith.addf %a, %o : f32", "j", "ij"
    )
    yield _program("transpose.then_reduced", {"x": x, "start": row}, body, row)
    back = transposed("result", "s", t, x, (1, 0))
    body = turn + elementwise("s", {"t": t, "y": t}, t, _ADD) + back
    yield _program("transpose.there_and_back", {"x": x, "y": t}, body, x)
    cube, turned = tensor((2, 3, 4), "f32"), tensor((4, 2, 3), "f32")
    body = transposed("t", "x", cube, turned, (2, 0, 1))
    flat = tensor((4, 6), "f32")
    body += f"  %result = tensor.collapse_shape %t [[0], [1, 2]] : {turned} into {flat}\n"
    yield _program("transpose.then_collapsed", {"x": cube}, body, flat)
    padded = tensor((5, 3, 5), "f32")
    body = body.rpartition("  %result")[0]
    body += (
        f"  %c = arith.constant 1.5 : f32\n  %result = tensor.pad %t low[1, 0, 0] high[0, 1, 2] {{\n"
        f"  ^bb0(%i: index, %j: index, %k: index):\n    tensor.yield %c : f32\n  }} : {turned} to {padded}\n"
    )
    yield _program("transpose.then_padded", {"x": cube}, body, padded)
    soft = f"  %e = tensor.empty() : {t}\n"
    soft += f"  %result = linalg.softmax dimension(1) ins(%t : {t}) outs(%e : {t}) -> {t}\n"
    yield _program("transpose.then_softmax", {"x": x}, turn + soft, t, "normal")


def _reshaped() -> Iterator[Program]:
    x, flat, out = tensor((2, 3, 5), "f32"), tensor((6, 5), "f32"), tensor((6,), "f32")
    body = f"  %f = tensor.collapse_shape %x [[0, 1], [2]] : {x} into {flat}\n"
    body += generic(
        "result", ["ij", "i"], {"f": flat}, ("start", out), "%v = arith.addf %a, %o : f32", "j", "ij"
    )
    yield _program("collapse.then_reduced", {"x": x, "start": out}, body, out)
    body = elementwise("s", {"y": flat, "z": flat}, flat, _ADD)
    body += f"  %result = tensor.expand_shape %s [[0, 1], [2]] output_shape [2, 3, 5] : {flat} into {x}\n"
    yield _program("expand.of_sum", {"y": flat, "z": flat}, body, x)
    a, b, m = tensor((2, 3, 5), "f32"), tensor((5, 4), "f32"), tensor((6, 4), "f32")
    body = f"  %f = tensor.collapse_shape %a [[0, 1], [2]] : {a} into {flat}\n"
    body += structured("matmul", {"f": flat, "b": b}, ("start", m), "p")
    out = tensor((2, 3, 4), "f32")
    body += f"  %result = tensor.expand_shape %p [[0, 1], [2]] output_shape [2, 3, 4] : {m} into {out}\n"
    yield _program("matmul.reshaped", {"a": a, "b": b, "start": m}, body, out)


_STEPS = "{dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}"


def _around_convolutions() -> Iterator[Program]:
    x, padded, w, out = (tensor(s, "f32") for s in ((1, 3, 6, 6), (1, 3, 8, 8), (4, 3, 3, 3), (1, 4, 6, 6)))
    pad = (
        f"  %c = arith.constant 0.0 : f32\n  %p = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {{\n"
        f"  ^bb0(%i: index, %j: index, %k: index, %l: index):\n    tensor.yield %c : f32\n  }} : {x} to {padded}\n"
    )
    bias = tensor((4,), "f32")
    spread = broadcast("start", "b", bias, out, (0, 2, 3))
    conv = structured("conv_2d_nchw_fchw", {"p": padded, "w": w}, ("start", out), "y", _STEPS)
    relu = elementwise(
        "result", {"y": out}, out, "%z = arith.constant 0.0 : f32\n    %v = arith.maximumf %a, %z : f32"
    )
    given = {"x": x, "w": w, "b": bias}
    yield _program(
        "conv_2d_nchw_fchw.padded_with_bias", given, pad + spread + conv.replace("%y", "%result"), out
    )
    yield _program("conv_2d_nchw_fchw.padded_with_bias_and_relu", given, pad + spread + conv + relu, out)
    more = elementwise("result", {"y": out, "b4": out}, out, _ADD)
    body = (
        pad
        + filled("start", out)
        + conv
        + broadcast("b4", "b", bias, out, (0, 2, 3))
        .replace("%e ", "%e4 ")
        .replace("%e:", "%e4:")
        .replace("outs(%e ", "outs(%e4 ")
        + more
    )
    yield _program("conv_2d_nchw_fchw.padded_then_bias", given, body, out)
    # What a strided 1x1 convolution's backward pass is: a scatter into zeros, then a contraction.
    small, wide, k, result = (tensor(s, "f32") for s in ((2, 3, 3, 4), (2, 5, 5, 4), (4, 6), (2, 5, 5, 6)))
    body = filled("zeros", wide)
    body += f"  %s = tensor.insert_slice %x into %zeros[0, 0, 0, 0] [2, 3, 3, 4] [1, 2, 2, 1] : {small} into {wide}\n"
    for start, made, extra in (("zero", filled("start", result), {}), ("argument", "", {"start": result})):
        contract = generic(
            "result", ["nhwc", "cf", "nhwf"], {"s": wide, "k": k}, ("start", result),
            "%p = arith.mulf %a, %b : f32\n    %v = arith.addf %o, %p : f32", "c", "nhwfc",
        )  # fmt: skip
        yield _program(
            f"contraction.of_strided_insert_from_{start}",
            {"x": small, "k": k, **extra},
            body + made + contract,
            result,
        )
    big, picked, m = (
        tensor((2, 5, 5, 4), "f32"),
        tensor((2, 3, 3, 6), "f32"),
        "%p = arith.mulf %a, %b : f32\n    %v = arith.addf %o, %p : f32",
    )
    maps = ["n, h * 2, w * 2, c", "c, f", "n, h, w, f"]
    body = generic("result", maps, {"x": big, "k": k}, ("start", picked), m, "c", "nhwfc")
    yield _program("contraction.strided", {"x": big, "k": k, "start": picked}, body, picked)


def _linalg_ext() -> Iterator[Program]:
    x, packed = tensor((5, 7), "f32"), tensor((3, 2, 2, 4), "f32")
    pack = (
        "  %c = arith.constant 0.0 : f32\n"
        f"  %e = tensor.empty() : {packed}\n"
        "  %packed = linalg.pack %x padding_value(%c : f32) inner_dims_pos = [0, 1] inner_tiles = [2, 4]\n"
        f"      into %e : {x} -> {packed}\n"
    )
    yield _program("pack", {"x": x}, pack.replace("%packed", "%result"), packed)
    body = pack + elementwise("s", {"packed": packed}, packed, "%v = arith.mulf %a, %a : f32")
    body += f"  %e2 = tensor.empty() : {x}\n"
    body += "  %result = linalg.unpack %s inner_dims_pos = [0, 1] inner_tiles = [2, 4]\n"
    body += f"      into %e2 : {packed} -> {x}\n"
    yield _program("pack.square_unpack", {"x": x}, body, x)
    rows = tensor((4, 24), "f32")
    best, where = tensor((4, 3), "f32"), tensor((4, 3), "i32")
    topk = (
        filled("low", best, "-1.0e10") + filled("zero", where)
        + f"  %best, %where = iree_linalg_ext.topk dimension(1) ins(%x : {rows})\n"
        + f"      outs(%low, %zero : {best}, {where}) {{\n"
        + "  ^bb0(%a: f32, %b: f32):\n    %more = arith.cmpf ogt, %a, %b : f32\n"
        + f"    iree_linalg_ext.yield %more : i1\n  }} -> {best}, {where}\n"
    )  # fmt: skip
    yield Program("topk", function({"x": rows}, topk, {"best": best, "where": where}), "normal")
    line = tensor((9,), "f32")
    sort = (
        f"  %result = iree_linalg_ext.sort dimension(0) outs(%x : {line}) {{\n"
        "  ^bb0(%a: f32, %b: f32):\n    %less = arith.cmpf olt, %a, %b : f32\n"
        f"    iree_linalg_ext.yield %less : i1\n  }} -> {line}\n"
    )
    yield _program("sort", {"x": line}, sort, line, "normal")
    last = tensor((), "f32")
    scan = (
        filled("sums", line) + filled("last0", last)
        + "  %result, %last = iree_linalg_ext.scan dimension(0) inclusive(true)\n"
        + f"      ins(%x : {line}) outs(%sums, %last0 : {line}, {last}) {{\n"
        + "  ^bb0(%a: f32, %b: f32):\n    %s = arith.addf %a, %b : f32\n"
        + f"    iree_linalg_ext.yield %s : f32\n  }} -> {line}, {last}\n"
    )  # fmt: skip
    yield _program("scan", {"x": line}, scan, line)


def _quantized() -> Iterator[Program]:
    """A contraction of numbers that were stored as i8 with a scale and a zero point, and stored so again."""
    q, w, f, g = tensor((5, 7), "i8"), tensor((7, 6), "i8"), tensor((5, 7), "f32"), tensor((7, 6), "f32")
    out, back = tensor((5, 6), "f32"), tensor((5, 6), "i8")
    for name, zero in (("symmetric", "0.0"), ("shifted", "3.0")):
        restore = (
            f"%s = arith.constant 0.125 : f32\n    %z = arith.constant {zero} : f32\n"
            "    %f = arith.sitofp %a : i8 to f32\n    %d = arith.subf %f, %z : f32\n    %v = arith.mulf %d, %s : f32"
        )
        body = generic("f", ["ij", "ij"], {"x": q}, (None, f), restore)
        body += generic("g", ["ij", "ij"], {"w": w}, (None, g), restore.replace("0.125", "0.25"))
        body += filled("start", out) + structured("matmul", {"f": f, "g": g}, ("start", out), "result")
        yield _program(f"qdq_matmul.{name}", {"x": q, "w": w}, body, out)
        store = (
            "%s = arith.constant 0.0078125 : f32\n    %m = arith.mulf %a, %s : f32\n    %r = math.roundeven %m : f32\n"
            "    %lo = arith.constant -128.0 : f32\n    %hi = arith.constant 127.0 : f32\n"
            "    %l = arith.maximumf %r, %lo : f32\n    %h = arith.minimumf %l, %hi : f32\n"
            "    %v = arith.fptosi %h : f32 to i8"
        )
        stored = body.replace("%result", "%p") + generic(
            "result", ["ij", "ij"], {"p": out}, (None, back), store
        )
        yield _program(f"qdq_matmul.{name}_stored", {"x": q, "w": w}, stored, back)
