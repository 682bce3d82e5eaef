"""Generic ops: broadcasting, transposed outputs, reductions of every form, index arithmetic."""

import math

import numpy as np
import pytest
import torch

from numtrace.evaluate.nest import Nest
from numtrace.evaluate.program import Program


def generic(maps, iterators, body, ins, outs, results=None):
    """A program with one generic op; ``ins`` and ``outs`` are types, ``maps`` their maps."""
    types = [*ins, *outs]
    arguments = ", ".join(f"%a{i}: {type_}" for i, type_ in enumerate(types))
    scalars = [type_.rsplit("x", 1)[-1].removeprefix("tensor<").rstrip(">") for type_ in types]
    n = len(ins)
    inputs = f"ins({', '.join(f'%a{i}' for i in range(n))} : {', '.join(ins)})" if ins else ""
    block = ", ".join(
        f"%{'x' if i < n else 'acc'}{i if i < n else i - n}: {s}" for i, s in enumerate(scalars)
    )
    names = ", ".join(f"%r#{i}" for i in range(len(outs))) if len(outs) > 1 else "%r"
    kinds = ", ".join(f'"{kind}"' for kind in iterators)
    return f"""
    util.func public @main({arguments}) -> ({", ".join(outs)}) {{
      %half = arith.constant 0.5 : f32
      %r{f":{len(outs)}" if len(outs) > 1 else ""} = linalg.generic {{
          indexing_maps = [{", ".join(f"affine_map<{m}>" for m in maps)}], iterator_types = [{kinds}]}}
          {inputs} outs({", ".join(f"%a{n + i}" for i in range(len(outs)))} : {", ".join(outs)}) {{
      ^bb0({block}):
        {body}
      }} -> {f"({', '.join(outs)})" if len(outs) > 1 else outs[0]}
      util.return {names} : {", ".join(outs)}
    }}
    """


def numbers(*shape, seed=0):
    return torch.randn(
        shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1000 * seed + sum(shape))
    )


def nest_of(text):
    return Nest(next(op for op in Program.parse(text).functions["main"].regions[0].ops if op.maps))


P, R = "parallel", "reduction"

ELEMENTWISE = generic(
    ["(d0, d1) -> (d0, d1)", "(d0, d1) -> (d1)", "(d0, d1) -> ()", "(d0, d1) -> (d1, d0)"], [P, P],
    """
    %0 = arith.mulf %x0, %x1 : f64
    %1 = arith.subf %0, %x2 : f64
    linalg.yield %1 : f64
    """,
    ["tensor<2x3xf64>", "tensor<3xf64>", "tensor<f64>"], ["tensor<3x2xf64>"],
)  # fmt: skip


@pytest.mark.parametrize("cut", [False, True])
def test_elementwise_broadcasts_and_transposes(evaluate, cut, request):
    if cut:
        request.getfixturevalue("small_stripes")
    a, b, c = numbers(2, 3), numbers(3), numbers()
    (result,) = evaluate(ELEMENTWISE, a, b, c, torch.zeros(3, 2).double())
    np.testing.assert_array_equal(result.numpy(), (a.numpy() * b.numpy() - c.numpy()).T)


def test_an_output_is_read_where_the_region_reads_it(evaluate):
    text = generic(
        ["(d0) -> (d0)", "(d0) -> (d0)"], [P],
        "%0 = arith.subf %acc0, %x0 : f32\nlinalg.yield %0 : f32", ["tensor<3xf32>"], ["tensor<3xf32>"],
    )  # fmt: skip
    (result,) = evaluate(text, torch.tensor([1.0, 2.0, 3.0]), torch.tensor([10.0, 20.0, 30.0]))
    assert result.tolist() == [9.0, 18.0, 27.0]


def test_a_yielded_constant_fills_the_output_in_its_own_type(evaluate):
    text = generic(["(d0) -> (d0)"], [P], "linalg.yield %half : f32", [], ["tensor<3xf32>"])
    (result,) = evaluate(text, torch.zeros(3))
    assert (result.dtype, result.tolist()) == (torch.float64, [0.5] * 3)


