import pytest
import torch

from numtrace.errors import UncoveredOp
from numtrace.evaluate.registry import without
from numtrace.evaluate.tensors import defined

LOAD = "iree_tensor_ext.dispatch.tensor.load"
STORE = "iree_tensor_ext.dispatch.tensor.store"
TYPE = "!iree_tensor_ext.dispatch.tensor"


def program(arguments, body, main):
    return f"""
    flow.executable private @ex {{
      flow.executable.export public @f workgroups(%n: index) -> (index, index, index) {{
        flow.return %n, %n, %n : index, index, index
      }}
      builtin.module {{
        func.func @f({arguments}) {{
          {body}
          return
        }}
      }}
    }}
    {main}
    """


FILL_INTERIOR = program(
    f"%a: {TYPE}<readonly:tensor<2xf32>>, %b: {TYPE}<readwrite:tensor<4xf32>>",
    f"""
    %0 = {LOAD} %a, offsets = [0], sizes = [2], strides = [1] : {TYPE}<readonly:tensor<2xf32>> -> tensor<2xf32>
    {STORE} %0, %b, offsets = [1], sizes = [2], strides = [1] : tensor<2xf32> -> {TYPE}<readwrite:tensor<4xf32>>
    """,
    """
    util.func public @main(%a: tensor<2xf32>, %b: tensor<4xf32>, %n: index) -> (tensor<4xf32>, tensor<4xf32>) {
      %0 = flow.dispatch @ex::@f[%n](%a, %b) : (tensor<2xf32>, tensor<4xf32>) -> %b
      util.return %0, %b : tensor<4xf32>, tensor<4xf32>
    }
    """,
)


def test_a_read_write_operand_is_the_result_and_stays_as_it_was(evaluate):
    """With a workload: tied operands are counted from the arguments."""
    a, b = torch.tensor([1.0, 2.0]), torch.full((4,), 9.0)
    result, operand = evaluate(FILL_INTERIOR, a, b, torch.tensor(1))
    assert result.tolist() == [9.0, 1.0, 2.0, 9.0]
    assert operand.tolist() == [9.0] * 4


def test_what_a_partial_store_leaves_out_is_undefined(evaluate):
    text = program(
        f"%a: {TYPE}<readonly:tensor<2xf32>>, %b: {TYPE}<writeonly:tensor<4xf32>>",
        f"""
        %0 = {LOAD} %a, offsets = [0], sizes = [2], strides = [1] : {TYPE}<readonly:tensor<2xf32>> -> tensor<2xf32>
        {STORE} %0, %b, offsets = [0], sizes = [2], strides = [2] : tensor<2xf32> -> {TYPE}<writeonly:tensor<4xf32>>
        """,
        """
        util.func public @main(%a: tensor<2xf32>, %n: index) -> tensor<4xf32> {
          %0 = flow.dispatch @ex::@f[%n](%a) : (tensor<2xf32>) -> tensor<4xf32>
          util.return %0 : tensor<4xf32>
        }
        """,
    )
    (result,) = evaluate(text, torch.tensor([1.0, torch.nan]), torch.tensor(1))
    assert result[0].item() == 1.0
    assert defined(result).tolist() == [True, False, True, False]  # the NaN that was given is defined


