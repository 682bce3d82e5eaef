import itertools
import math

import numpy as np
import pytest
import torch

from numtrace.errors import UncoveredOp

BINARY = """
util.func public @main(%a: tensor<{n}x{type}>, %b: tensor<{n}x{type}>) -> tensor<{n}x{result}> {{
  %0 = {op} %a, %b : tensor<{n}x{type}>
  util.return %0 : tensor<{n}x{result}>
}}
"""
CAST = """
util.func public @main(%a: tensor<{n}x{type}>) -> tensor<{n}x{result}> {{
  %0 = {op} %a : tensor<{n}x{type}> to tensor<{n}x{result}>
  util.return %0 : tensor<{n}x{result}>
}}
"""
DTYPES = {
    "f32": torch.float32, "f64": torch.float64, "bf16": torch.bfloat16, "i1": torch.bool, "i8": torch.int8,
    "i16": torch.int16, "i32": torch.int32, "i64": torch.int64,
}  # fmt: skip


def binary(evaluate, op, type_, a, b, result=None):
    a, b = (torch.tensor(values, dtype=DTYPES[type_]) for values in (a, b))
    text = BINARY.format(op=op, type=type_, n=len(a), result=result or type_)
    return evaluate(text, a, b)[0]


def cast(evaluate, op, type_, result, values):
    (value,) = evaluate(
        CAST.format(op=op, type=type_, n=len(values), result=result),
        torch.tensor(values, dtype=DTYPES[type_]),
    )
    return value


ORDERED = {"eq": lambda a, b: a == b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
           "lt": lambda a, b: a < b, "le": lambda a, b: a <= b, "ne": lambda a, b: a != b}  # fmt: skip


def expected_cmpf(predicate, a, b):
    unordered = math.isnan(a) or math.isnan(b)
    if predicate in ("true", "false"):
        return predicate == "true"
    if predicate in ("ord", "uno"):
        return unordered == (predicate == "uno")
    if unordered:
        return predicate[0] == "u"
    return ORDERED[predicate[1:]](a, b)


@pytest.mark.parametrize(
    "predicate", ["true", "false", "ord", "uno"] + [o + p for o in "ou" for p in ORDERED]
)
def test_cmpf(evaluate, predicate):
    pairs = list(itertools.product([-1.0, 0.0, -0.0, 2.5, math.inf, math.nan], repeat=2))
    a, b = zip(*pairs, strict=True)
    result = binary(evaluate, f"arith.cmpf {predicate},", "f32", a, b, "i1")
    assert result.tolist() == [expected_cmpf(predicate, x, y) for x, y in pairs]


@pytest.mark.parametrize("type_", ["i1", "i8", "i32", "i64"])
@pytest.mark.parametrize("predicate", ["eq", "ne", *(s + p for s in "su" for p in ("lt", "le", "gt", "ge"))])
def test_cmpi(evaluate, predicate, type_):
    bits = 1 if type_ == "i1" else int(type_[1:])
    patterns = [0, 1] if bits == 1 else [0, 1, (1 << (bits - 1)) - 1, 1 << (bits - 1), (1 << bits) - 1]

    def signed(pattern):
        return pattern - (1 << bits) if pattern >> (bits - 1) else pattern

    pairs = list(itertools.product(patterns, repeat=2))
    operands = [[x if bits == 1 else signed(x) for x in side] for side in zip(*pairs, strict=True)]
    read = signed if predicate[0] == "s" else lambda pattern: pattern
    name = predicate if predicate in ORDERED else predicate[1:]
    result = binary(evaluate, f"arith.cmpi {predicate},", type_, *operands, "i1")
    assert result.tolist() == [ORDERED[name](read(x), read(y)) for x, y in pairs]


@pytest.mark.parametrize(
    ("op", "type_", "a", "b", "expected"),
    [
        ("arith.addi", "i8", [127, -128], [1, -1], [-128, 127]),
        ("arith.subi", "i8", [-128, 0], [1, -128], [127, -128]),
        ("arith.muli", "i8", [16, 100], [16, 3], [0, 44]),
        ("arith.addi", "i32", [2**31 - 1], [1], [-(2**31)]),
        ("arith.muli", "i32", [2**30], [6], [-(2**31)]),
        ("arith.addi", "i1", [True, True, False], [True, False, False], [False, True, False]),
        ("arith.subi", "i1", [True, False, False], [True, True, False], [False, True, False]),
        ("arith.maxsi", "i1", [True, True], [False, True], [False, True]),  # true is -1
        ("arith.minsi", "i1", [True, False], [False, False], [True, False]),
        ("arith.maxsi", "i8", [-1], [1], [1]),
        ("arith.maxui", "i8", [-1], [1], [-1]),
        ("arith.minui", "i8", [-1], [1], [1]),
        ("arith.divsi", "i32", [7, -7, 7], [2, 2, -2], [3, -3, -3]),
        ("arith.floordivsi", "i32", [7, -7, 7], [2, 2, -2], [3, -4, -4]),
        ("arith.ceildivsi", "i32", [7, -7, 7, 6, -(2**31)], [2, 2, -2, 2, 1], [4, -3, -3, 3, -(2**31)]),
        ("arith.remsi", "i32", [7, -7, 7], [2, 2, -2], [1, -1, 1]),
        ("arith.divui", "i8", [-1, 7], [2, 2], [127, 3]),
        ("arith.remui", "i8", [-1, 7], [16, 2], [15, 1]),
        ("arith.ceildivui", "i8", [-2, 7], [4, 2], [64, 4]),
        ("arith.shli", "i8", [1, 64], [7, 1], [-128, -128]),
        ("arith.shrsi", "i8", [-128], [7], [-1]),
        ("arith.shrui", "i8", [-128], [7], [1]),
        ("arith.shrui", "i64", [-1, -1, 8], [63, 0, 2], [1, -1, 2]),
        ("arith.andi", "i8", [12], [10], [8]),
        ("arith.ori", "i8", [12], [10], [14]),
        ("arith.xori", "i8", [12], [10], [6]),
    ],
)
def test_integers(evaluate, op, type_, a, b, expected):
    result = binary(evaluate, op, type_, a, b)
    assert result.dtype == DTYPES[type_]
    assert result.tolist() == expected


