import pytest
import torch

DTYPES = {"i1": torch.bool, "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64}


@pytest.mark.parametrize(
    ("op", "type_", "values", "expected"),
    [
        # In one bit: of 1 there is none before or after it, of 0 the width, which is 1 again.
        ("math.ctpop", "i1", [0, 1], [0, 1]),
        ("math.ctlz", "i1", [0, 1], [1, 0]),
        ("math.cttz", "i1", [0, 1], [1, 0]),
        # -1 is all ones, the least number its first bit alone, 0x58 is 01011000.
        ("math.ctpop", "i8", [0, 1, -1, -128, 127, 0x58], [0, 1, 8, 1, 7, 3]),
        ("math.ctlz", "i8", [0, 1, -1, -128, 127, 0x58], [8, 7, 0, 0, 1, 1]),
        ("math.cttz", "i8", [0, 1, -1, -128, 127, 0x58], [8, 0, 0, 7, 0, 3]),
        ("math.ctpop", "i16", [0, 1, -1, -(2**15), 0x0FF0, -2], [0, 1, 16, 1, 8, 15]),
        ("math.ctlz", "i16", [0, 1, -1, -(2**15), 0x0FF0, -2], [16, 15, 0, 0, 4, 0]),
        ("math.cttz", "i16", [0, 1, -1, -(2**15), 0x0FF0, -2], [16, 0, 0, 15, 4, 1]),
        ("math.ctpop", "i32", [0, 1, -1, -(2**31), 0x12345678], [0, 1, 32, 1, 13]),
        ("math.ctlz", "i32", [0, 1, -1, -(2**31), 0x12345678], [32, 31, 0, 0, 3]),
        ("math.cttz", "i32", [0, 1, -1, -(2**31), 0x12345678], [32, 0, 0, 31, 3]),
        ("math.ctpop", "i64", [0, 1, -1, -(2**63), 2**63 - 1, 3 << 40], [0, 1, 64, 1, 63, 2]),
        ("math.ctlz", "i64", [0, 1, -1, -(2**63), 2**63 - 1, 3 << 40], [64, 63, 0, 0, 1, 22]),
        ("math.cttz", "i64", [0, 1, -1, -(2**63), 2**63 - 1, 3 << 40], [64, 0, 0, 63, 0, 40]),
    ],
)
def test_bits_are_counted_in_the_width_of_the_type(evaluate, op, type_, values, expected):
    text = f"""
    util.func public @main(%a: tensor<{len(values)}x{type_}>) -> tensor<{len(values)}x{type_}> {{
      %0 = {op} %a : tensor<{len(values)}x{type_}>
      util.return %0 : tensor<{len(values)}x{type_}>
    }}
    """
    (made,) = evaluate(text, torch.tensor(values, dtype=DTYPES[type_]))
    assert made.dtype == DTYPES[type_]
    assert made.tolist() == expected


@pytest.mark.parametrize("op", ["math.ctpop", "math.ctlz", "math.cttz"])
@pytest.mark.parametrize("type_", ["i8", "i16", "i32", "i64"])
def test_every_place_of_a_bit(evaluate, op, type_):
    """A bit at each place, alone and with all below it, counted in the digits of Python's numbers."""
    width = int(type_[1:])
    patterns = [1 << place for place in range(width)] + [(2 << place) - 1 for place in range(width)]
    digits = [f"{pattern:0{width}b}" for pattern in patterns]
    counted = {
        "math.ctpop": [text.count("1") for text in digits],
        "math.ctlz": [text.index("1") for text in digits],
        "math.cttz": [text[::-1].index("1") for text in digits],
    }
    signed = [pattern - (1 << width) if pattern >> (width - 1) else pattern for pattern in patterns]
    text = f"""
    util.func public @main(%a: tensor<{len(signed)}x{type_}>) -> tensor<{len(signed)}x{type_}> {{
      %0 = {op} %a : tensor<{len(signed)}x{type_}>
      util.return %0 : tensor<{len(signed)}x{type_}>
    }}
    """
    (made,) = evaluate(text, torch.tensor(signed, dtype=DTYPES[type_]))
    assert made.tolist() == counted[op]
