"""The rules that every comparison of tensors shares: shapes, types, views, masks, exact integers."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from numtrace.attribute import chunks
from numtrace.attribute.closeness import allclose
from numtrace.attribute.images import u8_steps
from numtrace.attribute.metrics import Nonfinite, difference, max_ulp

INF, NAN = math.inf, math.nan


def tensor(*values, dtype=torch.float64):
    return torch.tensor(values, dtype=dtype)


@pytest.mark.parametrize("metric", [difference, u8_steps])
def test_shapes_must_be_equal(metric):
    with pytest.raises(ValueError, match=r"shapes \(2, 3\) and \(3, 2\) differ"):
        metric(torch.zeros(2, 3), torch.zeros(3, 2))


def test_shapes_must_be_equal_even_if_they_broadcast_or_are_empty():
    for one, other in [((2, 3), (1, 3)), ((2, 3), (3,)), ((0, 3), (3, 0)), ((), (1,))]:
        with pytest.raises(ValueError, match="differ"):
            difference(torch.zeros(one), torch.zeros(other))
        with pytest.raises(ValueError, match="differ"):
            allclose(torch.zeros(one), torch.zeros(other), 0, 0)
        with pytest.raises(ValueError, match="differ"):
            max_ulp(torch.zeros(one), torch.zeros(other), "f32")


def test_complex_is_refused():
    with pytest.raises(ValueError, match="complex64"):
        difference(*torch.zeros(2, 2, dtype=torch.complex64))


def test_inputs_are_left_as_they_were():
    a, e = tensor(-1, 2, NAN), tensor(-3, -4, 1)
    before = a.clone(), e.clone()
    difference(a, e), allclose(a, e, 0, 1), max_ulp(a, e, "f64"), u8_steps(a, e)
    for have, want in zip((a, e), before, strict=True):
        assert torch.equal(have.nan_to_num(), want.nan_to_num())


def test_tensors_that_need_a_gradient():
    a = tensor(1, 2).requires_grad_()
    assert difference(a, tensor(1, 4)).max_abs == 2


def test_where_limits_everything_to_the_defined_elements():
    a = torch.tensor([[1.0, NAN, 3.0], [INF, 5.0, 6.0]])
    e = torch.tensor([[1.0, 2.0, 9.0], [4.0, 7.0, 6.5]])
    where = torch.tensor([[True, False, False], [True, True, True]])
    got = difference(a, e, where)
    assert (got.max_abs, got.at, got.finite, got.kinds) == (2, (1, 1), 3, Nonfinite(inf_actual=1))
    assert got.mean_abs == pytest.approx(2.5 / 3)
    assert max_ulp(a, e, "f32", where) == 2 * 2**21  # at (1, 1): ulp(7) = 2^-21
    close = allclose(a, e, 0.5, 0, where=where)
    assert (close.violations, close.fraction, close.worst) == (2, 0.5, (1, 0))
    nothing = torch.zeros(2, 3, dtype=torch.bool)
    assert difference(a, e, nothing).max_abs == 0.0
    assert allclose(a, e, 0, 0, where=nothing).ok
    with pytest.raises(ValueError, match=r"where is torch.bool of shape \(3,\)"):
        difference(a, e, nothing[0])


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr(chunks, "CHUNK", 7)


@pytest.mark.parametrize(
    "view",
    [
        lambda t: t,
        lambda t: t.transpose(0, 2),
        lambda t: t.permute(1, 2, 0)[:, ::2],
        lambda t: t[1:, :, 1:],
        lambda t: t[:, :1].expand(6, 9, 5),
        lambda t: t.reshape(-1)[::3],
        lambda t: t.unsqueeze(0).to(memory_format=torch.channels_last),
    ],
)
def test_views_and_many_chunks(small_chunks, view):
    torch.manual_seed(0)
    a, e = view(torch.randn(6, 9, 5, dtype=torch.float64)), view(torch.randn(6, 9, 5)).contiguous()
    x, y = a.numpy(), e.numpy().astype(np.float64)
    gap = np.abs(x - y)
    at = tuple(int(i) for i in np.unravel_index(gap.argmax(), gap.shape))
    got = difference(a, e)
    assert (got.max_abs, got.at, got.finite) == (gap.max(), at, x.size)
    assert got.mean_abs == pytest.approx(gap.mean(), rel=1e-14)
    assert got.rel_l2 == pytest.approx(np.linalg.norm(x - y) / np.linalg.norm(y), rel=1e-14)
    assert got.cosine == pytest.approx((x * y).sum() / np.linalg.norm(x) / np.linalg.norm(y), rel=1e-12)
    assert allclose(a, e, 0.1, 0).worst == at
    where = torch.rand(a.shape) < 0.5
    masked = np.where(where.numpy(), gap, -1)
    assert difference(a, e, where).at == np.unravel_index(masked.argmax(), gap.shape)
    a = a.clone()
    a[tuple(at)] = NAN
    gap[at] = -1
    assert difference(a, e).at == np.unravel_index(gap.argmax(), gap.shape)


@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1)), min_size=1))
@settings(max_examples=200, deadline=None)
def test_integers_are_subtracted_exactly(pairs):
    a, e = (tensor(*column, dtype=torch.int64) for column in zip(*pairs, strict=True))
    assert difference(a, e).max_abs == max(float(abs(x - y)) for x, y in pairs)


ANY = st.sampled_from([0.0, 1.0, -1.0, 2.0, 1.5, INF, -INF, NAN])


@given(st.lists(st.tuples(ANY, ANY, st.booleans()), min_size=1), st.sampled_from([0, 0.5, 1]), st.booleans())
@settings(max_examples=300, deadline=None)
def test_a_mask_is_as_good_as_a_selection(rows, tolerance, equal_nan):
    a, e, keep = zip(*rows, strict=True)
    a, e, where = tensor(*a), tensor(*e), tensor(*keep, dtype=torch.bool)
    number = where.nonzero().view(-1).tolist()

    def renumber(result, field):
        position = getattr(result, field)
        return dataclasses.replace(result, **{field: position and (number[position[0]],)})

    assert difference(a, e, where) == renumber(difference(a[where], e[where]), "at")
    assert max_ulp(a, e, "f32", where) == max_ulp(a[where], e[where], "f32")
    close = allclose(a, e, tolerance, tolerance, equal_nan=equal_nan, where=where)
    selected = allclose(a[where], e[where], tolerance, tolerance, equal_nan=equal_nan)
    assert close == renumber(selected, "worst")
    want = np.isclose(a[where], e[where], rtol=tolerance, atol=tolerance, equal_nan=equal_nan)
    assert close.violations == np.count_nonzero(~want)
