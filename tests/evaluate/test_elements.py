"""Single elements put into tensors."""

import pytest
import torch

from numtrace.errors import UndefinedResult
from numtrace.evaluate.tensors import defined

INSERT = """
util.func public @main(%v: f32, %t: tensor<2x2xf32>, %i: index) -> (tensor<2x2xf32>, tensor<f32>) {
  %c1 = arith.constant 1 : index
  %0 = tensor.insert %v into %t[%c1, %i] : tensor<2x2xf32>
  %e = tensor.empty() : tensor<f32>
  %1 = tensor.insert %v into %e[] : tensor<f32>
  util.return %0, %1 : tensor<2x2xf32>, tensor<f32>
}
"""


def test_an_element_is_replaced(evaluate):
    value, target = torch.tensor(7.0), torch.arange(4.0).reshape(2, 2)
    into, alone = evaluate(INSERT, value, target, torch.tensor(0))
    assert into.tolist() == [[0.0, 1.0], [7.0, 3.0]] and alone.item() == 7.0


def test_there_is_no_such_element(evaluate):
    with pytest.raises(UndefinedResult, match="index 2 of a dimension of size 2"):
        evaluate(INSERT, torch.tensor(7.0), torch.ones(2, 2), torch.tensor(2))


def test_what_was_not_stored_is_undefined(evaluate):
    text = """
    util.func public @main(%v: f32, %n: index, %done: !hal.fence) -> tensor<?xf32> {
      %c1 = arith.constant 1 : index
      %0 = flow.tensor.empty : tensor<?xf32>{%n}
      %1 = flow.tensor.store %v, %0[%c1] : tensor<?xf32>{%n}
      hal.fence.signal<%done : !hal.fence>
      util.return %1 : tensor<?xf32>
    }
    """
    (result,) = evaluate(text, torch.tensor(7.0), torch.tensor(3), torch.tensor(0))
    assert result[1] == 7.0 and defined(result).tolist() == [False, True, False]


def test_integers(evaluate):
    text = """
    util.func public @main(%a: i64, %b: i64) -> tensor<2xi64> {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %0 = flow.tensor.empty : tensor<2xi64>
      %1 = flow.tensor.store %a, %0[%c0] : tensor<2xi64>
      %2 = flow.tensor.store %b, %1[%c1] : tensor<2xi64>
      util.return %2 : tensor<2xi64>
    }
    """
    (result,) = evaluate(text, torch.tensor(2**62 + 1), torch.tensor(-3))
    assert result.tolist() == [2**62 + 1, -3]
