"""Pooling and reductions: sums, maxima and products, over one or more dimensions, of odd and unit sizes."""

from __future__ import annotations

from collections.abc import Iterator

from numtrace.audit.program import Program, filled, function, generic, structured, tensor

_POOLS = {
    "pooling_nchw_max": "nchw", "pooling_nchw_sum": "nchw",
    "pooling_ncw_max": "ncw", "pooling_ncw_sum": "ncw",
    "pooling_nhwc_max": "nhwc", "pooling_nhwc_min": "nhwc", "pooling_nhwc_sum": "nhwc",
    "pooling_nwc_max": "nwc", "pooling_nwc_min": "nwc", "pooling_nwc_sum": "nwc",
    "pooling_ndhwc_max": "ndhwc", "pooling_ndhwc_min": "ndhwc", "pooling_ndhwc_sum": "ndhwc",
    "pooling_nhwc_max_unsigned": "nhwc", "pooling_nhwc_min_unsigned": "nhwc",
    "pooling_nwc_max_unsigned": "nwc", "pooling_nwc_min_unsigned": "nwc",
}  # fmt: skip
#: Kernel, stride, dilation, and the start: an argument or zeros.
_FORMS = {
    "started": (2, 1, 1, "argument"),
    "from_zero": (3, 1, 1, "zeros"),
    "strided": (2, 2, 1, "argument"),
    "dilated": (2, 1, 2, "argument"),
    "1x1": (1, 1, 1, "argument"),
}
_SIZES = {"n": 2, "c": 3, "d": 2, "h": 4, "w": 5}


def programs() -> Iterator[Program]:
    for op, layout in _POOLS.items():
        for form, (kernel, stride, dilation, start) in _FORMS.items():
            element = "i8" if op.endswith("unsigned") else "f32"
            yield Program(f"{op}.{form}", _pool(op, layout, kernel, stride, dilation, start, element))
    yield Program("pooling_nhwc_sum.i8", _pool("pooling_nhwc_sum", "nhwc", 2, 1, 1, "argument", "i8", "i32"))
    yield from _reductions()


def _pool(op, layout, kernel, stride, dilation, start, element, wide: str = "") -> str:
    wide = wide or element
    read = {s: (_SIZES[s] - 1) * stride + (kernel - 1) * dilation + 1 for s in "dhw"}
    image = tensor([read.get(letter, _SIZES[letter]) for letter in layout], element)
    result = tensor([_SIZES[letter] for letter in layout], wide)
    rank = sum(letter in "dhw" for letter in layout)
    arguments, body = {"image": image}, ""
    if start == "argument":
        arguments["start"] = result
    else:
        body = filled("start", result)
    window = tensor([kernel] * rank, element)
    body += f"  %window = tensor.empty() : {window}\n"
    steps = f"{{dilations = dense<{dilation}> : tensor<{rank}xi64>, strides = dense<{stride}> : tensor<{rank}xi64>}}"
    body += structured(op, {"image": image, "window": window}, ("start", result), "result", steps)
    return function(arguments, body, {"result": result})


_COMBINE = {
    "sum": "%v = arith.addf %a, %o : f32",
    "product": "%v = arith.mulf %a, %o : f32",
    "max": "%v = arith.maximumf %a, %o : f32",
    "min": "%v = arith.minnumf %a, %o : f32",
    "sum_of_squares": "%s = arith.mulf %a, %a : f32\n    %v = arith.addf %s, %o : f32",
}
#: The loops of what is read, and those of the result.
_SHAPES = {
    "inner": ("ij", "i", (5, 7)),
    "outer": ("ij", "j", (7, 5)),
    "middle": ("ijk", "ik", (3, 5, 4)),
    "two": ("ijk", "j", (3, 5, 4)),
    "all": ("ij", "", (3, 4)),
    "unit": ("ij", "i", (4, 1)),
    "long": ("ij", "i", (2, 96)),
}


def _reductions() -> Iterator[Program]:
    for name, body in _COMBINE.items():
        for shape, (read, kept, sizes) in _SHAPES.items():
            if name == "product" and shape == "long":
                continue  # 8^96 is beyond every type
            yield Program(f"reduce_{name}.{shape}", _reduction(read, kept, sizes, body))
    yield Program("reduce_sum.from_zero", _reduction("ij", "i", (5, 7), _COMBINE["sum"], start="zeros"))
    wide = "%w = arith.extsi %a : i8 to i32\n    %v = arith.addi %w, %o : i32"
    yield Program("reduce_sum.i8", _reduction("ij", "i", (5, 7), wide, types=("i8", "i32")))
    wide = "%w = arith.extf %a : f16 to f32\n    %v = arith.addf %w, %o : f32"
    yield Program("reduce_sum.f16", _reduction("ij", "i", (5, 7), wide, types=("f16", "f32")))
    yield Program(
        "reduce_max.unsigned",
        _reduction("ij", "i", (5, 7), "%v = arith.maxui %a, %o : i8", types=("i8", "i8")),
    )
    yield from _pairs()


def _reduction(read, kept, sizes, body, types=("f32", "f32"), start: str = "argument") -> str:
    lengths = dict(zip(read, sizes, strict=True))
    x, result = tensor(sizes, types[0]), tensor([lengths[letter] for letter in kept], types[1])
    reduced = "".join(letter for letter in read if letter not in kept)
    arguments = {"x": x, "start": result} if start == "argument" else {"x": x}
    made = "" if start == "argument" else filled("start", result)
    made += generic("result", [read, kept], {"x": x}, ("start", result), body, reduced, read)
    return function(arguments, made, {"result": result})


def _pairs() -> Iterator[Program]:
    """Two results of one reduction: the largest element and where it is; a sum and a maximum."""
    x, best, place = tensor((4, 6), "f32"), tensor((4,), "f32"), tensor((4,), "i32")
    maps = "affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>"
    head = (
        f'  %best, %place = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "reduction"]}}\n'
        f"      ins(%x : {x}) outs(%first, %zero : {best}, {place}) {{\n"
        "  ^bb0(%a: f32, %m: f32, %p: i32):\n"
        "    %j = linalg.index 1 : index\n    %n = arith.index_cast %j : index to i32\n"
        "    %more = arith.cmpf ogt, %a, %m : f32\n"
        "    %v = arith.select %more, %a, %m : f32\n    %q = arith.select %more, %n, %p : i32\n"
        f"    linalg.yield %v, %q : f32, i32\n  }} -> ({best}, {place})\n"
    )
    body = filled("first", best, "-1.0e10") + filled("zero", place) + head
    yield Program("argmax", function({"x": x}, body, {"best": best, "place": place}), data="normal")
