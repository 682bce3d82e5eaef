"""ONNX operators, by values worked out by hand from the operator's text."""

from __future__ import annotations

import math

import pytest
import torch

from numtrace.attribute.reference import Reference
from numtrace.errors import UncoveredOp, UndefinedResult
from numtrace.evaluate.onnx_ops.registry import covers
from numtrace.evaluate.program import Program


@pytest.fixture
def onnx(evaluate):
    """``onnx(name, attributes, result, (type, value)…)``: the first result of one operator."""

    def made(name: str, attributes: str, result: str, *operands: tuple[str, torch.Tensor]) -> torch.Tensor:
        types = [f"!torch.vtensor<{type_}>" for type_, _ in operands]
        arguments = ", ".join(f"%a{n}: {type_}" for n, type_ in enumerate(types))
        text = f"""
        func.func @main({arguments}) -> !torch.vtensor<{result}> {{
          %0 = torch.operator "onnx.{name}"({", ".join(f"%a{n}" for n in range(len(types)))}) {{{attributes}}}
            : ({", ".join(types)}) -> !torch.vtensor<{result}>
          return %0 : !torch.vtensor<{result}>
        }}
        """
        (value,) = evaluate(text, *(value for _, value in operands))
        return value

    return made


def ints(name: str, *values: int) -> str:
    return f"torch.onnx.{name} = [{', '.join(f'{value} : si64' for value in values)}]"


def one(name: str, value: int) -> str:
    return f"torch.onnx.{name} = {value} : si64"


def word(name: str, value: str) -> str:
    return f'torch.onnx.{name} = "{value}"'


def test_gelu(onnx):
    x = ("[1],f32", torch.tensor([1.0]))
    assert onnx("Gelu", "", "[1],f32", x).item() == pytest.approx((1 + math.erf(0.5**0.5)) / 2, rel=1e-15)
    angle = math.sqrt(2 / math.pi) * 1.044715
    close = onnx("Gelu", word("approximate", "tanh"), "[1],f32", x).item()
    assert close == pytest.approx((1 + math.tanh(angle)) / 2, rel=1e-15)


def test_a_norm_of_zero(onnx):
    x = ("[2,2],f32", torch.tensor([[3.0, 0.0], [4.0, 0.0]]))
    made = onnx("LpNormalization", f"{one('axis', 0)}, {one('p', 2)}", "[2,2],f32", x)
    assert torch.allclose(
        made, torch.tensor([[0.6, 0.0], [0.8, 0.0]], dtype=torch.float64), rtol=1e-15, atol=0
    )
    by_sums = onnx("LpNormalization", f"{one('axis', 0)}, {one('p', 1)}", "[2,2],f32", x)
    assert by_sums[:, 0].tolist() == [3 / 7, 4 / 7]


def test_an_average_beyond_the_padding(onnx):
    """1 to 5 in windows of 2 by 2: the third, [5, beyond], is there with ceil_mode only, and has one element."""
    x = ("[1,1,5],f32", torch.arange(1.0, 6.0).reshape(1, 1, 5))
    attributes = f"{ints('kernel_shape', 2)}, {ints('strides', 2)}"
    assert onnx("AveragePool", attributes, "[1,1,2],f32", x).tolist() == [[[1.5, 3.5]]]
    ceiled = onnx("AveragePool", f"{attributes}, {one('ceil_mode', 1)}", "[1,1,3],f32", x)
    assert ceiled.tolist() == [[[1.5, 3.5, 5.0]]]


def test_an_average_with_padding(onnx):
    """[0, 1, 2, 3, 0] in windows of 3 by 2: of two elements, or of three where the padding counts."""
    x = ("[1,1,3],f32", torch.tensor([[[1.0, 2.0, 3.0]]]))
    attributes = f"{ints('kernel_shape', 3)}, {ints('strides', 2)}, {ints('pads', 1, 1)}"
    assert onnx("AveragePool", attributes, "[1,1,2],f32", x).tolist() == [[[1.5, 2.5]]]
    counted = onnx("AveragePool", f"{attributes}, {one('count_include_pad', 1)}", "[1,1,2],f32", x)
    assert counted.tolist() == [[[1.0, 5 / 3]]]


