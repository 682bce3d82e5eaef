"""Inputs in the forms of iree-run-module, seeded inputs, goldens: values by hand, errors by name."""

from __future__ import annotations

import math
import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import torch

from numtrace.errors import InputError
from numtrace.instrument import dtypes
from numtrace.instrument.inputs import TensorType, load_golden, load_inputs, range_drawn_from


def _types(*texts: str) -> list[TensorType]:
    return [TensorType.parse(text) for text in texts]


def _load(spec: str, type_: str) -> torch.Tensor:
    (tensor,), notices = load_inputs([spec], _types(type_), seed=0)
    assert notices == []
    return tensor


@pytest.mark.parametrize(
    ("spec", "type_", "values"),
    [
        ("1x2x2xf32=0.5", "1x2x2xf32", [[[0.5, 0.5], [0.5, 0.5]]]),
        ("2x2xi32=1 2 3 4", "2x2xi32", [[1, 2], [3, 4]]),
        ("2x2xi32=[[1 2][3 4]]", "2x2xi32", [[1, 2], [3, 4]]),
        ("2x2xi32=[[1, -2], [3, 0x10]]", "2x2xi32", [[1, -2], [3, 16]]),
        ("f32=1.0", "f32", 1.0),
        ("3.25", "f32", 3.25),
        ("-7", "i64", -7),
        ("2x2xf32", "2x2xf32", [[0.0, 0.0], [0.0, 0.0]]),
        ("4xi1=1 0 true false", "4xi1", [True, False, True, False]),
        ("2xbf16=1.5 -2", "2xbf16", [1.5, -2.0]),
        ("2xf8E5M2=1.5", "2xf8E5M2", [1.5, 1.5]),
        ("3xf16=inf -inf 1e9", "3xf16", [math.inf, -math.inf, math.inf]),
        ("2xui8=255", "2xui8", [255, 255]),
        ("2xui8=255", "2xi8", [-1, -1]),
        ("i64=9007199254740993", "i64", 9007199254740993),
        ("0x3xf32=", "0x3xf32", []),
        ("3x1xf32=1 2 3", "?x1xf32", [[1.0], [2.0], [3.0]]),
    ],
)
def test_values(spec, type_, values):
    tensor = _load(spec, type_)
    assert tensor.tolist() == values
    assert tensor.dtype == dtypes.torch_dtype(TensorType.parse(type_).dtype)


def test_a_float_is_rounded_to_nearest():
    assert _load("f32=0.13025", "f32").item() == float(np.float32(0.13025))
    # bf16 has 8 bits: 1 + 2⁻⁸ is a tie, and goes to the even 1; 1 + 3·2⁻⁸ goes up to 1 + 2⁻⁶.
    assert _load("2xbf16=1.00390625 1.01171875", "2xbf16").tolist() == [1.0, 1.015625]


def test_npy_and_raw_files_whose_names_are_odd(tmp_path):
    array = np.arange(4, dtype=np.float32).reshape(2, 2)
    for name in ("a b.npy", "x=1,[é];$(date).npy", "-n"):
        path = tmp_path / name
        with path.open("wb") as file:
            np.save(file, array)
        assert _load(f"@{path}", "2x2xf32").tolist() == [[0, 1], [2, 3]]
    raw = tmp_path / "x=@ y.bin"
    raw.write_bytes(np.array([1, -2], "<i2").tobytes())
    assert _load(f"2xi16=@{raw}", "2xi16").tolist() == [1, -2]


def test_an_npy_with_a_type_is_read_as_npy_with_a_notice(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.array([1.5, 2.5], np.float32))
    other = tmp_path / "x.data"
    other.write_bytes(path.read_bytes())
    for file in (path, other):
        (tensor,), (notice,) = load_inputs([f"2xf32=@{file}"], _types("2xf32"), seed=0)
        assert tensor.tolist() == [1.5, 2.5]
        assert "iree-run-module would read it raw, header included" in notice
        assert f"@{file}" in notice


def test_npy_layouts_and_signs(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.asfortranarray(np.arange(6, dtype=">f4").reshape(2, 3)))
    assert _load(f"@{path}", "2x3xf32").tolist() == [[0, 1, 2], [3, 4, 5]]
    np.save(path, np.array([255], np.uint8))
    assert _load(f"@{path}", "1xi8").tolist() == [-1]


def test_numpy_forgets_the_name_of_bf16_and_the_signature_gives_it_back(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.array([1.5, -3], ml_dtypes.bfloat16))
    tensor = _load(f"@{path}", "2xbf16")
    assert tensor.dtype == torch.bfloat16
    assert tensor.tolist() == [1.5, -3.0]
    with pytest.raises(InputError, match="2xvoid16"):
        _load(f"@{path}", "2xf16")


