import math

import pytest
import torch

CONSTANT = """
util.func public @main() -> {type} {{
  %0 = arith.constant {value} : {type}
  util.return %0 : {type}
}}
"""


def constant(evaluate, value, type_):
    (result,) = evaluate(CONSTANT.format(value=value, type=type_))
    return result


@pytest.mark.parametrize(
    ("value", "type_", "expected"),
    [
        ("dense<[true, false, true]>", "tensor<3xi1>", [True, False, True]),
        ("dense<true>", "tensor<2xi1>", [True, True]),
        ("dense<[255, 1]>", "tensor<2xi8>", [-1, 1]),
        ("dense<255>", "tensor<2xi8>", [-1, -1]),
        ("dense<[1, -2]>", "tensor<2xi16>", [1, -2]),
        ("dense<[1, 300]>", "tensor<2xindex>", [1, 300]),
        ("dense<[1.5, -2.0]>", "tensor<2xf16>", [1.5, -2.0]),
        ("dense<[1.5, 0xFF80]>", "tensor<2xbf16>", [1.5, -math.inf]),
        ("dense<[[1.0e-3], [3.0]]>", "tensor<2x1xbf16>", [[131 * 2.0**-17], [3.0]]),
        ("dense<[1.5, 0x38]>", "tensor<2xf8E4M3FN>", [1.5, 1.0]),
        ("dense<1.5>", "tensor<2xbf16>", [1.5, 1.5]),
        ("dense<[0.1]>", "tensor<1xf32>", [13421773 * 2.0**-27]),
        ("dense<[0.1]>", "tensor<1xf64>", [0.1]),
        ("dense<[]>", "tensor<0xf32>", []),
        ("4294967295", "i32", -1),
        ("-1", "i8", -1),
        ("0.1", "f32", 13421773 * 2.0**-27),
    ],
)
def test_the_value_that_the_ir_holds(evaluate, value, type_, expected):
    assert constant(evaluate, value, type_).tolist() == expected


def test_a_long_bf16_constant_is_read_from_its_bytes(evaluate):
    numbers = [0.5 * i for i in range(-64, 64)]  # more than 100 elements are printed as bytes
    assert constant(evaluate, f"dense<{numbers}>", "tensor<128xbf16>").tolist() == numbers


def test_a_nan_constant(evaluate):
    assert torch.isnan(constant(evaluate, "dense<0x7FC00000>", "tensor<f32>"))