def test_operands_through_offset_and_strided_maps(evaluate):
    text = generic(
        ["(d0) -> (d0 * 2 + 1)", "(d0) -> (d0)"], [P],
        "linalg.yield %x0 : f32", ["tensor<6xf32>"], ["tensor<3xf32>"],
    )  # fmt: skip
    assert evaluate(text, torch.arange(6.0), torch.zeros(3))[0].tolist() == [1.0, 3.0, 5.0]


def test_an_output_map_that_leaves_elements_out_keeps_them(evaluate):
    text = generic(
        ["(d0) -> (d0)", "(d0) -> (d0 * 2)"], [P],
        "linalg.yield %x0 : f32", ["tensor<3xf32>"], ["tensor<6xf32>"],
    )  # fmt: skip
    (result,) = evaluate(text, torch.tensor([1.0, 2.0, 3.0]), -torch.ones(6))
    assert result.tolist() == [1.0, -1.0, 2.0, -1.0, 3.0, -1.0]


def test_an_empty_loop_nest_leaves_the_outputs(evaluate):
    text = generic(
        ["(d0, d1) -> (d0, d1)", "(d0, d1) -> (d0)"], [P, R],
        "%0 = arith.addf %x0, %acc0 : f32\nlinalg.yield %0 : f32", ["tensor<2x0xf32>"], ["tensor<2xf32>"],
    )  # fmt: skip
    assert evaluate(text, torch.zeros(2, 0), torch.tensor([1.0, 2.0]))[0].tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("combiner", "reference"),
    [
        ("arith.addf", lambda v, axis: v.sum(axis)),
        ("arith.maximumf", lambda v, axis: v.max(axis)),
        ("arith.minimumf", lambda v, axis: v.min(axis)),
        ("arith.maxnumf", lambda v, axis: v.max(axis)),
        ("arith.minnumf", lambda v, axis: v.min(axis)),
        ("arith.mulf", lambda v, axis: v.prod(axis)),  # no whole-tensor form: the slow loop
    ],
)
@pytest.mark.parametrize("cut", [False, True])
def test_reductions(evaluate, combiner, reference, cut, request):
    if cut:
        request.getfixturevalue("small_stripes")
    text = generic(
        ["(d0, d1, d2) -> (d2, d0, d1)", "(d0, d1, d2) -> (d1)"], [R, P, R],
        f"%0 = {combiner} %x0, %acc0 : f64\nlinalg.yield %0 : f64", ["tensor<2x3x4xf64>"], ["tensor<4xf64>"],
    )  # fmt: skip
    assert nest_of(text).joins == (None if combiner == "arith.mulf" else [combiner])
    value, start = numbers(2, 3, 4), numbers(4, seed=1)
    expected = reference(np.concatenate([value.numpy().reshape(6, 4), start.numpy()[None]]), 0)
    np.testing.assert_allclose(evaluate(text, value, start)[0].numpy(), expected, rtol=1e-14)


def test_maximumf_takes_nan_and_maxnumf_the_number(evaluate):
    for combiner, expected in (("arith.maximumf", math.nan), ("arith.maxnumf", 2.0)):
        text = generic(
            ["(d0) -> (d0)", "(d0) -> ()"], [R],
            f"%0 = {combiner} %acc0, %x0 : f32\nlinalg.yield %0 : f32", ["tensor<3xf32>"], ["tensor<f32>"],
        )  # fmt: skip
        (result,) = evaluate(text, torch.tensor([1.0, math.nan, 2.0]), torch.tensor(-math.inf))
        np.testing.assert_array_equal(result.numpy(), expected)