def test_blocks_to_channels_and_back(onnx):
    """Channels a and b of 2 by 2: by places first (DCR) a0 b0 a1 b1 ..., by channels first a0 a1 a2 a3 b0 ..."""
    x = torch.tensor([[[[0.0, 1.0], [2.0, 3.0]], [[10.0, 11.0], [12.0, 13.0]]]])
    for mode, expected in (
        ("DCR", [0.0, 10.0, 1.0, 11.0, 2.0, 12.0, 3.0, 13.0]),
        ("CRD", [0.0, 1.0, 2.0, 3.0, 10.0, 11.0, 12.0, 13.0]),
    ):
        attributes = f"{one('blocksize', 2)}, {word('mode', mode)}"
        deep = onnx("SpaceToDepth", attributes, "[1,8,1,1],f32", ("[1,2,2,2],f32", x))
        assert deep.flatten().tolist() == expected
        back = onnx("DepthToSpace", attributes, "[1,2,2,2],f32", ("[1,8,1,1],f32", deep.float()))
        assert back.tolist() == x.tolist()


def test_quantized_matrices(onnx):
    """(3 - 1)·0.5 · (250 - 200)·2 = 100, and (1 - 1) · ... = 0; over 0.75 is 133.33, and 100 more is 233."""
    operands = [
        ("[1,2],ui8", torch.tensor([[3, 1]], dtype=torch.uint8)), ("[1],f32", torch.tensor([0.5])),
        ("[1],ui8", torch.tensor([1], dtype=torch.uint8)),
        ("[2,2],ui8", torch.tensor([[250, 255], [7, 7]], dtype=torch.uint8)), ("[1],f32", torch.tensor([2.0])),
        ("[1],ui8", torch.tensor([200], dtype=torch.uint8)),
        ("[1],f32", torch.tensor([0.75])), ("[1],ui8", torch.tensor([100], dtype=torch.uint8)),
    ]  # fmt: skip
    # The second column: 1 · 110 over 0.75 is 146.67, rounded 147, and 100 more than 247.
    assert onnx("QLinearMatMul", "", "[1,2],ui8", *operands).tolist() == [[233, 247]]
    operands[6] = ("[1],f32", torch.tensor([0.5]))  # 200 + 100 is more than a byte holds
    assert onnx("QLinearMatMul", "", "[1,2],ui8", *operands).tolist() == [[255, 255]]


def test_casts(onnx):
    """What is beyond 464 is rounded to no number of f8E4M3FN: it saturates at 448 unless it is not to."""
    x = ("[4],f32", torch.tensor([460.0, 465.0, -math.inf, 1.3]))
    made = onnx("Cast", one("to", 17), "[4],f8E4M3FN", x)
    assert made.tolist() == [460.0, 448.0, -448.0, torch.tensor(1.3).item()]
    plain = onnx("Cast", f"{one('to', 17)}, {one('saturate', 0)}", "[4],f8E4M3FN", x)
    assert plain.tolist()[:3] == [460.0, 465.0, -math.inf]
    whole = onnx("Cast", one("to", 6), "[2],si32", ("[2],f32", torch.tensor([-1.7, 2.9])))
    assert whole.tolist() == [-1, 2] and whole.dtype == torch.int32
    assert onnx("Cast", one("to", 9), "[2],i1", ("[2],f32", torch.tensor([0.5, 0.0]))).tolist() == [
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("number", "to", "type_"), [(math.nan, 6, "si32"), (2.0**31, 6, "si32"), (-1.0, 2, "ui8")]
)
def test_a_cast_that_onnx_does_not_define(number: float, to: int, type_: str):
    """It is told, and goes on: the program may choose the other elements."""
    program = Program.parse(f"""
    func.func @main(%x: !torch.vtensor<[2],f32>) -> !torch.vtensor<[2],{type_}> {{
      %0 = torch.operator "onnx.Cast"(%x) {{{one("to", to)}}} : (!torch.vtensor<[2],f32>)
        -> !torch.vtensor<[2],{type_}> loc("numtrace.7")
      return %0 : !torch.vtensor<[2],{type_}>
    }}
    """)
    reference = Reference(program, program.functions["main"], [torch.tensor([1.0, number])], {}, {})
    (made,) = reference.finish()
    assert made[0] == 1
    assert list(reference.undefined) == [(7,)]
    assert reference.undefined[7,].startswith(f"onnx.Cast of 1 numbers, such as {number:g}, to torch.")