@pytest.mark.parametrize("op", ["arith.divsi", "arith.remsi", "arith.divui", "arith.floordivsi"])
def test_division_by_zero_is_uncovered_not_a_crash(evaluate, op):
    with pytest.raises(UncoveredOp, match="divides by zero"):
        binary(evaluate, op, "i32", [1], [0])


def test_an_overflowing_quotient_is_uncovered_not_a_crash(evaluate):
    with pytest.raises(UncoveredOp, match="overflows"):
        binary(evaluate, "arith.divsi", "i64", [-(2**63)], [-1])


@pytest.mark.parametrize(
    ("op", "a", "b", "expected"),
    [
        ("arith.addf", 0.1, 0.2, float(np.float32(0.1)) + float(np.float32(0.2))),  # not rounded to f32
        ("arith.subf", 1.0, 2.0**-20, 1 - 2.0**-20),
        ("arith.mulf", 0.1, 0.1, float(np.float32(0.1)) ** 2),
        ("arith.divf", 1.0, 3.0, 1 / 3),
        ("arith.remf", -7.5, 2.0, -1.5),
        ("arith.maximumf", math.nan, 1.0, math.nan),
        ("arith.minimumf", 1.0, math.nan, math.nan),
        ("arith.maxnumf", math.nan, 1.0, 1.0),
        ("arith.minnumf", 1.0, math.nan, 1.0),
    ],
)
def test_floats_in_float64(evaluate, op, a, b, expected):
    result = binary(evaluate, op, "f32", [a], [b])
    assert result.dtype == torch.float64
    np.testing.assert_array_equal(result.numpy(), [expected])


@pytest.mark.parametrize(
    ("op", "type_", "result", "values", "expected"),
    [
        ("arith.sitofp", "i8", "f32", [-1, 5], [-1.0, 5.0]),
        ("arith.uitofp", "i8", "f32", [-1, 5], [255.0, 5.0]),
        ("arith.sitofp", "i1", "f32", [True, False], [-1.0, 0.0]),
        ("arith.uitofp", "i1", "f32", [True, False], [1.0, 0.0]),
        ("arith.uitofp", "i64", "f64", [-1, -(2**63), 3], [2.0**64, 2.0**63, 3.0]),
        ("arith.sitofp", "i64", "f64", [2**53 + 1], [2.0**53]),
        ("arith.extsi", "i1", "i32", [True], [-1]),
        ("arith.extui", "i1", "i32", [True], [1]),
        ("arith.extsi", "i8", "i32", [-1], [-1]),
        ("arith.extui", "i8", "i32", [-1], [255]),
        ("arith.trunci", "i32", "i8", [257, 128], [1, -128]),
        ("arith.trunci", "i32", "i1", [2, 3], [False, True]),
        ("arith.fptosi", "f32", "i32", [-1.9, 1.9], [-1, 1]),
        ("arith.fptoui", "f32", "i8", [200.7], [-56]),
        ("arith.fptoui", "f64", "i64", [2.0**63], [-(2**63)]),
        ("arith.extf", "bf16", "f32", [1.5], [1.5]),
    ],
)
def test_casts(evaluate, op, type_, result, values, expected):
    assert cast(evaluate, op, type_, result, values).tolist() == expected


def test_a_narrowing_float_cast_is_the_identity(evaluate):
    (result,) = cast(evaluate, "arith.truncf", "f32", "bf16", [0.1])
    assert result.item() == float(np.float32(0.1))


def test_a_bitcast_rounds_to_its_type_first(evaluate):
    text = """
    util.func public @main(%a: tensor<1xf32>) -> tensor<1xi16> {
      %0 = arith.truncf %a : tensor<1xf32> to tensor<1xbf16>
      %1 = arith.bitcast %0 : tensor<1xbf16> to tensor<1xi16>
      util.return %1 : tensor<1xi16>
    }
    """
    assert evaluate(text, torch.tensor([1.0 + 2.0**-9]))[0].tolist() == [0x3F80]  # rounds down to 1


def test_index_castui_truncates(evaluate):
    text = """
    util.func public @main(%a: index) -> i32 {
      %0 = arith.index_castui %a : index to i32
      util.return %0 : i32
    }
    """
    (result,) = evaluate(text, torch.tensor(2**32 + 5))
    assert (result.dtype, result.item()) == (torch.int32, 5)


def test_select_and_negf(evaluate):
    text = """
    util.func public @main(%c: tensor<3xi1>, %a: tensor<3xf32>) -> tensor<3xf32> {
      %0 = arith.negf %a : tensor<3xf32>
      %1 = arith.select %c, %a, %0 : tensor<3xi1>, tensor<3xf32>
      util.return %1 : tensor<3xf32>
    }
    """
    (result,) = evaluate(text, torch.tensor([True, False, False]), torch.tensor([1.0, 2.0, -0.0]))
    assert result.tolist() == [1.0, -2.0, 0.0]
