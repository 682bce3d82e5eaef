"""Convolutions in every layout: strided, dilated, grouped, with a start that is not zero, of odd and unit sizes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from numtrace.audit.program import Program, filled, function, generic, structured, tensor

#: Layouts of image, filter and result of linalg's named ops: n batch, d h w space, c and f channels in and out,
#: g groups, m results per channel.
NAMED = {
    "conv_1d": ("w", "w", "w"),
    "conv_1d_ncw_fcw": ("ncw", "fcw", "nfw"),
    "conv_1d_nwc_wcf": ("nwc", "wcf", "nwf"),
    "conv_2d": ("hw", "hw", "hw"),
    "conv_2d_nchw_fchw": ("nchw", "fchw", "nfhw"),
    "conv_2d_nhwc_hwcf": ("nhwc", "hwcf", "nhwf"),
    "conv_2d_nhwc_fhwc": ("nhwc", "fhwc", "nhwf"),
    "conv_2d_ngchw_fgchw": ("ngchw", "fgchw", "ngfhw"),
    "conv_2d_ngchw_gfchw": ("ngchw", "gfchw", "ngfhw"),
    "conv_2d_nhwgc_gfhwc": ("nhwgc", "gfhwc", "nhwgf"),
    "conv_3d_ncdhw_fcdhw": ("ncdhw", "fcdhw", "nfdhw"),
    "conv_3d_ndhwc_dhwcf": ("ndhwc", "dhwcf", "ndhwf"),
    "depthwise_conv_1d_ncw_cw": ("ncw", "cw", "ncw"),
    "depthwise_conv_1d_nwc_wc": ("nwc", "wc", "nwc"),
    "depthwise_conv_1d_nwc_wcm": ("nwc", "wcm", "nwcm"),
    "depthwise_conv_2d_nchw_chw": ("nchw", "chw", "nchw"),
    "depthwise_conv_2d_nhwc_hwc": ("nhwc", "hwc", "nhwc"),
    "depthwise_conv_2d_nhwc_hwcm": ("nhwc", "hwcm", "nhwcm"),
    "depthwise_conv_3d_ncdhw_cdhw": ("ncdhw", "cdhw", "ncdhw"),
    "depthwise_conv_3d_ndhwc_dhwc": ("ndhwc", "dhwc", "ndhwc"),
    "depthwise_conv_3d_ndhwc_dhwcm": ("ndhwc", "dhwcm", "ndhwcm"),
}
#: Convolutions that no named op has, as generics.
GENERIC = (
    ("nchw", "hwcf", "nfhw"),
    ("nchw", "chwf", "nfhw"),
    ("nhwc", "chwf", "nhwf"),
    ("nhwc", "fchw", "nhwf"),
    ("nchw", "fchw", "nhwf"),
    ("chwn", "hwcf", "fhwn"),
    ("chwn", "chwf", "fhwn"),
    ("nhwgc", "hwgcf", "nhwgf"),
    ("nghwc", "gfhwc", "nghwf"),
)
#: Those with a zero point for image and filter.
QUANTIZED = ("conv_2d_nchw_fchw", "conv_2d_nhwc_hwcf", "conv_2d_nhwc_fhwc", "depthwise_conv_2d_nhwc_hwc",
             "conv_2d_ngchw_gfchw", "conv_2d_nhwgc_gfhwc")  # fmt: skip
_NO_SPACE = str.maketrans("", "", "dhw")
_SIZES = {"n": 2, "c": 3, "f": 4, "g": 2, "m": 2, "d": 3, "h": 5, "w": 6}


@dataclass(frozen=True, slots=True)
class _Form:
    """One way to convolve; ``sizes`` replace the usual ones. ``start``: an argument, or zeros."""

    name: str
    kernel: int = 3
    stride: int = 1
    dilation: int = 1
    start: str = "argument"
    sizes: tuple[tuple[str, int], ...] = ()
    types: tuple[str, str] = ("f32", "f32")


_FORMS = (
    _Form("started"),
    _Form("from_zero", start="zeros"),
    _Form("strided", stride=2),
    _Form("dilated", dilation=2),
    _Form("strided_dilated", stride=2, dilation=2),
    _Form("1x1", kernel=1),
    _Form("1x1_strided", kernel=1, stride=2),
    _Form("even_kernel", kernel=2),
    _Form("unit", start="zeros", sizes=(("n", 1), ("c", 1), ("f", 1), ("g", 1), ("m", 1), ("d", 1))),
    _Form("one_column", sizes=(("w", 1),)),
)
#: Other types, in two dimensions.
_NARROW = (
    _Form("f16", types=("f16", "f32")),
    _Form("bf16_throughout", types=("bf16", "bf16")),
    _Form("i8", types=("i8", "i32")),
)


def programs() -> Iterator[Program]:
    for op, layout in NAMED.items():
        for form in (*_FORMS, *(_NARROW if "2d" in op else ())):
            if "_" not in op.removeprefix("conv_") and (form.stride, form.dilation) != (1, 1):
                continue  # conv_1d and conv_2d have no strides
            yield Program(f"{op}.{form.name}", _named(op, layout, form))
    for layout in GENERIC:
        for form in _FORMS[:7]:
            yield Program(f"generic_{'_'.join(layout)}.{form.name}", _generic(layout, form))
    for op in QUANTIZED:
        for form in (_Form("started", types=("i8", "i32")), _Form("1x1", kernel=1, types=("i8", "i32"))):
            yield Program(f"{op}_q.{form.name}", _named(f"{op}_q", NAMED[op], form, zero_points=True))


def _types(layout: tuple[str, str, str], form: _Form) -> list[str]:
    sizes = _SIZES | dict(form.sizes)
    image, kernel, result = layout
    read = {s: (sizes[s] - 1) * form.stride + (form.kernel - 1) * form.dilation + 1 for s in "dhw"}
    narrow, wide = form.types
    return [
        tensor([read.get(letter, sizes[letter]) for letter in image], narrow),
        tensor([form.kernel if letter in "dhw" else sizes[letter] for letter in kernel], narrow),
        tensor([sizes[letter] for letter in result], wide),
    ]


def _started(form: _Form, image: str, kernel: str, result: str) -> tuple[dict[str, str], str]:
    """The arguments, and what makes ``%start``."""
    arguments = {"image": image, "filter": kernel}
    if form.start == "argument":
        return {**arguments, "start": result}, ""
    return arguments, filled("start", result)


def _named(op: str, layout: tuple[str, str, str], form: _Form, zero_points: bool = False) -> str:
    image, kernel, result = _types(layout, form)
    arguments, body = _started(form, image, kernel, result)
    inputs = {"image": image, "filter": kernel}
    rank = sum(letter in "dhw" for letter in layout[0])
    if zero_points:
        body += "  %p = arith.constant 3 : i32\n  %q = arith.constant -5 : i32\n"
        inputs |= {"p": "i32", "q": "i32"}
    each = f"tensor<{rank}xi64>"
    steps = (
        f"{{dilations = dense<{form.dilation}> : {each}, strides = dense<{form.stride}> : {each}}}"
        if op not in ("conv_1d", "conv_2d")
        else ""
    )
    body += structured(op, inputs, ("start", result), "result", steps)
    return function(arguments, body, {"result": result})


def _generic(layout: tuple[str, str, str], form: _Form) -> str:
    image, kernel, result = _types(layout, form)
    arguments, body = _started(form, image, kernel, result)
    window = {"d": "x", "h": "y", "w": "z"}
    read = {s: f"{s} * {form.stride} + {window[s]} * {form.dilation}".replace(" * 1", "") for s in window}
    maps = [
        ", ".join(read.get(letter, letter) for letter in layout[0]),
        ", ".join(window.get(letter, letter) for letter in layout[1]),
        ", ".join(layout[2]),
    ]
    reduced = "".join(
        window.get(letter, letter) for letter in layout[1] if letter not in layout[2].translate(_NO_SPACE)
    )
    loops = layout[2] + reduced
    compute = "%p = arith.mulf %a, %b : f32\n    %v = arith.addf %o, %p : f32"
    inputs = {"image": image, "filter": kernel}
    body += generic("result", maps, inputs, ("start", result), compute, reduced, loops)
    return function(arguments, body, {"result": result})