def test_a_value_loaded_before_a_store_is_the_old_one(evaluate):
    text = program(
        f"%a: {TYPE}<readonly:tensor<2xf32>>, %b: {TYPE}<readwrite:tensor<2xf32>>, %c: {TYPE}<writeonly:tensor<2xf32>>",
        f"""
        %0 = {LOAD} %b, offsets = [0], sizes = [2], strides = [1] : {TYPE}<readwrite:tensor<2xf32>> -> tensor<2xf32>
        %1 = {LOAD} %a, offsets = [0], sizes = [1], strides = [1] : {TYPE}<readonly:tensor<2xf32>> -> tensor<1xf32>
        {STORE} %1, %b, offsets = [0], sizes = [1], strides = [1] : tensor<1xf32> -> {TYPE}<readwrite:tensor<2xf32>>
        {STORE} %1, %b, offsets = [1], sizes = [1], strides = [1] : tensor<1xf32> -> {TYPE}<readwrite:tensor<2xf32>>
        {STORE} %0, %c, offsets = [0], sizes = [2], strides = [1] : tensor<2xf32> -> {TYPE}<writeonly:tensor<2xf32>>
        """,
        """
        util.func public @main(%a: tensor<2xf32>, %b: tensor<2xf32>, %n: index) -> (tensor<2xf32>, tensor<2xf32>) {
          %0:2 = flow.dispatch @ex::@f[%n](%a, %b) : (tensor<2xf32>, tensor<2xf32>) -> (%b, tensor<2xf32>)
          util.return %0#0, %0#1 : tensor<2xf32>, tensor<2xf32>
        }
        """,
    )
    new, old = evaluate(text, torch.tensor([1.0, 2.0]), torch.tensor([8.0, 9.0]), torch.tensor(1))
    assert (new.tolist(), old.tolist()) == ([1.0, 1.0], [8.0, 9.0])


def test_a_value_loaded_between_two_stores_has_the_first_only(evaluate):
    text = program(
        f"%a: {TYPE}<readonly:tensor<1xf32>>, %b: {TYPE}<readwrite:tensor<2xf32>>, %c: {TYPE}<writeonly:tensor<2xf32>>",
        f"""
        %1 = {LOAD} %a, offsets = [0], sizes = [1], strides = [1] : {TYPE}<readonly:tensor<1xf32>> -> tensor<1xf32>
        {STORE} %1, %b, offsets = [0], sizes = [1], strides = [1] : tensor<1xf32> -> {TYPE}<readwrite:tensor<2xf32>>
        %0 = {LOAD} %b, offsets = [0], sizes = [2], strides = [1] : {TYPE}<readwrite:tensor<2xf32>> -> tensor<2xf32>
        {STORE} %1, %b, offsets = [1], sizes = [1], strides = [1] : tensor<1xf32> -> {TYPE}<readwrite:tensor<2xf32>>
        {STORE} %0, %c, offsets = [0], sizes = [2], strides = [1] : tensor<2xf32> -> {TYPE}<writeonly:tensor<2xf32>>
        """,
        """
        util.func public @main(%a: tensor<1xf32>, %b: tensor<2xf32>, %n: index) -> (tensor<2xf32>, tensor<2xf32>) {
          %0:2 = flow.dispatch @ex::@f[%n](%a, %b) : (tensor<1xf32>, tensor<2xf32>) -> (%b, tensor<2xf32>)
          util.return %0#0, %0#1 : tensor<2xf32>, tensor<2xf32>
        }
        """,
    )
    last, between = evaluate(text, torch.tensor([1.0]), torch.tensor([8.0, 9.0]), torch.tensor(1))
    assert (last.tolist(), between.tolist()) == ([1.0, 1.0], [1.0, 9.0])


def test_a_store_into_a_whole_stored_argument_leaves_the_argument(evaluate):
    text = program(
        f"%a: {TYPE}<readonly:tensor<2xf64>>, %b: {TYPE}<writeonly:tensor<2xf64>>",
        f"""
        %0 = {LOAD} %a, offsets = [0], sizes = [2], strides = [1] : {TYPE}<readonly:tensor<2xf64>> -> tensor<2xf64>
        %1 = {LOAD} %a, offsets = [1], sizes = [1], strides = [1] : {TYPE}<readonly:tensor<2xf64>> -> tensor<1xf64>
        {STORE} %0, %b, offsets = [0], sizes = [2], strides = [1] : tensor<2xf64> -> {TYPE}<writeonly:tensor<2xf64>>
        {STORE} %1, %b, offsets = [0], sizes = [1], strides = [1] : tensor<1xf64> -> {TYPE}<writeonly:tensor<2xf64>>
        """,
        """
        util.func public @main(%a: tensor<2xf64>, %n: index) -> tensor<2xf64> {
          %0 = flow.dispatch @ex::@f[%n](%a) : (tensor<2xf64>) -> tensor<2xf64>
          util.return %0 : tensor<2xf64>
        }
        """,
    )
    (result,) = evaluate(text, torch.tensor([1.0, 2.0]).double(), torch.tensor(1))
    assert result.tolist() == [2.0, 2.0]