def test_the_ends_of_an_integers_range_are_in_it(onnx):
    x = torch.tensor([-(2.0**31), 2.0**31 - 128, -0.9])
    assert onnx("Cast", one("to", 6), "[3],si32", ("[3],f32", x)).tolist() == [-(2**31), 2**31 - 128, 0]
    assert onnx("Cast", one("to", 2), "[2],ui8", ("[2],f32", torch.tensor([-0.9, 255.5]))).tolist() == [
        0,
        255,
    ]


def test_a_result_of_another_shape_than_the_program_has_is_none(onnx):
    """Of 4 elements two windows of 2 by 2 are within, and no third begins beyond the one element of padding."""
    x = ("[1,1,4],f32", torch.ones(1, 1, 4))
    attributes = (
        f"{ints('kernel_shape', 2)}, {ints('strides', 2)}, {ints('pads', 0, 1)}, {one('ceil_mode', 1)}"
    )
    assert onnx("AveragePool", attributes, "[1,1,2],f32", x).tolist() == [[[1.0, 1.0]]]
    with pytest.raises(UncoveredOp, match=r"shape \[1, 1, 2\], in the program of \[1, 1, 3\]"):
        onnx("AveragePool", attributes, "[1,1,3],f32", x)


def test_resize_by_the_length_that_the_scale_gives(onnx):
    """4 by 0.6 is 2.4 long, of which there are two elements: with aligned corners the second is at 3 / 1.4."""
    x = ("[4],f32", torch.tensor([1.0, 2.0, 3.0, 4.0]))
    scale = torch.tensor([0.6])
    attributes = f"{word('mode', 'linear')}, {word('coordinate_transformation_mode', 'align_corners')}"
    made = onnx("Resize", attributes, "[2],f32", x, ("[0],f32", torch.zeros(0)), ("[1],f32", scale))
    assert made.tolist() == pytest.approx([1.0, 1 + 3 / (4 * scale.item() - 1)], rel=1e-14)


def test_resize_to_the_nearest(onnx):
    """Two to four elements: at -0.25, 0.25, 0.75 and 1.25; asymmetric at 0, 0.5, 1 and 1.5, where 0.5 goes down."""
    x = ("[2],f32", torch.tensor([1.0, 2.0]))
    more = (("[0],f32", torch.zeros(0)), ("[1],f32", torch.tensor([2.0])))
    assert onnx("Resize", "", "[4],f32", x, *more).tolist() == [1.0, 1.0, 2.0, 2.0]
    asymmetric = word("coordinate_transformation_mode", "asymmetric")
    assert onnx("Resize", asymmetric, "[4],f32", x, *more).tolist() == [1.0, 1.0, 2.0, 2.0]
    up = f"{asymmetric}, {word('nearest_mode', 'round_prefer_ceil')}"
    assert onnx("Resize", up, "[4],f32", x, *more).tolist() == [1.0, 2.0, 2.0, 2.0]


def _lower_neighbours(onnx, scale: float, new: int) -> torch.Tensor:
    """0 to 9 resized to ``new`` elements, each the one at or below its place."""
    x = ("[10],f32", torch.arange(10.0))
    more = (("[0],f32", torch.zeros(0)), ("[1],f32", torch.tensor([scale])))
    mode = f"{word('coordinate_transformation_mode', 'asymmetric')}, {word('nearest_mode', 'floor')}"
    return onnx("Resize", mode, f"[{new}],f32", x, *more)


@pytest.mark.parametrize(("scale", "new"), [(0.2, 2), (1.2, 12)])
def test_which_is_nearest_by_a_rounded_scale_is_not_said(onnx, scale: float, new: int):
    """1 / 0.2f is 4.9999999, and 5 in float32; 6 / 1.2f is 4.9999998."""
    with pytest.raises(UncoveredOp, match="rounding of float32"):
        _lower_neighbours(onnx, scale, new)


def test_the_first_element_is_at_zero_by_any_scale(onnx):
    assert _lower_neighbours(onnx, 0.1, 1).tolist() == [0.0]


def test_a_default_is_of_32_bits(onnx):
    """0.01 is 0.00999999977648258."""
    made = onnx("LeakyRelu", "", "[1],f32", ("[1],f32", torch.tensor([-1.0])))
    assert made.item() == -0.009999999776482582


