"""Winograd against direct convolution, attention against its definition in numpy."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from numtrace.errors import UncoveredOp


def numbers(*shape, seed=0):
    return torch.randn(
        shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1000 * seed + sum(shape))
    )


WINOGRAD = """
util.func public @main(%image: tensor<{image}xf64>, %filter: tensor<{filter}xf64>) -> tensor<{padded}xf64> {{
  %zero = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<8x8x{n}x{th}x{tw}x{c}xf64>
  %d = iree_linalg_ext.winograd.input_transform output_tile_size(6) kernel_size(3) image_dimensions({dims})
    ins(%image : tensor<{image}xf64>) outs(%e : tensor<8x8x{n}x{th}x{tw}x{c}xf64>) -> tensor<8x8x{n}x{th}x{tw}x{c}xf64>
  %g = tensor.empty() : tensor<8x8x{c}x{f}xf64>
  %k = iree_linalg_ext.winograd.filter_transform output_tile_size(6) kernel_size(3) kernel_dimensions({kernel_dims})
    ins(%filter : tensor<{filter}xf64>) outs(%g : tensor<8x8x{c}x{f}xf64>) -> tensor<8x8x{c}x{f}xf64>
  %a = tensor.collapse_shape %d [[0, 1], [2, 3, 4], [5]] : tensor<8x8x{n}x{th}x{tw}x{c}xf64> into tensor<64x{t}x{c}xf64>
  %b = tensor.collapse_shape %k [[0, 1], [2], [3]] : tensor<8x8x{c}x{f}xf64> into tensor<64x{c}x{f}xf64>
  %m = tensor.empty() : tensor<64x{t}x{f}xf64>
  %z = linalg.fill ins(%zero : f64) outs(%m : tensor<64x{t}x{f}xf64>) -> tensor<64x{t}x{f}xf64>
  %p = linalg.batch_matmul ins(%a, %b : tensor<64x{t}x{c}xf64>, tensor<64x{c}x{f}xf64>)
    outs(%z : tensor<64x{t}x{f}xf64>) -> tensor<64x{t}x{f}xf64>
  %q = tensor.expand_shape %p [[0, 1], [2, 3, 4], [5]] output_shape [8, 8, {n}, {th}, {tw}, {f}]
    : tensor<64x{t}x{f}xf64> into tensor<8x8x{n}x{th}x{tw}x{f}xf64>
  %o = tensor.empty() : tensor<{padded}xf64>
  %r = iree_linalg_ext.winograd.output_transform output_tile_size(6) kernel_size(3) image_dimensions({dims})
    ins(%q : tensor<8x8x{n}x{th}x{tw}x{f}xf64>) outs(%o : tensor<{padded}xf64>) -> tensor<{padded}xf64>
  util.return %r : tensor<{padded}xf64>
}}
"""


def text_of(shape):
    return "x".join(map(str, shape))


@pytest.mark.parametrize("last", [True, False], ids=["nchw", "nhwc"])
@pytest.mark.parametrize("size", [(8, 8), (14, 20), (10, 17)])
def test_the_transforms_compose_to_a_convolution(evaluate, last, size):
    n, c, f = 2, 3, 4
    image, filters = numbers(n, c, *size), numbers(f, c, 3, 3)
    rows, columns = (extent - 2 for extent in size)
    th, tw = -(-rows // 6), -(-columns // 6)
    order = (0, 1, 2, 3) if last else (0, 2, 3, 1)
    operands = (
        image.permute(order).contiguous(),
        filters.permute((0, 1, 2, 3) if last else (2, 3, 1, 0)).contiguous(),
    )
    padded = [(n, f, th * 6, tw * 6)[i] for i in order]
    text = WINOGRAD.format(
        n=n, c=c, f=f, th=th, tw=tw, t=n * th * tw, image=text_of(operands[0].shape),
        filter=text_of(operands[1].shape), padded=text_of(padded),
        dims="[2, 3]" if last else "[1, 2]", kernel_dims="[2, 3]" if last else "[0, 1]",
    )  # fmt: skip
    (result,) = evaluate(text, *operands)
    assert list(result.shape) == padded
    back = result if last else result.permute(0, 3, 1, 2)
    expected = functional.conv2d(image, filters)
    np.testing.assert_allclose(back[:, :, :rows, :columns].numpy(), expected.numpy(), rtol=0, atol=1e-12)


def test_another_tile_size_is_uncovered(evaluate):
    text = """
    util.func public @main(%a: tensor<1x1x4x4xf32>) -> tensor<4x4x1x1x1x1xf32> {
      %e = tensor.empty() : tensor<4x4x1x1x1x1xf32>
      %0 = iree_linalg_ext.winograd.input_transform output_tile_size(2) kernel_size(3) image_dimensions([2, 3])
        ins(%a : tensor<1x1x4x4xf32>) outs(%e : tensor<4x4x1x1x1x1xf32>) -> tensor<4x4x1x1x1x1xf32>
      util.return %0 : tensor<4x4x1x1x1x1xf32>
    }
    """
    with pytest.raises(UncoveredOp, match=r"F\(2, 3\)"):
        evaluate(text, torch.zeros(1, 1, 4, 4))


def attention(loops, maps, types, mask=None):
    names = ["q", "k", "v", *(["m"] if mask else []), "o"]
    arguments = ", ".join(f"%{name}: {type_}" for name, type_ in zip(names, types, strict=True))
    results = [f"affine_map<{loops} -> {m}>" for m in (*maps[:3], "()", *maps[3:])]
    inputs = ["%q", "%k", "%v", "%s", *(["%m"] if mask else [])]
    kinds = [*types[:3], "f64", *types[3:-1]]
    out = types[-1]
    return f"""
    util.func public @main({arguments}) -> {out} {{
      %s = arith.constant 0.25 : f64
      %0 = iree_linalg_ext.attention <indexing_maps = [{", ".join(results)}]>
        ins({", ".join(inputs)} : {", ".join(kinds)}) outs(%o : {out}) {{
      ^bb0(%score: f64):
        iree_linalg_ext.yield %score : f64
      }} -> {out}
      util.return %0 : {out}
    }}
    """


def by_definition(scores, value):
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return (weights / weights.sum(-1, keepdims=True)) @ value


def test_attention_with_transposed_values(evaluate):
    q, k, v = numbers(5, 4), numbers(7, 4, seed=1), numbers(3, 7, seed=2)
    text = attention(
        "(m, n, c, k)", ["(m, c)", "(k, c)", "(n, k)", "(m, n)"],
        ["tensor<5x4xf64>", "tensor<7x4xf64>", "tensor<3x7xf64>", "tensor<5x3xf64>"],
    )  # fmt: skip
    (result,) = evaluate(text, q, k, v, torch.ones(5, 3).double())
    expected = by_definition(0.25 * q.numpy() @ k.numpy().T, v.numpy().T)
    np.testing.assert_allclose(result.numpy(), expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("cut", [False, True])
def test_attention_with_batches_and_an_additive_mask(evaluate, cut, request):
    if cut:
        request.getfixturevalue("small_stripes")
    q, k, v, mask = (
        numbers(2, 3, 5, 4),
        numbers(2, 3, 7, 4, seed=1),
        numbers(2, 3, 7, 6, seed=2),
        numbers(5, 7),
    )
    text = attention(
        "(b, h, m, n, c, k)", ["(b, h, m, c)", "(b, h, k, c)", "(b, h, k, n)", "(m, k)", "(b, h, m, n)"],
        ["tensor<2x3x5x4xf64>", "tensor<2x3x7x4xf64>", "tensor<2x3x7x6xf64>", "tensor<5x7xf64>", "tensor<2x3x5x6xf64>"],
        mask=True,
    )  # fmt: skip
    (result,) = evaluate(text, q, k, v, mask, torch.ones(2, 3, 5, 6).double())
    expected = by_definition(0.25 * q.numpy() @ k.numpy().swapaxes(-1, -2) + mask.numpy(), v.numpy())
    np.testing.assert_allclose(result.numpy(), expected, rtol=0, atol=1e-14)


def test_attention_with_a_boolean_mask(evaluate):
    q, k, v = numbers(5, 4), numbers(7, 4, seed=1), numbers(7, 3, seed=2)
    mask = torch.arange(7)[None, :] <= torch.arange(5)[:, None]
    text = attention(
        "(m, n, c, k)", ["(m, c)", "(k, c)", "(k, n)", "(m, k)", "(m, n)"],
        ["tensor<5x4xf64>", "tensor<7x4xf64>", "tensor<7x3xf64>", "tensor<5x7xi1>", "tensor<5x3xf64>"], mask=True,
    )  # fmt: skip
    (result,) = evaluate(text, q, k, v, mask, torch.ones(5, 3).double())
    scores = np.where(mask.numpy(), 0.25 * q.numpy() @ k.numpy().T, -np.inf)
    np.testing.assert_allclose(result.numpy(), by_definition(scores, v.numpy()), rtol=0, atol=1e-14)
