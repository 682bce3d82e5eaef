import pytest
from rich.cells import cell_len

from numtrace.report.figures import decimal, index, number, op_names, shorten, tensor_type, ulps, visible


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.234e-5, "1.23e-05"), (0.0, "0"), (None, "-"), (1.0, "1.00e+00"), (5e-324, "4.94e-324")],
)
def test_number(value, text):
    assert number(value) == text


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (0.5, "f32", "5.00e-01"),
        (0.0, "bf16", "0"),
        (None, "f32", "-"),
        (None, "i64", "-"),
        # Just below 2 an f32's ulp is 2^-23: 2^24 - 1 of them are that value.
        (2.0**24 - 1, "f32", "1.68e+07"),
        (2.0**24, "f32", "≥2^24"),
        # 1 where 0 is expected, in units of the smallest f32, 2^-149.
        (2.0**149, "f32", "≥2^24"),
        (255.0, "bf16", "2.55e+02"),
        (256.0, "bf16", "≥2^8"),
        (1e300, "f8E5M2", "≥2^3"),
    ],
)
def test_ulps_are_counted_up_to_the_value_itself(value, dtype, text):
    assert ulps(value, dtype) == text


def test_small_forms():
    assert decimal(57.349, 1) == "57.3"
    assert tensor_type([1, 4, 16, 16], "f32") == "1x4x16x16xf32"
    assert tensor_type([], "f32") == "f32"
    assert (index([0, 12, 3]), index([]), index(None)) == ("0,12,3", "()", "-")
    assert op_names("convolution_2", ["add_1", "convolution_2"]) == "convolution_2 + add_1"


def test_shorten_cuts_the_middle():
    assert shorten("decoder.mid_block.conv1", 11) == "decod…conv1"
    assert shorten("short", 5) == "short"
    assert shorten("short", 1) == "…"
    assert shorten("short", 0) == ""


@pytest.mark.parametrize("width", range(2, 12))
def test_shorten_counts_cells_of_wide_characters(width):
    assert cell_len(shorten("層" * 8, width)) <= width


def test_visible_spells_out_what_a_terminal_obeys():
    assert visible("a\x1b[31mb\r\u202e") == "a\\x1b[31mb\\r\\u202e"
    assert visible("conv_é_層") == "conv_é_層"
