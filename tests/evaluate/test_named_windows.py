"""Named convolutions and poolings, each in its layout, against numpy: a loop over the points of the window, and einsum.

The dimensions are read from the op's name: n a batch, d h w space, g groups, c channels, f filters, m multipliers.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

SIZES = {"n": 2, "g": 3, "c": 2, "f": 4, "m": 3, "d": 5, "h": 6, "w": 7}
WINDOW = {"d": 2, "h": 2, "w": 3}
STRIDES, DILATIONS = {"d": 2, "h": 1, "w": 2}, {"d": 1, "h": 2, "w": 1}

CONVOLUTIONS = [
    "linalg.conv_1d",
    "linalg.conv_1d_ncw_fcw",
    "linalg.conv_1d_nwc_wcf",
    "linalg.conv_2d",
    "linalg.conv_2d_nchw_fchw",
    "linalg.conv_2d_nchw_fchw_q",
    "linalg.conv_2d_ngchw_fgchw",
    "linalg.conv_2d_ngchw_gfchw",
    "linalg.conv_2d_ngchw_gfchw_q",
    "linalg.conv_2d_nhwc_fhwc",
    "linalg.conv_2d_nhwc_fhwc_q",
    "linalg.conv_2d_nhwc_hwcf",
    "linalg.conv_2d_nhwc_hwcf_q",
    "linalg.conv_2d_nhwgc_gfhwc",
    "linalg.conv_2d_nhwgc_gfhwc_q",
    "linalg.conv_3d",
    "linalg.conv_3d_ncdhw_fcdhw",
    "linalg.conv_3d_ndhwc_dhwcf",
    "linalg.conv_3d_ndhwc_dhwcf_q",
    "linalg.depthwise_conv_1d_ncw_cw",
    "linalg.depthwise_conv_1d_nwc_wc",
    "linalg.depthwise_conv_1d_nwc_wcm",
    "linalg.depthwise_conv_2d_nchw_chw",
    "linalg.depthwise_conv_2d_nhwc_hwc",
    "linalg.depthwise_conv_2d_nhwc_hwc_q",
    "linalg.depthwise_conv_2d_nhwc_hwcm",
    "linalg.depthwise_conv_2d_nhwc_hwcm_q",
    "linalg.depthwise_conv_3d_ncdhw_cdhw",
    "linalg.depthwise_conv_3d_ndhwc_dhwc",
    "linalg.depthwise_conv_3d_ndhwc_dhwcm",
]

POOLINGS = [
    "linalg.pooling_nchw_max",
    "linalg.pooling_nchw_sum",
    "linalg.pooling_ncw_max",
    "linalg.pooling_ncw_sum",
    "linalg.pooling_ndhwc_max",
    "linalg.pooling_ndhwc_min",
    "linalg.pooling_ndhwc_sum",
    "linalg.pooling_nhwc_max",
    "linalg.pooling_nhwc_max_unsigned",
    "linalg.pooling_nhwc_min",
    "linalg.pooling_nhwc_min_unsigned",
    "linalg.pooling_nhwc_sum",
    "linalg.pooling_nwc_max",
    "linalg.pooling_nwc_max_unsigned",
    "linalg.pooling_nwc_min",
    "linalg.pooling_nwc_min_unsigned",
    "linalg.pooling_nwc_sum",
]


def _numbers(letters: str, sizes: dict[str, int], dtype, seed: int) -> np.ndarray:
    shape = [sizes[letter] for letter in letters]
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(dtype)


def _type(value: np.ndarray) -> str:
    names = {"float64": "f64", "int8": "i8", "int32": "i32"}
    return "tensor<" + "".join(f"{size}x" for size in value.shape) + names[value.dtype.name] + ">"


def _space(letters: str) -> str:
    return "".join(letter for letter in letters if letter in "dhw")


def _reach(letters: str, plain: bool) -> dict[str, int]:
    """The sizes of the result: as many steps of the window as there are places for."""
    found = dict(SIZES)
    for letter in _space(letters):
        stride, dilation = (1, 1) if plain else (STRIDES[letter], DILATIONS[letter])
        found[letter] = (SIZES[letter] - (WINDOW[letter] - 1) * dilation - 1) // stride + 1
    return found


def _seen(image: np.ndarray, letters: str, point: dict[str, int], out: dict[str, int], plain: bool):
    """The elements of an image that one point of the window meets."""
    cut = []
    for letter in letters:
        if letter not in point:
            cut.append(slice(None))
            continue
        stride, dilation = (1, 1) if plain else (STRIDES[letter], DILATIONS[letter])
        begin = point[letter] * dilation
        cut.append(slice(begin, begin + (out[letter] - 1) * stride + 1, stride))
    return image[tuple(cut)]


def _points(space: str) -> list[dict[str, int]]:
    return [dict(zip(space, at, strict=True)) for at in np.ndindex(*(WINDOW[letter] for letter in space))]


def _text(op: str, operands: list[np.ndarray], scalars: int, space: str, plain: bool) -> str:
    *inputs, out = operands
    names = [f"%a{number}" for number in range(len(inputs) + scalars)]
    types = [*map(_type, inputs), *["i32"] * scalars]
    dense = [", ".join(str(of[letter]) for letter in space) for of in (STRIDES, DILATIONS)]
    rank = f"tensor<{len(space)}xi64>"
    attributes = f"{{strides = dense<[{dense[0]}]> : {rank}, dilations = dense<[{dense[1]}]> : {rank}}}"
    given = [*map(_type, inputs), *["tensor<i32>"] * scalars]
    arguments = ", ".join(f"%g{number}: {type_}" for number, type_ in enumerate(given))
    taken = "\n".join(
        f"{names[-k]} = tensor.extract %g{len(given) - k}[] : tensor<i32>" for k in range(scalars, 0, -1)
    )
    names[: len(inputs)] = [f"%g{number}" for number in range(len(inputs))]
    return f"""