@pytest.mark.parametrize(
    ("combiner", "values", "start", "expected"),
    [
        ("arith.ori", [False, True, False], False, True),
        ("arith.andi", [True, True, False], True, False),
        ("arith.addi", [True, True, True], False, True),  # i1 wraps
        ("arith.maxsi", [True, False], True, False),  # true is -1
    ],
)
def test_reductions_of_i1(evaluate, combiner, values, start, expected):
    text = generic(
        ["(d0) -> (d0)", "(d0) -> ()"], [R],
        f"%0 = {combiner} %acc0, %x0 : i1\nlinalg.yield %0 : i1", [f"tensor<{len(values)}xi1>"], ["tensor<i1>"],
    )  # fmt: skip
    assert evaluate(text, torch.tensor(values), torch.tensor(start))[0].item() is expected


def test_an_integer_sum_wraps_in_its_type(evaluate):
    text = generic(
        ["(d0) -> (d0)", "(d0) -> ()"], [R],
        "%0 = arith.addi %acc0, %x0 : i8\nlinalg.yield %0 : i8", ["tensor<3xi8>"], ["tensor<i8>"],
    )  # fmt: skip
    (result,) = evaluate(
        text, torch.tensor([100, 100, 100], dtype=torch.int8), torch.tensor(1, dtype=torch.int8)
    )
    assert (result.dtype, result.item()) == (torch.int8, 45)


def test_a_narrow_accumulator_is_seen_through(evaluate):
    """extf, add, truncf: one exact sum, not a slow loop with roundings."""
    text = generic(
        ["(d0) -> (d0)", "(d0) -> ()"], [R],
        """
        %0 = arith.extf %acc0 : f16 to f32
        %1 = arith.addf %0, %x0 : f32
        %2 = arith.truncf %1 : f32 to f16
        linalg.yield %2 : f16
        """,
        ["tensor<3xf32>"], ["tensor<f16>"],
    )  # fmt: skip
    assert nest_of(text).joins == ["arith.addf"]
    values = torch.tensor([1.0, 2.0**-12, 2.0**-20])
    assert evaluate(text, values, torch.tensor(0.0).half())[0].item() == 1 + 2.0**-12 + 2.0**-20


def test_a_count_of_constants_is_summed_exactly(evaluate):
    """The constant is index arithmetic, held in f32, whose sums are not exact."""
    text = generic(
        ["(d0) -> (d0)", "(d0) -> ()"], [R],
        """
        %k = arith.constant 0.1 : f32
        %0 = arith.addf %acc0, %k : f32
        linalg.yield %0 : f32
        """,
        ["tensor<1000xf32>"], ["tensor<f32>"],
    )  # fmt: skip
    (result,) = evaluate(text, torch.zeros(1000), torch.tensor(0.0))
    assert result.item() == pytest.approx(1000 * float(np.float32(0.1)), rel=1e-14)


MOMENTS = generic(
    ["(d0, d1) -> (d0, d1)", "(d0, d1) -> (d0)", "(d0, d1) -> (d0)"], [P, R],
    """
    %0 = arith.extf %x0 : f32 to f64
    %1 = arith.addf %acc0, %0 : f64
    %2 = arith.mulf %0, %0 : f64
    %3 = arith.addf %acc1, %2 : f64
    linalg.yield %1, %3 : f64, f64
    """,
    ["tensor<2x5xf32>"], ["tensor<2xf64>", "tensor<2xf64>"],
)  # fmt: skip


@pytest.mark.parametrize("cut", [False, True])
def test_two_sums_at_once_that_share_an_op(evaluate, cut, request):
    if cut:
        request.getfixturevalue("small_stripes")
    assert nest_of(MOMENTS).joins == ["arith.addf", "arith.addf"]
    value = numbers(2, 5).float()
    first, second = evaluate(MOMENTS, value, torch.ones(2).double(), torch.zeros(2).double())
    exact = value.numpy().astype(np.float64)
    np.testing.assert_allclose(first.numpy(), exact.sum(1) + 1, rtol=1e-14)
    np.testing.assert_allclose(second.numpy(), (exact**2).sum(1), rtol=1e-14)