@pytest.mark.parametrize(
    ("specs", "signature", "says"),
    [
        (["2xf32=1"], ["2xf32", "f32"], r"1 given as --input.*takes 2 \(2xf32, f32\)"),
        (["2xf32=1"], [], "takes 0"),
        (["2xf32=1", "3xf32=1"], ["2xf32", "4xf32"], "input 1: given 3xf32, and the function takes 4xf32"),
        (["2xf16=1"], ["2xf32"], "input 0: given 2xf16, and the function takes 2xf32"),
        (["2xi32=1 2 3"], ["2xi32"], "3 values for 2xi32, which takes 2, or 1 for all"),
        (["2xi32="], ["2xi32"], "0 values"),
        (["2xf32=1 abc"], ["2xf32"], "'abc' is not a value of f32"),
        (["2xi32=1.5"], ["2xi32"], "'1.5' is not a value of i32"),
        (["i8=128"], ["i8"], "128 does not fit i8 .-128 to 127."),
        (["i1=2"], ["i1"], "'2' is not a value of i1"),
        (["?xf32=1"], ["?xf32"], "dynamic dim"),
        (["3.5"], ["2xf32"], "'3.5' is not a tensor type; write it like"),
        (["-"], ["f32"], "standard input"),
        (["2xi4=1"], ["2xf32"], "'i4' is not supported"),
        (["@/nowhere/x.npy"], ["f32"], "input 0: cannot read '/nowhere/x.npy': No such file"),
        (["f32=@/nowhere/x.bin"], ["f32"], "input 0: cannot read '/nowhere/x.bin': No such file"),
        (["@a\0b.npy"], ["f32"], "input 0: .*null"),
        (["f32=@a\0b.bin"], ["f32"], "input 0: .*null"),
        (
            [],
            ["2xf32", "?x3xf32"],
            r"input 1 is \?x3xf32, and its dynamic dims have no size; give --input 2 times, in order, "
            r"for this one such as 2x3xf32=0\.5, or @x\.npy$",
        ),
        ([], ["?x?xi1"], r"its dynamic dims have no size; give --input, such as 2x2xi1=1, or @x\.npy$"),
    ],
)
def test_errors_say_given_and_expected(specs, signature, says):
    with pytest.raises(InputError, match=says):
        load_inputs(specs, _types(*signature), seed=0)


@pytest.mark.parametrize("type_", ["?x3xf32", "?x?xi1", "4x?xbf16", "?xi64", "?xui8"])
def test_the_value_that_is_proposed_for_dynamic_dims_is_one(type_):
    with pytest.raises(InputError) as refused:
        load_inputs([], _types(type_), seed=0)
    proposed = re.search(r"such as (\S+), or", str(refused.value))[1]
    assert torch.isin(_load(proposed, type_).double(), torch.tensor([0.5, 1.0])).all()


def test_npy_that_does_not_fit(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.zeros((2, 3)))
    with pytest.raises(
        InputError, match=r"input 0: given 2x3xf64 in .*x\.npy', and the function takes 2x3xf32"
    ):
        _load(f"@{path}", "2x3xf32")
    with pytest.raises(InputError, match=r"given 2x3xf64 .* takes 3x2xf64"):
        _load(f"@{path}", "3x2xf64")
    np.save(path, np.zeros(2, np.complex64))
    with pytest.raises(InputError, match=r"given 2xcomplex<f32> .* takes 2xf64"):
        _load(f"@{path}", "2xf64")
    np.save(path, np.array(["text"]))
    with pytest.raises(InputError, match="given 1xstr128"):
        _load(f"@{path}", "1xf32")
    with path.open("wb") as file:
        np.save(file, np.float32(1))
        np.save(file, np.float32(2))
    with pytest.raises(InputError, match="holds 2 arrays"):
        _load(f"@{path}", "f32")


@pytest.mark.parametrize(("size", "says"), [(7, "truncated"), (9, "too long"), (0, "truncated")])
def test_raw_file_of_the_wrong_size(tmp_path, size, says):
    (tmp_path / "x.bin").write_bytes(bytes(size))
    with pytest.raises(InputError, match=f"{says}: 2xf32 takes 8 bytes, found {size}"):
        _load(f"2xf32=@{tmp_path / 'x.bin'}", "2xf32")


def test_a_raw_file_named_npy_is_not_taken_for_one(tmp_path):
    (tmp_path / "x.npy").write_bytes(bytes(8))
    with pytest.raises(InputError, match="not an npy file"):
        _load(f"2xf32=@{tmp_path / 'x.npy'}", "2xf32")