def test_slices_that_drop_a_unit_dimension(evaluate):
    text = program(
        f"%a: {TYPE}<readonly:tensor<2x3xf32>>, %i: index, %b: {TYPE}<writeonly:tensor<1x3xf32>>",
        f"""
        %0 = {LOAD} %a, offsets = [%i, 0], sizes = [1, 3], strides = [1, 1]
          : {TYPE}<readonly:tensor<2x3xf32>> -> tensor<3xf32>
        {STORE} %0, %b, offsets = [0, 0], sizes = [1, 3], strides = [1, 1]
          : tensor<3xf32> -> {TYPE}<writeonly:tensor<1x3xf32>>
        """,
        """
        util.func public @main(%a: tensor<2x3xf32>, %n: index) -> tensor<1x3xf32> {
          %0 = flow.dispatch @ex::@f[%n](%a, %n) : (tensor<2x3xf32>, index) -> tensor<1x3xf32>
          util.return %0 : tensor<1x3xf32>
        }
        """,
    )
    assert evaluate(text, torch.arange(6.0).reshape(2, 3), torch.tensor(1))[0].tolist() == [[3.0, 4.0, 5.0]]


def test_an_op_in_the_body_without_an_evaluation_names_itself(evaluate):
    text = program(
        f"%a: {TYPE}<readonly:tensor<4xf32>>, %b: {TYPE}<writeonly:tensor<4xf32>>",
        f"""
        %0 = {LOAD} %a, offsets = [0], sizes = [4], strides = [1] : {TYPE}<readonly:tensor<4xf32>> -> tensor<4xf32>
        %c0 = arith.constant 0 : index
        %1 = tensor.generate {{
        ^bb0(%i: index):
          %2 = tensor.extract %0[%i] : tensor<4xf32>
          tensor.yield %2 : f32
        }} : tensor<4xf32>
        {STORE} %1, %b, offsets = [0], sizes = [4], strides = [1] : tensor<4xf32> -> {TYPE}<writeonly:tensor<4xf32>>
        """,
        """
        util.func public @main(%a: tensor<4xf32>, %n: index) -> tensor<4xf32> {
          %0 = flow.dispatch @ex::@f[%n](%a) : (tensor<4xf32>) -> tensor<4xf32>
          util.return %0 : tensor<4xf32>
        }
        """,
    )
    put_back = without("tensor.generate")
    try:
        with pytest.raises(UncoveredOp, match=r"tensor\.generate"):
            evaluate(text, torch.zeros(4), torch.tensor(1))
    finally:
        put_back()


