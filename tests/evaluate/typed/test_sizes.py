"""|A|·|B| for less work: never too small, and not taken where it would be far too large."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from numtrace.evaluate.affine import Domain, Linear
from numtrace.evaluate.typed.sizes import sizes

ROWS, COLUMNS, TERMS = 120, 100, 256
LEFT, RIGHT, OUT = (tuple(Linear(((loop, 1),)) for loop in loops) for loops in ((0, 2), (2, 1), (0, 1)))


def both(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, bool]:
    """The cheap sizes, the sharp ones by a plain product in float64, and whether the cheap ones are sharp."""
    start = torch.zeros(ROWS, COLUMNS)
    made, sharp = sizes(
        (a, LEFT), (b, RIGHT), (start, OUT), Domain.whole([ROWS, COLUMNS, TERMS]), sharp=False
    )
    return made.double(), a.double().abs() @ b.double().abs(), sharp


@pytest.fixture
def normal() -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    return torch.randn(ROWS, TERMS), torch.randn(TERMS, COLUMNS)


def channels() -> Tensor:
    """Some a thousand times larger than the others."""
    scale = torch.ones(TERMS)
    scale[::37] = 1000.0
    return scale


def test_of_even_data_it_is_little_wider(normal: tuple[Tensor, Tensor]) -> None:
    a, b = normal
    for left, right in (
        (a, b),
        (a * channels(), b / channels()[:, None]),
        (a * 1e25, b * 1e-25),
        (a.relu(), b),
    ):
        made, least, sharp = both(left, right)
        assert not sharp
        assert bool((made >= least * (1 - 1e-5)).all())
        assert float((made / least).max()) < 4


def test_of_uneven_data_it_is_sharp(normal: tuple[Tensor, Tensor]) -> None:
    a, b = normal
    one_hot = torch.nn.functional.one_hot(torch.arange(ROWS) % TERMS, TERMS).float()
    one_row = a.clone()
    one_row[5] = one_hot[5]
    tiny = torch.full_like(a, 1e-25)
    tiny[:, 7] = 1.0
    for left in (one_hot, one_row, tiny, a * torch.exp(3 * torch.randn(ROWS, TERMS))):
        made, least, sharp = both(left, b)
        assert sharp
        torch.testing.assert_close(made, least, rtol=1e-5, atol=0)


def test_of_nothing_it_is_nothing(normal: tuple[Tensor, Tensor]) -> None:
    made, _, _ = both(torch.zeros(ROWS, TERMS), normal[1])
    assert not made.any()