def test_samples_of_a_grid(onnx):
    """The middle of 2 by 2 is the mean of all; its corner, aligned, is the element there."""
    x = ("[1,1,2,2],f32", torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]]))
    grid = ("[1,1,2,2],f32", torch.tensor([[[[0.0, 0.0], [1.0, 1.0]]]]))
    assert onnx("GridSample", one("align_corners", 1), "[1,1,1,2],f32", x, grid).flatten().tolist() == [
        2.5,
        4.0,
    ]


def test_an_lstm_with_peepholes(evaluate):
    """One step of one number, all weights 1, no bias, from h = 0 and c = 1 with peepholes of 1 for i, o and f."""
    v = "!torch.vtensor<{},f32>".format
    shapes = ["[1,1,1]", "[1,4,1]", "[1,4,1]", "[1,8]", "[1,1,1]", "[1,1,1]", "[1,3]"]
    names = ["x", "w", "r", "b", "h", "c", "p"]
    header = ", ".join(f"%{name}: {v(shape)}" for name, shape in zip(names, shapes, strict=True))
    text = f"""
    func.func @main({header}) -> {v("[1,1,1]")} {{
      %none = torch.constant.none
      %0:2 = torch.operator "onnx.LSTM"(%x, %w, %r, %b, %none, %h, %c, %p) {{torch.onnx.hidden_size = 1 : si64}}
        : ({", ".join(v(s) for s in shapes[:4])}, !torch.none, {", ".join(v(s) for s in shapes[4:])})
        -> (!torch.none, {v("[1,1,1]")})
      return %0#1 : {v("[1,1,1]")}
    }}
    """
    one_each = [torch.full([int(n) for n in shape[1:-1].split(",")], 1.0) for shape in shapes]
    one_each[3], one_each[4] = torch.zeros(1, 8), torch.zeros(1, 1, 1)
    (h,) = evaluate(text, *one_each)

    def sigmoid(x: float) -> float:
        return 1 / (1 + math.exp(-x))

    c = sigmoid(2) * 1 + sigmoid(2) * math.tanh(1)
    assert h.item() == pytest.approx(sigmoid(1 + c) * math.tanh(c), rel=1e-14)


def test_spectra_of_windows(onnx):
    """1 2 3 4 in frames of two, two apart, weighted 1 and 0.5: sums and differences of (1, 1) and (3, 2)."""
    operands = [
        ("[1,4,1],f32", torch.tensor([[[1.0], [2.0], [3.0], [4.0]]])), ("[],si64", torch.tensor(2)),
        ("[2],f32", torch.tensor([1.0, 0.5])),
    ]  # fmt: skip
    made = onnx("STFT", "", "[1,2,2,2],f32", *operands)
    assert made.tolist() == [[[[2.0, 0.0], [0.0, 0.0]], [[5.0, 0.0], [1.0, 0.0]]]]


@pytest.mark.parametrize(
    ("name", "attributes", "types", "opset", "covered"),
    [
        ("Resize", {"torch.onnx.mode", "name"}, ["f32"], 13, True),
        ("Resize", {"torch.onnx.mode", "name"}, ["f32"], 12, False),  # with modes that were taken away
        ("Resize", {"torch.onnx.antialias", "name"}, ["f32"], 18, False),
        ("Softmax", {"torch.onnx.axis"}, ["f32"], 13, True),
        ("Softmax", {"torch.onnx.axis"}, ["f32"], 11, False),  # of all axes from that one on
        ("Clip", {"torch.onnx.min"}, ["f32"], 6, False),
        ("Add", set(), ["ui32"], 17, False),  # which torch cannot add
        ("Cast", {"torch.onnx.to"}, ["ui32"], 17, True),
        ("Add", set(), ["f32"], None, False),
        ("NonMaxSuppression", set(), ["f32"], 17, False),
    ],
)
def test_what_is_covered(name: str, attributes: set[str], types: list[str], opset: int | None, covered: bool):
    assert covers(name, attributes, [f"!torch.vtensor<[2],{type_}>" for type_ in types], opset) is covered


def test_an_operator_that_there_is_not(onnx):
    with pytest.raises(UncoveredOp, match="NonMaxSuppression"):
        onnx("NonMaxSuppression", "", "[1],f32", ("[1],f32", torch.ones(1)))


