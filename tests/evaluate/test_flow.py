# ruff: noqa: E501 (lines of MLIR)
import pytest
import torch
from iree.compiler import ir

from numtrace.errors import UncoveredOp
from numtrace.evaluate.flow import parameter_key
from numtrace.evaluate.machine import Machine
from numtrace.evaluate.program import Program
from numtrace.evaluate.tensors import defined


def test_reshape_splat_slice_update(evaluate):
    text = """
    util.func public @main(%a: tensor<2x3xbf16>, %s: f32) -> (tensor<3x2xbf16>, tensor<2xf32>, tensor<1x2xbf16>, tensor<2x3xbf16>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %0 = flow.tensor.reshape %a : tensor<2x3xbf16> -> tensor<3x2xbf16>
      %1 = flow.tensor.splat %s : tensor<2xf32>
      %2 = flow.tensor.slice %a[%c1, %c1 for %c1, %c2] : tensor<2x3xbf16> -> tensor<1x2xbf16>
      %3 = flow.tensor.update %2, %a[%c0, %c1] : tensor<1x2xbf16> -> %a as tensor<2x3xbf16>
      util.return %0, %1, %2, %3 : tensor<3x2xbf16>, tensor<2xf32>, tensor<1x2xbf16>, tensor<2x3xbf16>
    }
    """
    a = torch.arange(6.0).reshape(2, 3).bfloat16()
    reshaped, splat, piece, updated = evaluate(text, a, torch.tensor(0.1))
    assert reshaped.tolist() == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    assert splat.tolist() == [13421773 * 2.0**-27] * 2
    assert piece.tolist() == [[4.0, 5.0]]
    assert updated.tolist() == [[0.0, 4.0, 5.0], [3.0, 4.0, 5.0]]


def test_a_reshape_whose_dynamic_sizes_do_not_fit(evaluate):
    """A buffer is read from its start; beyond its end nothing is defined."""
    text = """
    util.func public @main(%a: tensor<?x2xf32>, %n: index, %m: index) -> (tensor<?xf32>, tensor<?x2xf32>) {
      %0 = flow.tensor.reshape %a : tensor<?x2xf32>{%n} -> tensor<?xf32>{%n}
      %1 = flow.tensor.reshape %a : tensor<?x2xf32>{%n} -> tensor<?x2xf32>{%m}
      util.return %0, %1 : tensor<?xf32>, tensor<?x2xf32>
    }
    """
    a = torch.arange(4.0).reshape(2, 2)
    start, beyond = evaluate(text, a, torch.tensor(2), torch.tensor(3))
    assert start.tolist() == [0.0, 1.0]
    assert beyond[:2].tolist() == a.tolist()
    assert defined(beyond).tolist() == [[True, True], [True, True], [False, False]]


def test_an_update_of_a_narrow_tensor_keeps_the_exact_value(evaluate):
    text = """
    util.func public @main(%a: tensor<2xbf16>, %b: tensor<1xf32>) -> tensor<2xbf16> {
      %c0 = arith.constant 0 : index
      %0 = arith.truncf %b : tensor<1xf32> to tensor<1xbf16>
      %1 = flow.tensor.update %0, %a[%c0] : tensor<1xbf16> -> %a as tensor<2xbf16>
      util.return %1 : tensor<2xbf16>
    }
    """
    (result,) = evaluate(text, torch.ones(2).bfloat16(), torch.tensor([1 + 2.0**-20]))
    assert result.tolist() == [1 + 2.0**-20, 1.0]


def test_empty_constants_and_encodings(evaluate):
    text = """
    util.func public @main(%a: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
      %0 = flow.tensor.empty : tensor<2xf32>
      %1 = flow.tensor.constant dense<[1.0, 2.0]> : tensor<2xf32>
      %2 = util.optimization_barrier %a : tensor<2xf32>
      util.return %0, %1, %2 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
    }
    """
    nothing, constant, same = evaluate(text, torch.tensor([5.0, 6.0]))
    assert defined(nothing).tolist() == [False, False]
    assert (constant.tolist(), same.tolist()) == ([1.0, 2.0], [5.0, 6.0])


