import pytest
import torch

from numtrace.errors import UncoveredOp
from numtrace.evaluate.types import exact_dtype, static_shape, tensor_type, widen


@pytest.mark.parametrize(
    ("text", "shape", "element"),
    [
        ("tensor<f32>", (), "f32"),
        ("tensor<2x?x3xbf16>", (2, None, 3), "bf16"),
        ("!iree_tensor_ext.dispatch.tensor<readonly:tensor<4x5xf8E4M3FN>>", (4, 5), "f8E4M3FN"),
        ("tensor<0x2xi1>", (0, 2), "i1"),
        ("index", (), "index"),
    ],
)
def test_shape_and_element_of_a_type(text, shape, element):
    assert tensor_type(text) == (shape, element)


@pytest.mark.parametrize("element", ["f64", "f32", "f16", "bf16", "f8E5M2"])
def test_every_float_is_exact_in_float64(element):
    assert exact_dtype(element) == torch.float64


def test_integers_keep_their_type():
    assert (exact_dtype("i8"), exact_dtype("index"), exact_dtype("i1")) == (
        torch.int8,
        torch.int64,
        torch.bool,
    )


def test_an_element_type_that_torch_lacks_is_uncovered():
    with pytest.raises(UncoveredOp, match="i4"):
        exact_dtype("i4")


def test_a_dynamic_shape_is_uncovered():
    with pytest.raises(UncoveredOp, match="dynamic"):
        static_shape("tensor<2x?xf32>")


def test_widening_is_exact_and_leaves_float64_and_integers_alone():
    bf16 = torch.tensor([1.5, -0.0078125], dtype=torch.bfloat16)
    assert widen(bf16).tolist() == [1.5, -0.0078125]
    for value in (torch.ones(2, dtype=torch.float64), torch.ones(2, dtype=torch.int8)):
        assert widen(value) is value