def test_a_quantized_convolution_with_a_scale_for_each_channel(onnx):
    """Channels of one weight each: 3·0.5·(2·1 + 4) and 3·0.5·(-1·2) + 5·(0.5·2), the bias in units of both scales."""
    operands = [
        ("[1,1,1],ui8", torch.tensor([[[13]]], dtype=torch.uint8)), ("[],f32", torch.tensor(0.5)),
        ("[],ui8", torch.tensor(10, dtype=torch.uint8)),
        ("[2,1,1],si8", torch.tensor([[[2]], [[-1]]], dtype=torch.int8)), ("[2],f32", torch.tensor([1.0, 2.0])),
        ("[2],si8", torch.tensor([-4, 0], dtype=torch.int8)),
        ("[],f32", torch.tensor(0.25)), ("[],si8", torch.tensor(-3, dtype=torch.int8)),
        ("[2],si32", torch.tensor([0, 5], dtype=torch.int32)),
    ]  # fmt: skip
    # 9 and 2 over 0.25 are 36 and 8.
    assert onnx("QLinearConv", "", "[1,2,1],si8", *operands).flatten().tolist() == [33, 5]


def test_bytes_for_the_range_that_there_is(evaluate):
    """-1 to 4 in 255 steps of 1/51: 0 is step 51, and 4 is 204 more."""
    text = """
    func.func @main(%x: !torch.vtensor<[3],f32>) -> (!torch.vtensor<[3],ui8>, !torch.vtensor<[],f32>,
        !torch.vtensor<[],ui8>) {
      %0:3 = torch.operator "onnx.DynamicQuantizeLinear"(%x) : (!torch.vtensor<[3],f32>)
        -> (!torch.vtensor<[3],ui8>, !torch.vtensor<[],f32>, !torch.vtensor<[],ui8>)
      return %0#0, %0#1, %0#2 : !torch.vtensor<[3],ui8>, !torch.vtensor<[],f32>, !torch.vtensor<[],ui8>
    }
    """
    codes, scale, zero = evaluate(text, torch.tensor([-1.0, 0.0, 4.0]))
    assert (codes.tolist(), zero.item()) == ([0, 51, 255], 51)
    assert scale.item() == pytest.approx(1 / 51, rel=1e-15)


@pytest.mark.parametrize(("pad", "sums"), [("SAME_UPPER", [3.0, 7.0, 5.0]), ("SAME_LOWER", [1.0, 5.0, 9.0])])
def test_as_many_windows_as_strides(onnx, pad: str, sums: list[float]):
    """1 to 5 in windows of 2 by 2: three, with the one element that they lack behind the last, or before the first."""
    x = ("[1,1,5],f32", torch.arange(1.0, 6.0).reshape(1, 1, 5))
    weight = ("[1,1,2],f32", torch.ones(1, 1, 2))
    attributes = f"{word('auto_pad', pad)}, {ints('strides', 2)}"
    assert onnx("Conv", attributes, "[1,1,3],f32", x, weight).flatten().tolist() == sums


def test_a_transposed_convolution_of_a_given_size(onnx):
    """1 and 2 spread over [1, 1, 1], two apart: 1 1 3 2 2. Of six the last is beyond; for four one is cut off."""
    x, weight = ("[1,1,2],f32", torch.tensor([[[1.0, 2.0]]])), ("[1,1,3],f32", torch.ones(1, 1, 3))
    attributes = f"{ints('strides', 2)}, {ints('output_shape', 6)}"
    assert onnx("ConvTranspose", attributes, "[1,1,6],f32", x, weight).flatten().tolist() == [
        1,
        1,
        3,
        2,
        2,
        0,
    ]
    for pad, expected in (("SAME_UPPER", [1, 1, 3, 2]), ("SAME_LOWER", [1, 3, 2, 2])):
        attributes = f"{ints('strides', 2)}, {word('auto_pad', pad)}"
        assert onnx("ConvTranspose", attributes, "[1,1,4],f32", x, weight).flatten().tolist() == expected


