"""Distances from the typed meaning in units of the bound, worked out by hand."""

from __future__ import annotations

import pytest
import torch

from numtrace.attribute.codegen import Distance, distance, judged, record_of
from numtrace.evaluate.typed.value import Typed

INF, NAN = float("inf"), float("nan")


def value(typed: list[float], bound: list[float] | None) -> Typed:
    tensor = torch.tensor(typed, dtype=torch.float32)
    return Typed(tensor.double(), tensor, None if bound is None else torch.tensor(bound), False)


def compiled(*numbers: float) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.float32)


def test_the_greatest_part_of_a_bound_and_how_many_are_beyond() -> None:
    # |1.5 - 1| / 1 = 0.5, |2 - 4| / 0.5 = 4, 0 / 0 is no distance
    found = distance(compiled(1.5, 2.0, 7.0), value([1.0, 4.0, 7.0], [1.0, 0.5, 0.0]), "f32")
    assert found.ratio == pytest.approx(4.0, rel=1e-5)
    assert (found.over, found.at, found.free) == (1, 1, 0)


def test_without_a_bound_any_difference_is_beyond() -> None:
    assert distance(compiled(1.0, 2.0), value([1.0, 2.0], None), "f32").ratio == 0
    assert distance(compiled(1.0, 2.5), value([1.0, 2.0], None), "f32").ratio == INF


def test_nan_is_like_nan_and_infinity_like_itself() -> None:
    assert distance(compiled(NAN, INF, -INF), value([NAN, INF, -INF], [1.0, 1.0, 1.0]), "f32").ratio == 0
    for made, meant in ((1.0, NAN), (NAN, 1.0), (INF, -INF), (INF, 1.0)):
        assert distance(compiled(made), value([meant], [1e3]), "f32").ratio == INF


def test_an_overflow_in_doubt_is_none() -> None:
    largest = 65504.0
    assert distance(compiled(INF), value([largest], [100.0]), "f16").ratio == 0
    # A number within reach of the largest one is a number still, and has its bound.
    assert distance(compiled(60000.0), value([largest], [100.0]), "f16").ratio > 1


def test_an_element_without_limit_is_counted_as_free() -> None:
    found = distance(compiled(5.0, 1.0), value([1.0, 1.0], [INF, 1.0]), "f32")
    assert (found.ratio, found.free) == (0.0, 1)


def test_undefined_elements_are_not_looked_at() -> None:
    mask = torch.tensor([True, False])
    assert distance(compiled(1.0, 9.0), value([1.0, 2.0], [0.1, 0.1]), "f32", mask).ratio == 0


def test_nothing_is_proven_without_a_deterministic_bound() -> None:
    over = Distance(ratio=3.0, over=1, at=0)
    assert judged(Distance(ratio=1.0), None) == "within"
    assert judged(over, None) == "suspect"
    assert judged(over, Distance(ratio=0.9)) == "suspect"
    assert judged(over, Distance(ratio=1.1)) == "proven"


def test_a_site_of_which_the_bound_says_nothing_is_unbounded() -> None:
    assert record_of(Distance(free=4), None, (2, 2))["code"] == "unbounded"
    assert record_of(Distance(free=3), None, (2, 2))["code"] == "within"
    record = record_of(Distance(ratio=INF, over=1, at=3), Distance(ratio=2.0), (2, 2))
    assert record == {
        "bound_ratio": None, "code": "proven", "over_bound": 1, "over_at": [1, 1], "proven_ratio": 2.0,
    }  # fmt: skip