def test_an_accumulator_in_anothers_contribution_is_no_plain_reduction(evaluate):
    """The greatest running sum: joined by addf and maximumf, yet the second reads the first."""
    text = generic(
        ["(d0) -> (d0)", "(d0) -> ()", "(d0) -> ()"], [R],
        """
        %0 = arith.addf %acc0, %x0 : f32
        %1 = arith.maximumf %acc1, %0 : f32
        linalg.yield %0, %1 : f32, f32
        """,
        ["tensor<4xf32>"], ["tensor<f32>", "tensor<f32>"],
    )  # fmt: skip
    total, peak = evaluate(
        text, torch.tensor([3.0, 2.0, -4.0, 1.0]), torch.tensor(0.0), torch.tensor(-math.inf)
    )
    assert (total.item(), peak.item()) == (2.0, 5.0)


def test_welford(evaluate):
    text = generic(
        ["(d0, d1) -> (d0, d1)", *["(d0, d1) -> (d0)"] * 3], [P, R],
        """
        %one = arith.constant 1.0 : f64
        %n = arith.addf %acc0, %one : f64
        %d = arith.subf %x0, %acc1 : f64
        %q = arith.divf %d, %n : f64
        %m = arith.addf %acc1, %q : f64
        %e = arith.subf %x0, %m : f64
        %p = arith.mulf %d, %e : f64
        %s = arith.addf %acc2, %p : f64
        linalg.yield %n, %m, %s : f64, f64, f64
        """,
        ["tensor<2x6xf64>"], ["tensor<2xf64>"] * 3,
    )  # fmt: skip
    value = numbers(2, 6)
    count, mean, squares = evaluate(text, value, *(torch.zeros(2).double() for _ in range(3)))
    assert count.tolist() == [6.0, 6.0]
    np.testing.assert_allclose(mean.numpy(), value.numpy().mean(1), rtol=1e-13)
    np.testing.assert_allclose(squares.numpy(), value.numpy().var(1) * 6, rtol=1e-13)


def test_argmax_takes_the_first_of_equals(evaluate):
    text = generic(
        ["(d0, d1) -> (d0, d1)", "(d0, d1) -> (d0)", "(d0, d1) -> (d0)"], [P, R],
        """
        %i = linalg.index 1 : index
        %j = arith.index_cast %i : index to i64
        %0 = arith.cmpf ogt, %x0, %acc0 : f32
        %1 = arith.select %0, %x0, %acc0 : f32
        %2 = arith.select %0, %j, %acc1 : i64
        linalg.yield %1, %2 : f32, i64
        """,
        ["tensor<2x4xf32>"], ["tensor<2xf32>", "tensor<2xi64>"],
    )  # fmt: skip
    value = torch.tensor([[1.0, 5.0, 5.0, 2.0], [-1.0, -3.0, -2.0, -1.0]])
    best, at = evaluate(text, value, torch.full((2,), -math.inf), torch.zeros(2, dtype=torch.int64))
    assert (best.tolist(), at.tolist()) == ([5.0, -1.0], [1, 0])


def test_a_full_and_a_reduced_output_at_once(evaluate):
    """A running sum beside its total: outputs with different loops."""
    text = generic(
        ["(d0, d1) -> (d0, d1)", "(d0, d1) -> (d0, d1)", "(d0, d1) -> (d0)"], [P, R],
        """
        %0 = arith.addf %acc1, %x0 : f32
        linalg.yield %0, %0 : f32, f32
        """,
        ["tensor<2x3xf32>"], ["tensor<2x3xf32>", "tensor<2xf32>"],
    )  # fmt: skip
    value = torch.tensor([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]])
    running, total = evaluate(text, value, torch.zeros(2, 3), torch.zeros(2))
    assert running.tolist() == [[1.0, 3.0, 6.0], [10.0, 30.0, 60.0]]
    assert total.tolist() == [6.0, 60.0]


