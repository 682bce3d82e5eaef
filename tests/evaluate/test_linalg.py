"""Named ops against torch's or numpy's in float64; every output has non-zero initial contents."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

PROGRAM = """
util.func public @main(%a: {a}, %b: {b}, %c: {c}) -> {c} {{
  %0 = {op} {attributes} ins(%a, %b : {a}, {b}) outs(%c : {c}) -> {c}
  util.return %0 : {c}
}}
"""


def tensor_type(value):
    names = {torch.float64: "f64", torch.float32: "f32", torch.int8: "i8", torch.int32: "i32"}
    return "tensor<" + "".join(f"{size}x" for size in value.shape) + names[value.dtype] + ">"


def run(evaluate, op, a, b, c, attributes=""):
    types = {name: tensor_type(value) for name, value in (("a", a), ("b", b), ("c", c))}
    return evaluate(PROGRAM.format(op=op, attributes=attributes, **types), a, b, c)[0]


def numbers(*shape, seed=0):
    generator = torch.Generator().manual_seed(1000 * seed + sum(shape))
    return torch.randn(shape, dtype=torch.float64, generator=generator)


def assert_near(actual, expected, tolerance=1e-12):
    assert tuple(actual.shape) == tuple(expected.shape)
    np.testing.assert_allclose(actual.numpy(), np.asarray(expected), rtol=0, atol=tolerance)


def convolution_attributes(stride, dilation):
    return (
        f"{{strides = dense<[{stride[0]}, {stride[1]}]> : tensor<2xi64>, "
        f"dilations = dense<[{dilation[0]}, {dilation[1]}]> : tensor<2xi64>}}"
    )


#: Layouts: image, filter and output from torch's NCHW, FCHW, NFHW.
LAYOUTS = {
    "linalg.conv_2d_nchw_fchw": ((0, 1, 2, 3), (0, 1, 2, 3), (0, 1, 2, 3)),
    "linalg.conv_2d_nhwc_hwcf": ((0, 2, 3, 1), (2, 3, 1, 0), (0, 2, 3, 1)),
    "linalg.conv_2d_nhwc_fhwc": ((0, 2, 3, 1), (0, 2, 3, 1), (0, 2, 3, 1)),
}


@pytest.mark.parametrize("op", LAYOUTS)
@pytest.mark.parametrize(
    ("stride", "dilation"), [((1, 1), (1, 1)), ((2, 1), (1, 1)), ((1, 1), (2, 3)), ((2, 3), (2, 1))]
)
def test_convolutions_add_to_their_output(evaluate, op, stride, dilation):
    image, filters = numbers(2, 3, 9, 10), numbers(4, 3, 2, 3)
    expected = functional.conv2d(image, filters, stride=stride, dilation=dilation)
    bias = numbers(*expected.shape, seed=1)
    layouts = LAYOUTS[op]
    operands = [v.permute(p).contiguous() for v, p in zip((image, filters, bias), layouts, strict=True)]
    result = run(evaluate, op, *operands, convolution_attributes(stride, dilation))
    assert_near(result, (expected + bias).permute(layouts[2]))


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_convolutions_of_any_shape(evaluate, data):
    draw = lambda low, high: data.draw(st.integers(low, high))  # noqa: E731
    op = data.draw(st.sampled_from(list(LAYOUTS)))
    stride, dilation = (draw(1, 3), draw(1, 3)), (draw(1, 2), draw(1, 2))
    n, c, f, kh, kw = draw(1, 2), draw(1, 4), draw(1, 4), draw(1, 4), draw(1, 4)
    height, width = ((k - 1) * d + 1 + draw(0, 7) for k, d in ((kh, dilation[0]), (kw, dilation[1])))
    image, filters = numbers(n, c, height, width), numbers(f, c, kh, kw)
    expected = functional.conv2d(image, filters, stride=stride, dilation=dilation)
    bias = numbers(*expected.shape, seed=1)
    layouts = LAYOUTS[op]
    operands = [v.permute(p).contiguous() for v, p in zip((image, filters, bias), layouts, strict=True)]
    result = run(evaluate, op, *operands, convolution_attributes(stride, dilation))
    assert_near(result, (expected + bias).permute(layouts[2]))


@pytest.mark.parametrize("op", ["linalg.conv_2d_ngchw_fgchw", "linalg.conv_2d_ngchw_gfchw"])
def test_grouped_convolutions(evaluate, op):
    groups, per_group = 3, 2
    image, filters = numbers(2, groups * 4, 6, 7), numbers(groups * per_group, 4, 3, 3)
    expected = functional.conv2d(image, filters, groups=groups).reshape(2, groups, per_group, 4, 5)
    bias = numbers(*expected.shape, seed=1)
    kernel = filters.reshape(groups, per_group, 4, 3, 3)
    if op.endswith("fgchw"):
        kernel = kernel.transpose(0, 1)
    result = run(
        evaluate, op, image.reshape(2, groups, 4, 6, 7), kernel.contiguous(), bias,
        convolution_attributes((1, 1), (1, 1)),
    )  # fmt: skip
    assert_near(result, expected + bias)


def test_depthwise_convolutions(evaluate):
    image, filters = numbers(2, 3, 6, 7), numbers(3, 1, 2, 3)
    expected = functional.conv2d(image, filters, groups=3, stride=(1, 2))
    bias = numbers(*expected.shape, seed=1)
    attributes = convolution_attributes((1, 2), (1, 1))
    result = run(
        evaluate, "linalg.depthwise_conv_2d_nchw_chw", image, filters[:, 0].contiguous(), bias, attributes
    )
    assert_near(result, expected + bias)
    last = (0, 2, 3, 1)
    result = run(
        evaluate, "linalg.depthwise_conv_2d_nhwc_hwc", image.permute(last).contiguous(),
        filters[:, 0].permute(1, 2, 0).contiguous(), bias.permute(last).contiguous(), attributes,
    )  # fmt: skip
    assert_near(result, (expected + bias).permute(last))


def test_a_convolution_of_three_dimensions(evaluate):
    image, filters = numbers(1, 2, 4, 5, 6), numbers(3, 2, 2, 3, 2)
    expected = functional.conv3d(image, filters)
    bias = numbers(*expected.shape, seed=1)
    assert_near(run(evaluate, "linalg.conv_3d_ncdhw_fcdhw", image, filters, bias), expected + bias)


@pytest.mark.parametrize(
    ("maps", "equation", "shapes"),
    [
        ("", "mk,kn->mn", [(3, 5), (5, 4)]),
        ("(d2, d0) (d2, d1)", "km,kn->mn", [(5, 3), (5, 4)]),
        ("(d0, d2) (d1, d2)", "mk,nk->mn", [(3, 5), (4, 5)]),
    ],
)
def test_matmul_reads_its_own_maps(evaluate, maps, equation, shapes):
    a, b, c = numbers(*shapes[0]), numbers(*shapes[1]), numbers(3, 4, seed=2)
    loops = "(d0, d1, d2)"
    own = [f"affine_map<{loops} -> {m})>" for m in maps.split(")") if m.strip()]
    attributes = f"indexing_maps = [{', '.join([*own, f'affine_map<{loops} -> (d0, d1)>'])}]" if own else ""
    result = run(evaluate, "linalg.matmul", a, b, c, attributes)
    assert_near(result, np.einsum(equation, a.numpy(), b.numpy()) + c.numpy())


def test_batch_matmul_of_transposed_operands(evaluate):
    a, b, c = numbers(2, 5, 3), numbers(2, 4, 5), numbers(2, 3, 4, seed=2)
    loops = "(d0, d1, d2, d3)"
    attributes = (
        f"indexing_maps = [affine_map<{loops} -> (d0, d3, d1)>, affine_map<{loops} -> (d0, d2, d3)>, "
        f"affine_map<{loops} -> (d0, d1, d2)>]"
    )
    result = run(evaluate, "linalg.batch_matmul", a, b, c, attributes)
    assert_near(result, np.einsum("bkm,bnk->bmn", a.numpy(), b.numpy()) + c.numpy())


@pytest.mark.parametrize(
    ("op", "equation", "shapes"),
    [
        ("linalg.matvec", "mn,n->m", [(3, 4), (4,), (3,)]),
        ("linalg.vecmat", "m,mn->n", [(3,), (3, 4), (4,)]),
        ("linalg.dot", "m,m->", [(7,), (7,), ()]),
        ("linalg.batch_matvec", "bmk,bk->bm", [(2, 3, 4), (2, 4), (2, 3)]),
        ("linalg.mmt4d", "mkab,nkcb->mnac", [(2, 3, 4, 5), (6, 3, 7, 5), (2, 6, 4, 7)]),
        ("linalg.batch_reduce_matmul", "bmk,bkn->mn", [(2, 3, 4), (2, 4, 5), (3, 5)]),
    ],
)
def test_other_products(evaluate, op, equation, shapes):
    a, b, c = (numbers(*shape, seed=i) for i, shape in enumerate(shapes))
    result = run(evaluate, op, a, b, c)
    assert_near(result, np.einsum(equation, a.numpy(), b.numpy()) + c.numpy())


def test_integer_products_accumulate_in_the_outputs_type(evaluate):
    a = torch.tensor([[100, -100]], dtype=torch.int8)
    b = torch.tensor([[100], [100]], dtype=torch.int8)
    result = run(evaluate, "linalg.matmul", a, b, torch.tensor([[7]], dtype=torch.int32))
    assert (result.dtype, result.tolist()) == (torch.int32, [[7]])
    b[1] = -100
    assert run(evaluate, "linalg.matmul", a, b, torch.tensor([[7]], dtype=torch.int32)).tolist() == [[20007]]
    # In i8 the sum wraps: 20007 = 78·256 + 39
    assert run(evaluate, "linalg.matmul", a, b, torch.tensor([[7]], dtype=torch.int8)).tolist() == [[39]]


@pytest.mark.parametrize(
    ("op", "reduce"),
    [("sum", lambda windows: windows.sum((-1, -2))), ("max", lambda windows: windows.amax((-1, -2)))],
)
@pytest.mark.parametrize("last", [True, False])
def test_pooling(evaluate, op, reduce, last):
    image, window = numbers(2, 3, 7, 8), torch.empty(3, 2, dtype=torch.float64)
    expected = reduce(image.unfold(2, 3, 2).unfold(3, 2, 3))
    start = numbers(*expected.shape, seed=1)
    expected = expected + start if op == "sum" else torch.maximum(expected, start)
    order = (0, 1, 2, 3) if last else (0, 2, 3, 1)
    name = f"linalg.pooling_{'nchw' if last else 'nhwc'}_{op}"
    attributes = convolution_attributes((2, 3), (1, 1))
    operands = image.permute(order).contiguous(), window, start.permute(order).contiguous()
    assert_near(run(evaluate, name, *operands, attributes), expected.permute(order))


def test_data_movement(evaluate):
    text = """
    util.func public @main(%a: tensor<2x3xf32>, %s: f32) -> (tensor<3x2xf32>, tensor<2x4x3xf32>, tensor<2x3xf32>) {
      %e = tensor.empty() : tensor<3x2xf32>
      %f = tensor.empty() : tensor<2x4x3xf32>
      %g = tensor.empty() : tensor<2x3xf32>
      %0 = linalg.transpose ins(%a : tensor<2x3xf32>) outs(%e : tensor<3x2xf32>) permutation = [1, 0]
      %1 = linalg.broadcast ins(%a : tensor<2x3xf32>) outs(%f : tensor<2x4x3xf32>) dimensions = [1]
      %2 = linalg.fill ins(%s : f32) outs(%g : tensor<2x3xf32>) -> tensor<2x3xf32>
      util.return %0, %1, %2 : tensor<3x2xf32>, tensor<2x4x3xf32>, tensor<2x3xf32>
    }
    """
    a = torch.arange(6.0).reshape(2, 3)
    transposed, broadcast, filled = evaluate(text, a, torch.tensor(0.5))
    assert transposed.tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
    assert broadcast.tolist() == [[[0.0, 1.0, 2.0]] * 4, [[3.0, 4.0, 5.0]] * 4]
    assert filled.tolist() == [[0.5] * 3] * 2


def test_map_elementwise_and_reduce(evaluate):
    text = """
    util.func public @main(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>, %c: tensor<2xf32>)
        -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2xf32>) {
      %e = tensor.empty() : tensor<2x3xf32>
      %0 = linalg.map { arith.mulf } ins(%a, %b : tensor<2x3xf32>, tensor<2x3xf32>) outs(%e : tensor<2x3xf32>)
      %1 = linalg.elementwise <negf> ins(%a : tensor<2x3xf32>) outs(%e : tensor<2x3xf32>) -> tensor<2x3xf32>
      %2 = linalg.reduce { arith.addf } ins(%a : tensor<2x3xf32>) outs(%c : tensor<2xf32>) dimensions = [1]
      util.return %0, %1, %2 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2xf32>
    }
    """
    a, b = torch.arange(6.0).reshape(2, 3), torch.full((2, 3), 3.0)
    product, negated, total = evaluate(text, a, b, torch.tensor([100.0, 200.0]))
    assert product.tolist() == (a * 3).tolist()
    assert negated.tolist() == (-a).tolist()
    assert total.tolist() == [103.0, 212.0]


def test_softmax(evaluate):
    text = """
    util.func public @main(%a: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
      %e = tensor.empty() : tensor<2x3x4xf32>
      %0 = linalg.softmax dimension(1) ins(%a : tensor<2x3x4xf32>) outs(%e : tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
      util.return %0 : tensor<2x3x4xf32>
    }
    """
    a = numbers(2, 3, 4).float() * 100
    exact = a.numpy().astype(np.longdouble)
    weights = np.exp(exact - exact.max(axis=1, keepdims=True))
    assert_near(
        evaluate(text, a)[0], (weights / weights.sum(axis=1, keepdims=True)).astype(np.float64), 1e-15
    )


@pytest.mark.parametrize(("kind", "start", "expected"), [("max", 0, [255, 255, 200]), ("min", -1, [3, 7, 7])])
def test_unsigned_pooling_compares_bytes(evaluate, kind, start, expected):
    """Windows of two of the bytes 3, 255, 7 and 200, which as i8 are 3, -1, 7 and -56."""
    text = f"""
    util.func public @main(%a: tensor<1x4x1xi8>, %c: tensor<1x3x1xi8>) -> tensor<1x3x1xi8> {{
      %w = tensor.empty() : tensor<2xi8>
      %0 = linalg.pooling_nwc_{kind}_unsigned
          {{dilations = dense<1> : tensor<1xi64>, strides = dense<1> : tensor<1xi64>}}
          ins(%a, %w : tensor<1x4x1xi8>, tensor<2xi8>) outs(%c : tensor<1x3x1xi8>) -> tensor<1x3x1xi8>
      util.return %0 : tensor<1x3x1xi8>
    }}
    """
    a = torch.tensor([3, -1, 7, -56], dtype=torch.int8).reshape(1, 4, 1)
    (result,) = evaluate(text, a, torch.full((1, 3, 1), start, dtype=torch.int8))
    assert (result.flatten().int() % 256).tolist() == expected


def test_tiled_products(evaluate):
    """mmt4d: tiles of A and of the transpose of B."""
    a, b, c = numbers(2, 2, 3, 4, 5), numbers(2, 3, 3, 2, 5), numbers(2, 2, 3, 4, 2, seed=1)
    expected = np.einsum("bmkij,bnklj->bmnil", a, b) + c.numpy()
    assert_near(run(evaluate, "linalg.batch_mmt4d", a, b, c), expected)
    expected = np.einsum("mkij,nklj->mnil", a[0], b[0]) + c[0].numpy()
    assert_near(run(evaluate, "linalg.mmt4d", a[0], b[0], c[0]), expected)


def test_a_vector_times_each_matrix(evaluate):
    a, b, c = numbers(2, 3), numbers(2, 3, 4), numbers(2, 4, seed=1)
    assert_near(run(evaluate, "linalg.batch_vecmat", a, b, c), np.einsum("bk,bkn->bn", a, b) + c.numpy())


def test_a_contraction_by_its_maps(evaluate):
    a, b, c = numbers(2, 3), numbers(4, 3), numbers(4, 2, seed=1)
    maps = ", ".join(f"affine_map<(m, n, k) -> ({dims})>" for dims in ("m, k", "n, k", "n, m"))
    text = PROGRAM.replace("{op} {attributes}", f"linalg.contract indexing_maps = [{maps}]")
    (result,) = evaluate(text.format(a=tensor_type(a), b=tensor_type(b), c=tensor_type(c)), a, b, c)
    assert_near(result, np.einsum("mk,nk->nm", a, b) + c.numpy())


@pytest.mark.parametrize(
    ("op", "indices", "batch"),
    [
        ("linalg.quantized_matmul", "mk,kn->mn", ()),
        ("linalg.quantized_batch_matmul", "bmk,bkn->bmn", (2,)),
    ],
)
def test_quantized_products(evaluate, op, indices, batch):
    """Each operand less its zero point."""
    draw = np.random.default_rng(0)
    a, b = (draw.integers(-128, 128, (*batch, *shape)).astype(np.int8) for shape in ((2, 3), (3, 4)))
    c = draw.integers(-1000, 1000, (*batch, 2, 4)).astype(np.int32)
    types = [tensor_type(torch.from_numpy(value)) for value in (a, b, c)]
    text = f"""
    util.func public @main(%a: {types[0]}, %b: {types[1]}, %za: i32, %zb: i32, %c: {types[2]}) -> {types[2]} {{
      %0 = {op} ins(%a, %b, %za, %zb : {types[0]}, {types[1]}, i32, i32) outs(%c : {types[2]}) -> {types[2]}
      util.return %0 : {types[2]}
    }}
    """
    zeros = [torch.tensor(zero, dtype=torch.int32) for zero in (7, -128)]
    (result,) = evaluate(text, torch.from_numpy(a), torch.from_numpy(b), *zeros, torch.from_numpy(c))
    expected = np.einsum(indices, a.astype(np.int64) - 7, b.astype(np.int64) + 128) + c
    np.testing.assert_array_equal(result.numpy(), expected)


def test_copy(evaluate):
    text = """
    util.func public @main(%a: tensor<3xf32>, %b: tensor<3xf32>) -> tensor<3xf32> {
      %0 = linalg.copy ins(%a : tensor<3xf32>) outs(%b : tensor<3xf32>) -> tensor<3xf32>
      util.return %0 : tensor<3xf32>
    }
    """
    (result,) = evaluate(text, torch.tensor([1.0, 2.0, 3.0]), torch.zeros(3))
    assert result.tolist() == [1.0, 2.0, 3.0]
