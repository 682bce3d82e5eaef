# ruff: noqa: E501 (lines of MLIR)
import numpy as np
import pytest
import torch

from numtrace.errors import UncoveredOp
from numtrace.evaluate.extremes import maximum
from numtrace.evaluate.tensors import defined, empty


def test_slices_with_strides(evaluate):
    text = """
    util.func public @main(%a: tensor<4x6xf32>, %b: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<4x6xf32>) {
      %0 = tensor.extract_slice %a[1, 0] [2, 2] [2, 3] : tensor<4x6xf32> to tensor<2x2xf32>
      %1 = tensor.insert_slice %b into %a[0, 1] [2, 2] [3, 2] : tensor<2x2xf32> into tensor<4x6xf32>
      util.return %0, %1 : tensor<2x2xf32>, tensor<4x6xf32>
    }
    """
    a = torch.arange(24.0).reshape(4, 6)
    taken, put = evaluate(text, a, -torch.ones(2, 2))
    assert taken.tolist() == [[6.0, 9.0], [18.0, 21.0]]
    expected = a.numpy().copy()
    expected[0, 1] = expected[0, 3] = expected[3, 1] = expected[3, 3] = -1
    np.testing.assert_array_equal(put.numpy(), expected)


def test_slices_that_drop_and_add_unit_dimensions(evaluate):
    text = """
    util.func public @main(%a: tensor<2x3xf32>) -> (tensor<3xf32>, tensor<2x3xf32>) {
      %0 = tensor.extract_slice %a[1, 0] [1, 3] [1, 1] : tensor<2x3xf32> to tensor<3xf32>
      %1 = tensor.insert_slice %0 into %a[0, 0] [1, 3] [1, 1] : tensor<3xf32> into tensor<2x3xf32>
      util.return %0, %1 : tensor<3xf32>, tensor<2x3xf32>
    }
    """
    row, both = evaluate(text, torch.arange(6.0).reshape(2, 3))
    assert row.tolist() == [3.0, 4.0, 5.0]
    assert both.tolist() == [[3.0, 4.0, 5.0]] * 2


def test_a_slice_with_computed_offsets_checks_its_bounds(evaluate):
    text = """
    util.func public @main(%a: tensor<4xf32>, %at: index) -> tensor<2xf32> {
      %0 = tensor.extract_slice %a[%at] [2] [1] : tensor<4xf32> to tensor<2xf32>
      util.return %0 : tensor<2xf32>
    }
    """
    assert evaluate(text, torch.arange(4.0), torch.tensor(2))[0].tolist() == [2.0, 3.0]
    with pytest.raises(UncoveredOp, match="elements 3 to 4 of a dimension of size 4"):
        evaluate(text, torch.arange(4.0), torch.tensor(3))


def test_insertion_into_a_narrow_parameter_keeps_the_exact_value(evaluate):
    """A bf16 target that nothing has widened yet must not round an exact f32 piece."""
    text = """
    util.func public @main(%a: tensor<2xbf16>, %b: tensor<1xf32>) -> tensor<2xbf16> {
      %0 = arith.truncf %b : tensor<1xf32> to tensor<1xbf16>
      %1 = tensor.insert_slice %0 into %a[0] [1] [1] : tensor<1xbf16> into tensor<2xbf16>
      util.return %1 : tensor<2xbf16>
    }
    """
    (result,) = evaluate(text, torch.ones(2, dtype=torch.bfloat16), torch.tensor([1.0 + 2.0**-20]))
    assert result.tolist() == [1.0 + 2.0**-20, 1.0]


@pytest.mark.parametrize(
    ("type_", "fill", "source", "expected"),
    [
        ("f32", "-1.5 : f32", torch.tensor([1.0, 2.0]), [-1.5, 1.0, 2.0, -1.5, -1.5]),
        ("i8", "7 : i8", torch.tensor([1, 2], dtype=torch.int8), [7, 1, 2, 7, 7]),
        ("i1", "true", torch.tensor([False, True]), [True, False, True, True, True]),
    ],
)
def test_pad(evaluate, type_, fill, source, expected):
    text = f"""
    util.func public @main(%a: tensor<2x{type_}>) -> tensor<5x{type_}> {{
      %c = arith.constant {fill}
      %0 = tensor.pad %a low[1] high[2] {{
      ^bb0(%i: index):
        tensor.yield %c : {type_}
      }} : tensor<2x{type_}> to tensor<5x{type_}>
      util.return %0 : tensor<5x{type_}>
    }}
    """
    assert evaluate(text, source)[0].tolist() == expected


def test_padding_with_poison_is_undefined(evaluate):
    text = """
    util.func public @main(%a: tensor<2xf32>) -> tensor<3xf32> {
      %c = ub.poison : f32
      %0 = tensor.pad %a low[0] high[1] {
      ^bb0(%i: index):
        tensor.yield %c : f32
      } : tensor<2xf32> to tensor<3xf32>
      util.return %0 : tensor<3xf32>
    }
    """
    (result,) = evaluate(text, torch.tensor([1.0, 2.0]))
    assert defined(result).tolist() == [True, True, False]


def test_padding_that_depends_on_the_position_is_uncovered(evaluate):
    text = """
    util.func public @main(%a: tensor<2xindex>) -> tensor<3xindex> {
      %0 = tensor.pad %a low[0] high[1] {
      ^bb0(%i: index):
        tensor.yield %i : index
      } : tensor<2xindex> to tensor<3xindex>
      util.return %0 : tensor<3xindex>
    }
    """
    with pytest.raises(UncoveredOp, match="depends on the position"):
        evaluate(text, torch.tensor([1, 2]))