def test_outputs_of_different_loops_that_are_both_sums(evaluate):
    text = generic(
        ["(d0, d1) -> (d0, d1)", "(d0, d1) -> (d0, d1)", "(d0, d1) -> (d0)"], [P, R],
        """
        %0 = arith.addf %acc0, %x0 : f32
        %1 = arith.addf %acc1, %x0 : f32
        linalg.yield %0, %1 : f32, f32
        """,
        ["tensor<2x3xf32>"], ["tensor<2x3xf32>", "tensor<2xf32>"],
    )  # fmt: skip
    value = torch.tensor([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]])
    full, total = evaluate(text, value, torch.ones(2, 3), torch.ones(2))
    assert full.tolist() == (value + 1).tolist()
    assert total.tolist() == [7.0, 61.0]


def test_accumulators_that_change_places(evaluate):
    text = generic(
        ["(d0) -> (d0)", "(d0) -> ()", "(d0) -> ()"], [R], "linalg.yield %acc1, %acc0 : f32, f32",
        ["tensor<3xf32>"], ["tensor<f32>", "tensor<f32>"],
    )  # fmt: skip
    results = evaluate(text, torch.zeros(3), torch.tensor(1.0), torch.tensor(2.0))
    assert [result.item() for result in results] == [2.0, 1.0]


def test_window_reductions(evaluate):
    text = generic(
        ["(d0, d1) -> (d0 * 2 + d1)", "(d0, d1) -> (d1)", "(d0, d1) -> (d0)"], [P, R],
        "%0 = arith.maximumf %acc0, %x0 : f32\nlinalg.yield %0 : f32",
        ["tensor<7xf32>", "tensor<3xf32>"], ["tensor<3xf32>"],
    )  # fmt: skip
    value = torch.tensor([3.0, 1.0, 2.0, 9.0, 4.0, 5.0, 6.0])
    assert evaluate(text, value, torch.zeros(3), torch.full((3,), -9.0))[0].tolist() == [3.0, 9.0, 6.0]


INDEX_BODY = """
    %i = linalg.index 0 : index
    %0 = arith.index_cast %i : index to i32
    %1 = arith.sitofp %0 : i32 to f32
    {arithmetic}
    %3 = math.floor %2 : f32
    %4 = arith.fptosi %3 : f32 to i32
    linalg.yield %4 : i32
"""


@pytest.mark.parametrize("cut", [False, True])
def test_index_arithmetic_rounds_as_typed(evaluate, cut, request):
    """Upsampling by 1/f32(0.1): in float64 the last element before each step is another one."""
    if cut:
        request.getfixturevalue("small_stripes")
    arithmetic = "%k = arith.constant 0.1 : f32\n%2 = arith.divf %1, %k : f32"
    text = generic(["(d0) -> (d0)"], [P], INDEX_BODY.format(arithmetic=arithmetic), [], ["tensor<32xi32>"])
    index = np.arange(32)
    typed = np.floor(index.astype(np.float32) / np.float32(0.1)).astype(np.int32)
    exact = np.floor(index / np.float64(np.float32(0.1))).astype(np.int32)
    assert (typed != exact).any()
    assert evaluate(text, torch.zeros(32, dtype=torch.int32))[0].tolist() == typed.tolist()


def test_index_arithmetic_with_constants_from_outside_the_region(evaluate):
    body = INDEX_BODY.format(arithmetic="%2 = arith.divf %1, %half : f32")
    text = generic(["(d0) -> (d0)"], [P], body, [], ["tensor<32xi32>"]).replace(
        "constant 0.5", "constant 0.1"
    )
    typed = np.floor(np.arange(32, dtype=np.float32) / np.float32(0.1)).astype(np.int32)
    assert evaluate(text, torch.zeros(32, dtype=torch.int32))[0].tolist() == typed.tolist()