def test_axes_before_opset_13(evaluate, onnx):
    x = ("[1,2],f32", torch.tensor([[1.0, 2.0]]))
    assert onnx("Squeeze", ints("axes", 0), "[2],f32", x).tolist() == [1.0, 2.0]
    assert onnx("Unsqueeze", ints("axes", 0, 3), "[1,1,2,1],f32", x).shape == (1, 1, 2, 1)
    assert onnx("ReduceSum", f"{ints('axes', 1)}, {one('keepdims', 0)}", "[1],f32", x).tolist() == [3.0]
    text = f"""
    func.func @main(%x: !torch.vtensor<[5],f32>) -> (!torch.vtensor<[2],f32>, !torch.vtensor<[3],f32>) {{
      %0:2 = torch.operator "onnx.Split"(%x) {{{ints("split", 2, 3)}}} : (!torch.vtensor<[5],f32>)
        -> (!torch.vtensor<[2],f32>, !torch.vtensor<[3],f32>)
      return %0#0, %0#1 : !torch.vtensor<[2],f32>, !torch.vtensor<[3],f32>
    }}
    """
    assert [part.tolist() for part in evaluate(text, torch.arange(5.0))] == [[0.0, 1.0], [2.0, 3.0, 4.0]]


def test_the_first_of_equal_elements(onnx):
    x = ("[4],f32", torch.tensor([1.0, 3.0, 3.0, 0.0]))
    assert onnx("ArgMax", one("keepdims", 0), "[],si64", x).item() == 1
    last = f"{one('keepdims', 0)}, {one('select_last_index', 1)}"
    assert onnx("ArgMax", last, "[],si64", x).item() == 2
    nan = ("[4],f32", torch.tensor([1.0, math.nan, 3.0, math.nan]))
    assert onnx("ArgMin", one("keepdims", 0), "[],si64", nan).item() == 1


@pytest.mark.parametrize(("name", "attributes"), [("Div", ""), ("Mod", "")])
@pytest.mark.parametrize("divisor", [0, -1])
def test_a_division_that_has_no_result(onnx, name: str, attributes: str, divisor: int):
    operands = [("[1],si32", torch.tensor([n], dtype=torch.int32)) for n in (-(2**31), divisor)]
    with pytest.raises(UndefinedResult, match=f"onnx.{name}"):
        onnx(name, attributes, "[1],si32", *operands)


def test_an_index_beyond(onnx):
    x = ("[3],f32", torch.arange(3.0))
    assert onnx("Gather", "", "[1],f32", x, ("[1],si64", torch.tensor([-1]))).tolist() == [2.0]
    with pytest.raises(UndefinedResult, match=r"onnx\.Gather has an index beyond the 3 there are"):
        onnx("Gather", "", "[1],f32", x, ("[1],si64", torch.tensor([3])))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ReduceSum", [-2.0, 3.0]),
        ("ReduceL1", [2.0, 3.0]),
        ("ReduceSumSquare", [4.0, 9.0]),
        ("ReduceL2", [2.0, 3.0]),
    ],
)
def test_a_reduction_of_no_axes_still_does_what_it_does_to_each(onnx, name: str, expected: list[float]):
    x = ("[2],f32", torch.tensor([-2.0, 3.0]))
    assert onnx(name, one("noop_with_empty_axes", 1), "[2],f32", x).tolist() == expected


def test_a_result_of_another_kind_of_number_is_none(onnx):
    """The root of whole numbers is none, and how it is made one ONNX leaves open."""
    x = ("[2],si32", torch.tensor([1, 1], dtype=torch.int32))
    with pytest.raises(UncoveredOp, match=r"its result is torch\.float32, in the program si32"):
        onnx("ReduceL2", ints("axes", 0), "[1],si32", x)
    assert not covers("ReduceL2", [], ["!torch.vtensor<[2],si32>"], 13)
    assert not covers("Gemm", [], ["!torch.vtensor<[2,2],si32>"], 13)


def test_a_range(onnx):
    """Of whole numbers all the way: 2^24 + 3 is none of f32. Without a step there is none."""

    def ranged(*numbers: int) -> torch.Tensor:
        return onnx("Range", "", "[?],si64", *(("[],si64", torch.tensor(number)) for number in numbers))

    assert ranged(2**24, 2**24 + 3, 1).tolist() == [2**24, 2**24 + 1, 2**24 + 2]
    assert ranged(5, 0, -2).tolist() == [5, 3, 1]
    assert ranged(0, 5, -1).tolist() == []
    with pytest.raises(UndefinedResult, match="takes no steps"):
        ranged(1, 5, 0)
    start, limit, step = (("[],f32", torch.tensor(number)) for number in (0.0, 1.0, 0.0))
    with pytest.raises(UndefinedResult, match="takes no steps"):
        onnx("Range", "", "[?],f32", start, limit, step)