util.func public @main({arguments}, %out: {_type(out)}) -> {_type(out)} {{
  {taken}
  %0 = {op} {"" if plain else attributes} ins({", ".join(names)} : {", ".join(types)})
    outs(%out : {_type(out)}) -> {_type(out)}
  util.return %0 : {_type(out)}
}}
"""


def _layouts(op: str) -> tuple[str, str, str]:
    """The letters of image, filter and result."""
    parts = [part for part in op.split(".")[1].split("_") if part not in ("depthwise", "conv", "q")]
    if len(parts) == 1:  # without a batch
        space = {"1d": "w", "2d": "hw", "3d": "dhw"}[parts[0]]
        return space, space, space
    _, image, filters = parts
    if "depthwise" in op:
        return image, filters, image + ("m" if "m" in filters else "")
    return image, filters, image.replace("c", "f")


@pytest.mark.parametrize("op", CONVOLUTIONS)
def test_convolution(evaluate, op: str) -> None:
    image_is, filter_is, out_is = _layouts(op)
    quantized, plain = op.endswith("_q"), "n" not in image_is
    dtype, out_dtype = (np.int8, np.int32) if quantized else (np.float64, np.float64)
    reach, space = _reach(image_is, plain), _space(image_is)
    image = _numbers(image_is, SIZES, dtype, 0)
    filters = _numbers(filter_is, SIZES | WINDOW, dtype, 1)
    out = _numbers(out_is, reach, out_dtype, 2)
    zeros = [np.array(3, np.int32), np.array(-5, np.int32)] if quantized else []
    wide = [
        value.astype(out_dtype) - zero for value, zero in zip((image, filters), zeros or (0, 0), strict=True)
    ]
    expected = out.copy()
    rest = "".join(letter for letter in filter_is if letter not in space)
    for point in _points(space):
        at = wide[1][tuple(point.get(letter, slice(None)) for letter in filter_is)]
        seen = _seen(wide[0], image_is, point, reach, plain)
        expected += np.einsum(f"{image_is},{rest}->{out_is}", seen, at)
    text = _text(op, [image, filters, out], len(zeros), space, plain)
    (made,) = evaluate(
        text, *map(torch.from_numpy, (image, filters)), *map(torch.tensor, zeros), torch.from_numpy(out)
    )
    np.testing.assert_array_equal(made.numpy(), expected)


@pytest.mark.parametrize("op", POOLINGS)
def test_pooling(evaluate, op: str) -> None:
    _, letters, kind, *unsigned = op.split(".")[1].split("_")
    dtype = np.int8 if unsigned else np.float64
    reach, space = _reach(letters, False), _space(letters)
    image, out = _numbers(letters, SIZES, dtype, 0), _numbers(letters, reach, dtype, 2)
    read = (lambda value: value.view(np.uint8)) if unsigned else (lambda value: value)
    join = {"max": np.maximum, "min": np.minimum, "sum": np.add}[kind]
    expected = read(out)
    for point in _points(space):
        expected = join(expected, read(_seen(image, letters, point, reach, False).copy()))
    window = np.zeros([WINDOW[letter] for letter in space], dtype)
    text = _text(op, [image, window, out], 0, space, False)
    (made,) = evaluate(text, *map(torch.from_numpy, (image, window, out)))
    np.testing.assert_array_equal(read(made.numpy()), expected)