@pytest.mark.parametrize("cut", [False, True])
def test_nearest_upsampling_gathers(evaluate, cut, request):
    if cut:
        request.getfixturevalue("small_stripes")
    text = """
    util.func public @main(%a: tensor<2x3xf32>) -> tensor<4x6xf32> {
      %two = arith.constant 2.0 : f32
      %e = tensor.empty() : tensor<4x6xf32>
      %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>],
          iterator_types = ["parallel", "parallel"]} outs(%e : tensor<4x6xf32>) {
      ^bb0(%out: f32):
        %i = linalg.index 0 : index
        %j = linalg.index 1 : index
        %0 = arith.index_cast %i : index to i64
        %1 = arith.sitofp %0 : i64 to f32
        %2 = arith.divf %1, %two : f32
        %3 = math.floor %2 : f32
        %4 = arith.fptosi %3 : f32 to i64
        %5 = arith.index_cast %4 : i64 to index
        %6 = arith.index_cast %j : index to i64
        %7 = arith.sitofp %6 : i64 to f32
        %8 = arith.divf %7, %two : f32
        %9 = math.floor %8 : f32
        %10 = arith.fptosi %9 : f32 to i64
        %11 = arith.index_cast %10 : i64 to index
        %12 = tensor.extract %a[%5, %11] : tensor<2x3xf32>
        linalg.yield %12 : f32
      } -> tensor<4x6xf32>
      util.return %r : tensor<4x6xf32>
    }
    """
    a = torch.arange(6.0).reshape(2, 3)
    assert evaluate(text, a)[0].tolist() == a.repeat_interleave(2, 0).repeat_interleave(2, 1).tolist()


KEPT = generic(
    ["(d0, d1) -> (d0, d1)", "(d0, d1) -> (d0, 0)"], [P, R],
    """
    %0 = arith.addf %x0, %acc0 : f64
    linalg.yield %0 : f64
    """,
    ["tensor<2x3xf64>"], ["tensor<2x1xf64>"],
)  # fmt: skip


@pytest.mark.parametrize("cut", [False, True])
def test_a_reduction_that_keeps_its_dimension_is_no_loop(evaluate, cut, request):
    """torch's keepdim: a loop over all elements took a minute for the norms of a small network."""
    if cut:
        request.getfixturevalue("small_stripes")
    assert nest_of(KEPT).joins == ["arith.addf"]
    start = torch.tensor([[0.5], [0.25]]).double()
    (sums,) = evaluate(KEPT, torch.tensor([[1.0, 2, 3], [4, 5, 6]]).double(), start)
    assert sums.tolist() == [[6.5], [15.25]]


def test_a_constant_index_into_a_longer_dimension_leaves_the_rest_alone(evaluate):
    one_column = KEPT.replace("tensor<2x1xf64>", "tensor<2x2xf64>")
    start = torch.tensor([[0.5, 7], [0.25, 8]]).double()
    (sums,) = evaluate(one_column, torch.tensor([[1.0, 2, 3], [4, 5, 6]]).double(), start)
    assert sums.tolist() == [[6.5, 7], [15.25, 8]]


@pytest.mark.parametrize(
    ("body", "types"),
    [
        ("%s = arith.addf %acc0, %x0 : f32\nlinalg.yield %s : f32", ["f32", "f32"]),
        (
            "%s = arith.addf %acc0, %x0 : f32\n%t = arith.truncf %s : f32 to f16\n"
            "%u = arith.extf %t : f16 to f32\nlinalg.yield %u : f32",
            ["f32", "f16", "f32"],
        ),
        (
            "%t = arith.truncf %acc0 : f32 to bf16\n%u = arith.extf %t : bf16 to f32\n"
            "%s = arith.addf %x0, %u : f32\nlinalg.yield %s : f32",
            ["f32", "bf16", "f32"],
        ),
        (
            # What the contribution is narrowed to is no type of the sum.
            "%t = arith.truncf %x0 : f32 to bf16\n%u = arith.extf %t : bf16 to f32\n"
            "%s = arith.addf %u, %acc0 : f32\nlinalg.yield %s : f32",
            ["f32", "f32"],
        ),
    ],
)
def test_a_running_sum_is_rounded_to_the_types_that_it_is_cast_to(body, types):
    text = generic(
        ["(d0, d1) -> (d0, d1)", "(d0, d1) -> (d0)"], [P, R], body, ["tensor<2x3xf32>"], ["tensor<2xf32>"]
    )
    assert nest_of(text).sum_types == [types]
