"""Layouts: worked out by hand for small shapes."""

from __future__ import annotations

import torch

from numtrace.attribute.layout import Layout, layouts


def test_row_major_comes_first_and_needs_equal_counts() -> None:
    assert next(layouts((1, 4, 2, 3), (24,), None)) == Layout(None, None)
    assert list(layouts((1, 4, 2, 3), (25,), None)) == []


def test_channels_last_is_a_permutation_of_the_wide_dimensions() -> None:
    found = [layout.permutation for layout in layouts((1, 4, 2, 3), (2, 3, 4), None)]
    assert (0, 2, 3, 1) in found
    # 4, 2, 3 merged or split in order: only rotations whose leading products are 2, 6, 24 fit.
    assert found == [None, (0, 2, 3, 1)]


def test_a_square_has_both_orders() -> None:
    found = [layout.permutation for layout in layouts((3, 3), (3, 3), None)]
    assert found == [None, (1, 0)]


def test_a_window_is_where_the_value_lies() -> None:
    value = torch.arange(6.0).reshape(2, 3)
    site = torch.zeros(4, 5)
    (layout, *_) = layouts((2, 3), (4, 5), ([1, 1], [2, 3]))
    layout.view(site).copy_(layout.place(value, site))
    assert site[1].tolist() == [0, 0, 1, 2, 0]
    assert site[2].tolist() == [0, 3, 4, 5, 0]
    assert site[0].sum() == site[3].sum() == 0


def test_placing_permutes_and_reshapes() -> None:
    value = torch.arange(6.0).reshape(1, 2, 3)
    layout = Layout((0, 2, 1), None)
    assert layout.place(value, torch.empty(6)).tolist() == [0, 3, 1, 4, 2, 5]


def test_a_transposition_that_is_split_is_a_guess() -> None:
    """32x384 in 2x12x16x32: 384x32 with 384 split would fit, and so do heads of 12x32 brought to the front."""
    assert {layout.permutation: layout.known for layout in layouts((32, 384), (2, 12, 16, 32), None)} == {
        None: False,
        (1, 0): False,
    }
    merged = {layout.permutation: layout.known for layout in layouts((1, 4, 2, 3), (6, 4), None)}
    assert merged == {None: False, (0, 2, 3, 1): True, (0, 3, 2, 1): True}