def test_seeded_inputs():
    signature = _types("64x64xf32", "100xi64", "200xi1", "64x64xbf16", "8xf8E4M3FN", "ui16", "0x2xf32")
    first, notices = load_inputs([], signature, seed=3)
    again, _ = load_inputs([], signature, seed=3)
    other, _ = load_inputs([], signature, seed=4)
    assert notices == []
    for tensor, same, type_ in zip(first, again, signature, strict=True):
        assert tensor.dtype == dtypes.torch_dtype(type_.dtype)
        assert tuple(tensor.shape) == type_.shape
        assert torch.equal(tensor.to(torch.float64), same.to(torch.float64))
    assert not torch.equal(first[0], other[0])
    # 4096 standard normal numbers: the mean is within 5/64 and the deviation within 5/(64·√2) of its own.
    assert abs(first[0].mean()) < 5 / 64
    assert abs(first[0].std() - 1) < 5 / 64 / math.sqrt(2)
    assert set(first[1].tolist()) == set(range(10))
    assert 60 < int(first[2].sum()) < 140


def test_seeded_integers_that_hold_data_are_of_their_whole_range():
    """Of 10,000 drawn from 256 each is missing with a chance of 1e-17; i16 is judged by its quarters."""
    (signless, unsigned, wider), _ = load_inputs([], _types("10000xi8", "10000xui8", "10000xi16"), seed=0)
    assert set(signless.tolist()) == set(range(-128, 128))
    assert set(unsigned.tolist()) == set(range(256))
    assert {number // 2**14 for number in wider.tolist()} == {-2, -1, 0, 1}
    assert range_drawn_from("si32") == (0, 9)
    assert range_drawn_from("i1") is None


def test_seeded_inputs_are_the_same_numbers_in_every_float_type():
    (single,), _ = load_inputs([], _types("5xf32"), seed=1)
    (half,), _ = load_inputs([], _types("5xbf16"), seed=1)
    (double,), _ = load_inputs([], _types("5xf64"), seed=1)
    assert torch.equal(half, single.to(torch.bfloat16))
    assert torch.equal(double, single.to(torch.float64))


def test_golden(tmp_path):
    one, two, both = tmp_path / "one.npy", tmp_path / "two.npy", tmp_path / "both.npy"
    np.save(one, np.array([0.1, 0.2]))
    np.save(two, np.array([[3]], np.int32))
    both.write_bytes(one.read_bytes() + two.read_bytes())
    for paths in (both, [one, two]):
        first, second = load_golden(paths, _types("?xbf16", "1x1xi64"))
        assert first.dtype == torch.float64  # kept as precise as it was saved
        assert first.tolist() == [0.1, 0.2]
        assert second.tolist() == [[3]]


@pytest.mark.parametrize(
    ("types", "says"),
    [
        (["2xf32", "f32"], "holds 1 golden arrays, and the function has 2 outputs"),
        (["3xf32"], r"golden 0 of .*g\.npy' is 2xf64, and the output is 3xf32"),
        (["2xi32"], "is 2xf64, and the output is 2xi32"),
    ],
)
def test_golden_that_does_not_fit(tmp_path: Path, types, says):
    np.save(tmp_path / "g.npy", np.array([0.5, 0.0]))
    with pytest.raises(InputError, match=says):
        load_golden(tmp_path / "g.npy", _types(*types))


def test_whole_numbers_saved_as_floats_are_a_golden_of_integers(tmp_path: Path):
    np.save(tmp_path / "g.npy", np.array([458.0, -3.0]))
    (golden,) = load_golden(tmp_path / "g.npy", _types("2xi64"))
    assert golden.tolist() == [458, -3]
    np.save(tmp_path / "g.npy", np.array([np.nan, 0.0]))
    with pytest.raises(InputError, match="is 2xf64, and the output is 2xi64"):
        load_golden(tmp_path / "g.npy", _types("2xi64"))


def test_a_golden_has_the_sign_that_the_output_has(tmp_path: Path) -> None:
    # Outputs of signless programs count as signed: 0xff is -1; of unsigned ones it is 255, whatever it was saved as.
    for width in (8, 16):
        most = (1 << width) - 1
        for kind, all_bits in (("u", most), ("i", -1)):
            np.save(tmp_path / "g.npy", np.array([1, all_bits], f"{kind}{width // 8}"))
            (golden,) = load_golden(tmp_path / "g.npy", _types(f"2xi{width}"))
            assert golden.tolist() == [1, -1]
            (golden,) = load_golden(tmp_path / "g.npy", _types(f"2xui{width}"))
            assert golden.tolist() == [1, most]