def test_reshapes(evaluate):
    text = """
    util.func public @main(%a: tensor<2x3x4xf32>) -> tensor<3x2x4xf32> {
      %0 = tensor.collapse_shape %a [[0, 1], [2]] : tensor<2x3x4xf32> into tensor<6x4xf32>
      %1 = tensor.expand_shape %0 [[0, 1], [2]] output_shape [3, 2, 4] : tensor<6x4xf32> into tensor<3x2x4xf32>
      util.return %1 : tensor<3x2x4xf32>
    }
    """
    a = torch.arange(24.0).reshape(2, 3, 4)
    assert evaluate(text, a)[0].flatten().tolist() == list(range(24))


def test_the_rest(evaluate):
    text = """
    util.func public @main(%a: tensor<2xf32>, %s: f32, %i: index) -> (tensor<4xf32>, tensor<2xf32>, tensor<2xf32>, index, f32) {
      %c0 = arith.constant 0 : index
      %k = arith.constant 0.1 : f32
      %0 = tensor.concat dim(0) %a, %a : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
      %1 = tensor.splat %s : tensor<2xf32>
      %2 = tensor.from_elements %s, %k : tensor<2xf32>
      %3 = tensor.dim %a, %c0 : tensor<2xf32>
      %4 = tensor.extract %a[%i] : tensor<2xf32>
      util.return %0, %1, %2, %3, %4 : tensor<4xf32>, tensor<2xf32>, tensor<2xf32>, index, f32
    }
    """
    both, splat, elements, dim, element = evaluate(
        text, torch.tensor([1.0, 2.0]), torch.tensor(0.5), torch.tensor(1)
    )
    assert both.tolist() == [1.0, 2.0, 1.0, 2.0]
    assert splat.tolist() == [0.5, 0.5]
    assert elements.tolist() == [0.5, 13421773 * 2.0**-27]  # 0.1 as f32
    assert (dim.item(), element.item()) == (2, 2.0)


def test_an_element_outside_is_uncovered(evaluate):
    text = """
    util.func public @main(%a: tensor<2xf32>, %i: index) -> f32 {
      %0 = tensor.extract %a[%i] : tensor<2xf32>
      util.return %0 : f32
    }
    """
    with pytest.raises(UncoveredOp, match="index -1 of a dimension of size 2"):
        evaluate(text, torch.tensor([1.0, 2.0]), torch.tensor(-1))


def test_undefined_elements_are_told_from_other_nans():
    value = torch.tensor([1.0, torch.nan, torch.inf], dtype=torch.float64)
    assert defined(value) is None
    assert defined(torch.tensor([torch.inf, -torch.inf]).double()) is None
    joined = torch.cat([value, empty([2], torch.float64)])
    assert defined(joined).tolist() == [True, True, True, False, False]
    assert defined(torch.tensor([0, 1])) is None
    assert defined(empty([2], torch.int32)).tolist() == [False, False]


def test_what_is_computed_from_an_undefined_element_is_undefined():
    one = torch.ones(3, dtype=torch.float64)
    undefined = empty([3], torch.float64)
    for result in (one + undefined, undefined * 2, -undefined, maximum(one, undefined), undefined.sum()):
        assert not defined(result.reshape(-1)).any()


def test_generated_and_reshaped_by_computed_sizes(evaluate):
    """Elements 10 i + j of a 2x3 tensor, under the shape 3x2."""
    text = """
    util.func public @main(%n: index, %shape: tensor<2xindex>) -> (tensor<?x3xindex>, tensor<?x?xindex>) {
      %ten = arith.constant 10 : index
      %0 = tensor.generate %n {
      ^bb0(%i: index, %j: index):
        %1 = arith.muli %i, %ten : index
        %2 = arith.addi %1, %j : index
        tensor.yield %2 : index
      } : tensor<?x3xindex>
      %3 = tensor.reshape %0(%shape) : (tensor<?x3xindex>, tensor<2xindex>) -> tensor<?x?xindex>
      util.return %0, %3 : tensor<?x3xindex>, tensor<?x?xindex>
    }
    """
    generated, reshaped = evaluate(text, torch.tensor(2), torch.tensor([3, 2]))
    assert generated.tolist() == [[0, 1, 2], [10, 11, 12]]
    assert reshaped.tolist() == [[0, 1], [2, 10], [11, 12]]


def test_dynamic_slices_and_collapses(evaluate):
    text = """
    util.func public @main(%a: tensor<?x2x3xf32>, %n: index) -> (tensor<?x3xf32>, tensor<?x3xf32>) {
      %0 = tensor.extract_slice %a[0, 1, 0] [%n, 1, 3] [1, 1, 1] : tensor<?x2x3xf32> to tensor<?x3xf32>
      %1 = tensor.collapse_shape %a [[0, 1], [2]] : tensor<?x2x3xf32> into tensor<?x3xf32>
      util.return %0, %1 : tensor<?x3xf32>, tensor<?x3xf32>
    }
    """
    taken, collapsed = evaluate(text, torch.arange(12.0).reshape(2, 2, 3), torch.tensor(1))
    assert taken.tolist() == [[3.0, 4.0, 5.0]]
    assert collapsed.tolist() == torch.arange(12.0).reshape(4, 3).tolist()