def test_an_assumed_integer_is_itself(evaluate):
    text = """
    util.func public @main(%a: index, %b: index) -> (index, index) {
      %0:2 = util.assume.int %a<umin = 1, umax = 9>, %b<udiv = 2> : index, index
      util.return %0#0, %0#1 : index, index
    }
    """
    assert [value.item() for value in evaluate(text, torch.tensor(3), torch.tensor(4))] == [3, 4]


def test_a_bitcast_to_another_type_is_uncovered(evaluate):
    text = """
    util.func public @main(%a: tensor<2xf32>) -> tensor<2xi32> {
      %0 = flow.tensor.bitcast %a : tensor<2xf32> -> tensor<2xi32>
      util.return %0 : tensor<2xi32>
    }
    """
    with pytest.raises(UncoveredOp, match="element type"):
        evaluate(text, torch.zeros(2))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('#flow.parameter.named<"model"::"conv.weight"> : tensor<2xf32>', ("model", "conv.weight")),
        ('#flow.parameter.named<"weight"> : tensor<2xf32>', ("", "weight")),
        ('#flow.parameter.named<"a::b"::"c> : \\"d"> : tensor<2xf32>', ("a::b", 'c> : "d')),
        ("1.0 : f32", None),
    ],
)
def test_the_scope_and_key_of_a_parameter(text, expected):
    with ir.Context():
        assert parameter_key(ir.Attribute.parse(text)) == expected


def test_what_hands_a_value_on(evaluate):
    text = """
    util.func public @main(%a: tensor<2x3xf32>, %n: index) -> (tensor<2x3xf32>, f32, tensor<?x3xf32>) {
      %c0 = arith.constant 0 : index
      %c2 = arith.constant 2 : index
      %0 = flow.tensor.clone %a : tensor<2x3xf32>
      %1 = flow.tensor.barrier %0 : tensor<2x3xf32> on #hal.device.promise<@one>
      %2 = flow.tensor.transfer %1 : tensor<2x3xf32> to #hal.device.promise<@other>
      %3 = iree_tensor_ext.compute_barrier.start %2 : tensor<2x3xf32> -> tensor<2x3xf32>
      %4 = iree_tensor_ext.compute_barrier.end %3 : tensor<2x3xf32> -> tensor<2x3xf32>
      %5 = util.numeric.optional_narrow %4 : tensor<2x3xf32> as f16
      %6 = flow.tensor.load %5[%c0, %c2] : tensor<2x3xf32>
      %7 = tensor.cast %5 : tensor<2x3xf32> to tensor<?x3xf32>
      util.return %5, %6, %7 : tensor<2x3xf32>, f32, tensor<?x3xf32>
    }
    """
    a = torch.arange(6.0).reshape(2, 3)
    kept, third, cast = evaluate(text, a, torch.tensor(2))
    assert kept.tolist() == cast.tolist() == a.tolist()
    assert third.item() == 2.0


def test_a_tensor_that_nothing_was_written_to(evaluate):
    text = """
    util.func public @main(%n: index) -> tensor<2x?xf32> {
      %0 = flow.tensor.alloca : tensor<2x?xf32>{%n}
      util.return %0 : tensor<2x?xf32>
    }
    """
    (result,) = evaluate(text, torch.tensor(3))
    assert not bool(defined(result).any())
    assert result.shape == (2, 3)


def test_what_leaves_a_program(evaluate):
    text = """
    util.func public @main(%a: tensor<2xf32>, %b: tensor<1xf32>, %fence: !hal.fence)
        -> (!hal.buffer_view, !hal.buffer_view) {
      %0:2 = hal.tensor.barrier join(%a, %b : tensor<2xf32>, tensor<1xf32>) => %fence : !hal.fence
      %1 = hal.tensor.export %0#0 "output0" : tensor<2xf32> -> !hal.buffer_view
      %2 = hal.tensor.export %0#1 "output1" : tensor<1xf32> -> !hal.buffer_view
      util.return %1, %2 : !hal.buffer_view, !hal.buffer_view
    }
    """
    program = Program.parse(text)
    given = [torch.tensor([1.0, 2.0]), torch.tensor([3.0]), None]
    first, second = Machine(program).run(program.functions["main"].regions[0], given)
    assert (first.tolist(), second.tolist()) == ([1.0, 2.0], [3.0])
