# ruff: noqa: E501 (lines of MLIR)
"""Contractions as generic ops, against numpy.einsum and loops in float64."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from numtrace.evaluate.affine import Domain, Linear
from numtrace.evaluate.contraction import contract


def loop(*loops):
    return tuple(Linear(((d, 1),)) for d in loops)


def numbers(shape, seed=0):
    return torch.randn(
        shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1000 * seed + sum(shape))
    )


@pytest.fixture(params=[1 << 21, 5], ids=["whole", "stripes"])
def stripe(request, monkeypatch):
    monkeypatch.setattr("numtrace.evaluate.contraction.STRIPE", request.param)


def check(a_loops, b_loops, out_loops, sizes):
    a, b, out = (
        numbers([sizes[d] for d in loops], i) for i, loops in enumerate((a_loops, b_loops, out_loops))
    )
    before = [value.clone() for value in (a, b, out)]
    result = contract((a, loop(*a_loops)), (b, loop(*b_loops)), (out, loop(*out_loops)), Domain.whole(sizes))
    expected = np.einsum(a.numpy(), a_loops, b.numpy(), b_loops, out_loops) + out.numpy()
    np.testing.assert_allclose(result.numpy(), expected, rtol=0, atol=1e-12)
    assert all(torch.equal(x, y) for x, y in zip((a, b, out), before, strict=True))


@given(st.data())
@settings(max_examples=120, deadline=None)
def test_any_contraction(data):
    """Loops of A, of B or of both, kept or summed, in any order of dimensions."""
    kinds = data.draw(st.lists(st.sampled_from(["a", "b", "ab"]), min_size=1, max_size=6))
    sizes = [data.draw(st.integers(1, 4)) for _ in kinds]
    shuffled = lambda loops: data.draw(st.permutations(loops))  # noqa: E731
    a_loops = shuffled([d for d, kind in enumerate(kinds) if "a" in kind])
    b_loops = shuffled([d for d, kind in enumerate(kinds) if "b" in kind])
    out_loops = shuffled(data.draw(st.lists(st.sampled_from(range(len(kinds))), unique=True)))
    check(a_loops, b_loops, out_loops, sizes)


def test_stripes_do_not_change_the_result(stripe):
    check([0, 3, 1], [0, 2, 3], [2, 0, 1], [3, 7, 5, 11])


def test_of_an_operand_with_itself(stripe):
    """The sum of squares over a dimension."""
    value, out = numbers([3, 5]), torch.ones(3, dtype=torch.float64)
    forms = loop(0, 1)
    result = contract((value, forms), (value, forms), (out, loop(0)), Domain.whole([3, 5]))
    np.testing.assert_allclose(result.numpy(), (value.numpy() ** 2).sum(1) + 1, rtol=1e-14)


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (2, 0, 3, 1), (3, 2, 1, 0)])
def test_a_window_in_any_layout(stripe, order):
    """out[f, y] += image[c, 2y + 3k + 1] · filter[f, c, k], loops (f, y, c, k)."""
    image, filters = numbers([3, 13]), numbers([4, 3, 2])
    out = numbers([4, 5], 2).t().contiguous()
    inverse = {loop: order.index(loop) for loop in range(4)}
    f, y, c, k = (inverse[d] for d in range(4))
    sizes = [0] * 4
    sizes[f], sizes[y], sizes[c], sizes[k] = 4, 5, 3, 2
    window = Linear(tuple(sorted(((y, 2), (k, 3)))), 1)
    result = contract(
        (image, (*loop(c), window)), (filters, loop(f, c, k)), (out, loop(y, f)), Domain.whole(sizes)
    )
    expected = out.numpy().copy()
    for at in np.ndindex(4, 5, 3, 2):
        expected[at[1], at[0]] += (
            image[at[2], 2 * at[1] + 3 * at[3] + 1].item() * filters[at[0], at[2], at[3]].item()
        )
    np.testing.assert_allclose(result.numpy(), expected, rtol=0, atol=1e-12)


def test_a_window_longer_than_the_output(stripe):
    """out[y] += image[y + k] · filter[k] with more k than y: the walked loop is one of the output."""
    image, filters, out = numbers([9]), numbers([8]), torch.ones(2, dtype=torch.float64)
    result = contract(
        (image, (Linear(((0, 1), (1, 1))),)), (filters, loop(1)), (out, loop(0)), Domain.whole([2, 8])
    )
    expected = np.correlate(image.numpy(), filters.numpy(), "valid") + 1
    np.testing.assert_allclose(result.numpy(), expected, rtol=0, atol=1e-13)


def test_a_loop_of_neither_factor_is_left_to_the_general_reduction(evaluate):
    """out[i, j] += a[i, k] · b[k], summed also over the extent of a shape-only operand."""
    text = """
    util.func public @main(%a: tensor<2x3xf64>, %b: tensor<3xf64>, %n: tensor<4xf64>, %o: tensor<2x5xf64>) -> tensor<2x5xf64> {
      %r = linalg.generic {indexing_maps = [
          affine_map<(i, j, k, w) -> (i, k)>, affine_map<(i, j, k, w) -> (k)>, affine_map<(i, j, k, w) -> (w)>,
          affine_map<(i, j, k, w) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
          ins(%a, %b, %n : tensor<2x3xf64>, tensor<3xf64>, tensor<4xf64>) outs(%o : tensor<2x5xf64>) {
      ^bb0(%x: f64, %y: f64, %z: f64, %acc: f64):
        %0 = arith.mulf %x, %y : f64
        %1 = arith.addf %acc, %0 : f64
        linalg.yield %1 : f64
      } -> tensor<2x5xf64>
      util.return %r : tensor<2x5xf64>
    }
    """
    a, b, out = numbers([2, 3]), numbers([3]), numbers([2, 5])
    (result,) = evaluate(text, a, b, torch.zeros(4).double(), out)
    expected = 4 * (a.numpy() @ b.numpy())[:, None] + out.numpy()
    np.testing.assert_allclose(result.numpy(), expected, rtol=0, atol=1e-13)


def test_a_product_of_demoted_operands_is_exact(evaluate):
    """truncf to bf16 before a contraction: a cast between float types is the identity."""
    text = """
    util.func public @main(%a: tensor<2x3xf32>, %b: tensor<3x2xf32>, %o: tensor<2x2xf32>) -> tensor<2x2xf32> {
      %0 = arith.truncf %a : tensor<2x3xf32> to tensor<2x3xbf16>
      %1 = arith.truncf %b : tensor<3x2xf32> to tensor<3x2xbf16>
      %2 = linalg.matmul ins(%0, %1 : tensor<2x3xbf16>, tensor<3x2xbf16>) outs(%o : tensor<2x2xf32>) -> tensor<2x2xf32>
      util.return %2 : tensor<2x2xf32>
    }
    """
    a, b, out = numbers([2, 3]).float(), numbers([3, 2]).float(), numbers([2, 2]).float()
    expected = a.double().numpy() @ b.double().numpy() + out.double().numpy()
    np.testing.assert_allclose(evaluate(text, a, b, out)[0].numpy(), expected, rtol=1e-15, atol=1e-15)


def test_a_window_over_each_channel_alone(stripe):
    """[1, 2, 3] by [1, 2] and [10, 20, 30] by [3, 4], on 0.5."""
    image = torch.tensor([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]], dtype=torch.float64)
    filters = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64)
    channel, window = Linear(((0, 1),)), Linear(((1, 1), (2, 1)))
    out = torch.full((2, 2), 0.5, dtype=torch.float64)
    result = contract(
        (image, (channel, window)), (filters, loop(0, 2)), (out, loop(0, 1)), Domain.whole([2, 2, 2])
    )
    assert result.tolist() == [[5.5, 8.5], [110.5, 180.5]]
    assert out.tolist() == [[0.5, 0.5], [0.5, 0.5]]


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64])
@pytest.mark.parametrize("ends", [False, True])
def test_products_of_integers_wrap(dtype, ends):
    """The products of the largest numbers of i64 are more than float64 holds; the least number has no opposite."""
    info = np.iinfo(dtype)
    draw = np.random.default_rng(0)
    low, high = (info.min, info.max) if ends else (-100, 100)
    a, b = (draw.integers(low, high, shape, dtype=dtype, endpoint=True) for shape in ((3, 40), (40, 4)))
    a[0, 0] = info.min if ends else -100
    tensors = [torch.from_numpy(value.copy()) for value in (a, b)]
    out = torch.zeros(3, 4, dtype=tensors[0].dtype)
    made = contract(
        (tensors[0], loop(0, 2)), (tensors[1], loop(2, 1)), (out, loop(0, 1)), Domain.whole([3, 4, 40])
    )
    wanted = [[sum(int(x) * int(y) for x, y in zip(row, column, strict=True)) for column in b.T] for row in a]
    wrapped = np.array(
        [[(int(n) - info.min) % 2**info.bits + info.min for n in row] for row in wanted], dtype
    )
    np.testing.assert_array_equal(made.numpy(), wrapped)
