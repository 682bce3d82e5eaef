import numpy as np
import torch

from numtrace.evaluate.extremes import amax, amax_number, amin, amin_number, maximum, minimum
from numtrace.evaluate.tensors import defined, empty

NAN = torch.nan


def test_extremes_of_two_values():
    a, b = torch.tensor([1.0, NAN, 3.0]).double(), torch.tensor([2.0, 2.0, NAN]).double()
    np.testing.assert_array_equal(maximum(a, b).numpy(), [2.0, NAN, NAN])
    np.testing.assert_array_equal(minimum(a, b).numpy(), [1.0, NAN, NAN])
    assert maximum(torch.tensor([1, 5]), torch.tensor([3])).tolist() == [3, 5]


def test_extremes_over_dimensions():
    value = torch.tensor([[1.0, -2.0], [NAN, 5.0], [NAN, NAN]]).double()
    np.testing.assert_array_equal(amax(value, [1]).numpy(), [1.0, NAN, NAN])
    np.testing.assert_array_equal(amin(value, [1]).numpy(), [-2.0, NAN, NAN])
    np.testing.assert_array_equal(amax_number(value, [1]).numpy(), [1.0, 5.0, NAN])
    np.testing.assert_array_equal(amin_number(value, [1]).numpy(), [-2.0, 5.0, NAN])
    assert amin(torch.tensor([[3, 1]]), [1]).tolist() == [1]


def test_an_undefined_element_stays_known():
    mixed = torch.stack(
        [torch.ones(2, dtype=torch.float64), torch.cat([torch.ones(1).double(), empty([1], torch.float64)])]
    )
    assert defined(amax(mixed, [1])).tolist() == [True, False]
    assert defined(maximum(mixed[0], mixed[1])).tolist() == [True, False]
