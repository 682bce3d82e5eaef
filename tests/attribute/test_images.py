"""What looks like a picture, and 8-bit levels counted by hand."""

import math

import pytest
import torch

from numtrace.attribute.images import is_image, u8_steps

INF, NAN = math.inf, math.nan


def tensor(*values, dtype=torch.float64):
    return torch.tensor(values, dtype=dtype)


@pytest.mark.parametrize(
    ("actual", "expected", "want"),
    [
        (0.5, 0.5, 0),
        (0.0, 1.0, 255),
        (-3.0, 2.0, 255),  # clipped
        (1.25, 1.0, 0),
        (INF, 1.0, 0),
        (-INF, 0.0, 0),
        (100.4 / 255, 100.0 / 255, 0),
        (100.6 / 255, 100.0 / 255, 1),
        (100.6 / 255, 100.4 / 255, 1),
        (0.5, 128.4 / 255, 0),  # 127.5 rounds to the even 128
        (NAN, 0.5, None),
        (NAN, NAN, None),
    ],
)
def test_u8_steps(actual, expected, want):
    assert u8_steps(tensor(0.25, actual), tensor(0.25, expected)) == want


def test_u8_steps_of_nothing_and_of_bf16():
    assert u8_steps(torch.empty(0), torch.empty(0)) == 0
    assert u8_steps(torch.tensor([0.501], dtype=torch.bfloat16), torch.tensor([0.4])) == 26  # 128 − 102


def test_is_image():
    torch.manual_seed(0)
    for shape in [(1, 8, 8), (3, 8, 9), (4, 2, 2), (2, 3, 8, 8), (8, 8, 3), (1, 8, 8, 1), (1, 8, 8, 4)]:
        assert is_image(torch.rand(shape)), shape
        assert is_image(torch.rand(shape).to(torch.bfloat16)), shape
    for shape in [(8, 8), (1, 3, 8, 8, 8), (5, 8, 8), (2, 8, 8), (3, 1, 8), (1, 5, 8, 8), (0, 3, 8, 8)]:
        assert not is_image(torch.rand(shape)), shape
    picture = torch.rand(3, 8, 8)
    for value in (1.001, -0.001, NAN, INF):
        broken = picture.clone()
        broken[1, 2, 3] = value
        assert not is_image(broken), value
    edge = torch.zeros(3, 8, 8)
    edge[0, 0, 0] = 1
    assert is_image(edge)
    assert not is_image(torch.full((3, 8, 8), 0.5))
    assert not is_image(torch.randint(0, 2, (3, 8, 8)))
