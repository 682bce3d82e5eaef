import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from iree.compiler import ir

from numtrace.errors import UncoveredOp
from numtrace.evaluate.affine import Domain, Linear, align, linear_map, loop_sizes, loop_view


def parse(text: str) -> tuple[Linear, ...]:
    with ir.Context():
        return linear_map(ir.AffineMapAttr(ir.Attribute.parse(f"affine_map<{text}>")).value)


def test_linear_forms():
    forms = parse("(d0, d1, d2) -> (d2, d0 * 2 + d1 * 3 + 4, d1 + d1, 7)")
    assert [form.coefficients for form in forms] == [((2, 1),), ((0, 2), (1, 3)), ((1, 2),), ()]
    assert [form.offset for form in forms] == [0, 4, 0, 7]
    assert [form.is_loop for form in forms] == [True, False, False, False]


@pytest.mark.parametrize("text", ["(d0) -> (d0 mod 2)", "(d0) -> (d0 floordiv 2)", "(d0)[s0] -> (d0 + s0)"])
def test_other_maps_are_uncovered(text):
    with pytest.raises(UncoveredOp, match="not linear"):
        parse(text)


def test_loop_sizes_come_from_dimensions_of_one_loop():
    maps = [
        parse("(d0, d1, d2) -> (d0 * 2 + d1)"),
        parse("(d0, d1, d2) -> (d1, d2)"),
        parse("(d0, d1, d2) -> (d0)"),
    ]
    assert loop_sizes(maps, [(9,), (3, 5), (4,)], 3) == [4, 3, 5]
    with pytest.raises(UncoveredOp, match="loop d1"):
        loop_sizes([maps[0], maps[2]], [(9,), (4,)], 3)


def test_a_map_that_leaves_its_operand_is_uncovered():
    forms = parse("(d0) -> (d0 * 2 + 1)")
    assert loop_view(torch.arange(6), forms, Domain.whole([3]))[0].tolist() == [1, 3, 5]
    with pytest.raises(UncoveredOp, match="reads elements 1 to 7 of a dimension of size 6"):
        loop_view(torch.arange(6), forms, Domain.whole([4]))


def test_a_map_that_walks_backwards_is_uncovered():
    with pytest.raises(UncoveredOp, match="backwards"):
        loop_view(torch.arange(3), parse("(d0) -> (d0 * -1 + 2)"), Domain.whole([3]))


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_a_view_holds_the_elements_of_the_map(data):
    """Against the definition, point by point: of a strided operand, in stripes and with fixed loops."""
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    loops = range(len(sizes))
    form = st.tuples(st.lists(st.integers(0, 2), min_size=len(sizes), max_size=len(sizes)), st.integers(0, 2))
    drawn = data.draw(st.lists(form, min_size=1, max_size=3))
    shape = [sum(f * (n - 1) for f, n in zip(factors, sizes, strict=True)) + at + 1 for factors, at in drawn]
    backing = torch.arange(2 * int(np.prod(shape)) + 3)
    value = backing[3:].reshape(*shape, 2).select(-1, 1)
    order = data.draw(st.permutations(range(len(shape))))
    value = value.permute(order)
    forms = tuple(Linear(tuple((d, f) for d, f in enumerate(drawn[i][0]) if f), drawn[i][1]) for i in order)
    fixed_loops = data.draw(st.lists(st.sampled_from(loops), unique=True))
    fixed = {loop: data.draw(st.integers(0, sizes[loop] - 1)) for loop in fixed_loops}
    free = [loop for loop in loops if loop not in fixed]
    domain = Domain.whole(sizes)
    if free and data.draw(st.booleans()):
        loop = data.draw(st.sampled_from(free))
        domain = data.draw(st.sampled_from(list(domain.stripes(loop, 2))))
    domain = domain.at(fixed)
    view = align(*loop_view(value, forms, domain), free)
    view = view.expand([domain.sizes[loop] for loop in free])
    for point in itertools.product(*(range(domain.sizes[loop]) for loop in free)):
        at = {
            loop: index + domain.start.get(loop, 0) for loop, index in zip(free, point, strict=True)
        } | fixed
        index = [sum(f * at[d] for d, f in form.coefficients) + form.offset for form in forms]
        assert view[point] == value[tuple(index)]


@given(st.lists(st.integers(1, 9), min_size=1, max_size=4), st.integers(1, 60), st.data())
@settings(max_examples=100, deadline=None)
def test_stripes_cover_every_point_once_within_the_budget(sizes, budget, data):
    loops = sorted(data.draw(st.sets(st.sampled_from(range(len(sizes))))))
    seen = np.zeros(sizes, dtype=int)
    uncut = int(np.prod([size for loop, size in enumerate(sizes) if loop not in loops]))
    for stripe in Domain.whole(sizes).cut(loops, budget):
        assert np.prod(stripe.sizes) <= max(budget, uncut)
        starts = [stripe.start.get(loop, 0) for loop in range(len(sizes))]
        seen[tuple(slice(a, a + n) for a, n in zip(starts, stripe.sizes, strict=True))] += 1
    assert (seen == 1).all()