def test_dynamic_sizes_of_a_dispatch_come_from_its_operands(evaluate):
    """A transpose of ?x? by ties of its shapes: the workload is in the order of the result."""
    text = program(
        f"%a: {TYPE}<readonly:tensor<?x?xf32>>, %n: index, %m: index, %b: {TYPE}<writeonly:tensor<?x?xf32>>",
        f"""
        %i = iree_tensor_ext.dispatch.workload.ordinal %n, 0 : index
        %j = iree_tensor_ext.dispatch.workload.ordinal %m, 1 : index
        %x = flow.dispatch.tie_shape %a : {TYPE}<readonly:tensor<?x?xf32>>{{%i, %j}}
        %y = flow.dispatch.tie_shape %b : {TYPE}<writeonly:tensor<?x?xf32>>{{%j, %i}}
        %0 = {LOAD} %x, offsets = [0, 0], sizes = [%i, %j], strides = [1, 1]
            : {TYPE}<readonly:tensor<?x?xf32>>{{%i, %j}} -> tensor<?x?xf32>
        %e = tensor.empty(%j, %i) : tensor<?x?xf32>
        %t = linalg.transpose ins(%0 : tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) permutation = [1, 0]
        {STORE} %t, %y, offsets = [0, 0], sizes = [%j, %i], strides = [1, 1]
            : tensor<?x?xf32> -> {TYPE}<writeonly:tensor<?x?xf32>>{{%j, %i}}
        """,
        """
        util.func public @main(%v: !hal.buffer_view) -> tensor<?x?xf32> {
          %n = hal.buffer_view.dim<%v : !hal.buffer_view>[0] : index
          %m = hal.buffer_view.dim<%v : !hal.buffer_view>[1] : index
          %a = hal.tensor.import %v : !hal.buffer_view -> tensor<?x?xf32>{%n, %m}
          %0 = flow.dispatch @ex::@f[%n](%a, %n, %m)
              : (tensor<?x?xf32>{%n, %m}, index, index) -> tensor<?x?xf32>{%m, %n}
          util.return %0 : tensor<?x?xf32>
        }
        """,
    )
    (result,) = evaluate(text, torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
    assert result.tolist() == [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]


def test_a_dispatch_that_is_not_outlined_yet_runs_its_own_region(evaluate):
    text = f"""
    util.func public @main(%a: tensor<2xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {{
      %0 = flow.dispatch.workgroups(%a, %b) : (tensor<2xf32>, tensor<4xf32>) -> %b =
          (%in: {TYPE}<readonly:tensor<2xf32>>, %out: {TYPE}<readwrite:tensor<4xf32>>) {{
        %1 = {LOAD} %in, offsets = [0], sizes = [2], strides = [1] : {TYPE}<readonly:tensor<2xf32>> -> tensor<2xf32>
        {STORE} %1, %out, offsets = [1], sizes = [2], strides = [1]
            : tensor<2xf32> -> {TYPE}<readwrite:tensor<4xf32>>
        flow.return
      }}
      util.return %0, %b : tensor<4xf32>, tensor<4xf32>
    }}
    """
    result, operand = evaluate(text, torch.tensor([1.0, 2.0]), torch.full((4,), 9.0))
    assert result.tolist() == [9.0, 1.0, 2.0, 9.0]
    assert operand.tolist() == [9.0] * 4


def test_a_dispatch_that_is_being_formed_reads_what_is_around_it(evaluate):
    text = """
    util.func public @main(%a: tensor<2xf32>) -> tensor<2xf32> {
      %0 = arith.negf %a : tensor<2xf32>
      %1 = flow.dispatch.region -> (tensor<2xf32>) {
        %2 = arith.addf %0, %0 : tensor<2xf32>
        flow.return %2 : tensor<2xf32>
      }
      util.return %1 : tensor<2xf32>
    }
    """
    assert evaluate(text, torch.tensor([1.0, -3.0]))[0].tolist() == [-2.0, 6.0]


def test_integers_and_booleans_are_undefined_where_nothing_was_written(evaluate):
    """They have no NaN: the first two of four, twice, then all but the second."""
    for element, values in (("i8", [3, 0]), ("i1", [True, False])):
        text = f"""
        util.func public @main(%a: tensor<2x{element}>) -> (tensor<2x2x{element}>, tensor<4x{element}>) {{
          %e = flow.tensor.empty : tensor<4x{element}>
          %c0 = arith.constant 0 : index
          %c2 = arith.constant 2 : index
          %0 = flow.tensor.update %a, %e[%c0] : tensor<2x{element}> -> %e as tensor<4x{element}>
          %1 = flow.tensor.reshape %0 : tensor<4x{element}> -> tensor<2x2x{element}>
          %2 = tensor.extract_slice %0[0] [2] [2] : tensor<4x{element}> to tensor<2x{element}>
          %3 = flow.tensor.update %2, %0[%c2] : tensor<2x{element}> -> %0 as tensor<4x{element}>
          util.return %1, %3 : tensor<2x2x{element}>, tensor<4x{element}>
        }}
        """
        half, most = evaluate(text, torch.tensor(values, dtype=torch.bool if element == "i1" else torch.int8))
        assert half[0].tolist() == values and defined(half).tolist() == [[True, True], [False, False]]
        assert most[:3].tolist() == [*values, values[0]]
        assert defined(most).tolist() == [True, True, True, False]
