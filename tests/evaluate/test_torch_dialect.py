# ruff: noqa: E501 (lines of MLIR)
"""The torch dialect: exported modules against torch itself, and single ops with values by hand."""

import numpy as np
import pytest
import torch
from torch import nn

from numtrace.errors import UncoveredOp, UndefinedResult
from numtrace.evaluate.flow import parameter_key
from numtrace.evaluate.machine import Machine
from numtrace.evaluate.program import Program
from numtrace.importers.torch_program import export_module


class Block(nn.Module):
    """Every op of a VAE decoder, and a few more."""

    def __init__(self):
        super().__init__()
        self.norm = nn.GroupNorm(2, 4)
        self.conv = nn.Conv2d(4, 6, 3, stride=2, padding=1, dilation=2)
        self.linear = nn.Linear(6, 6)

    def forward(self, x):
        x = self.conv(nn.functional.silu(self.norm(x)))
        x = nn.functional.interpolate(x, scale_factor=2.0, mode="nearest")
        rows = x.flatten(2).transpose(1, 2)
        x = torch.softmax(self.linear(rows) @ rows.transpose(1, 2) / 3, dim=-1)
        return torch.add(x, rows.sum(-1, keepdim=True), alpha=0.5)


def run_exported(module, *inputs):
    program = Program.parse(export_module(module.eval(), inputs))
    state = {f"model::{name}": value for name, value in module.state_dict().items()}
    keys = {symbol: parameter_key(op.attributes["initial_value"]) for symbol, op in program.globals.items()}
    machine = Machine(program, {symbol: state["::".join(key)] for symbol, key in keys.items()})
    return machine.run(program.functions["main"].regions[0], inputs)[0]


def test_an_exported_module_is_torch_in_float64():
    torch.manual_seed(0)
    module = Block()
    x = torch.randn(2, 4, 8, 6)
    result = run_exported(module, x)
    with torch.no_grad():
        expected = module.double()(x.double())
    assert result.dtype == torch.float64
    np.testing.assert_allclose(result.numpy(), expected.numpy(), rtol=0, atol=1e-14)


class Demoted(nn.Module):
    def forward(self, x):
        return (x.to(torch.bfloat16) * 3).to(torch.float32)


def test_casts_between_float_types_are_the_identity():
    x = torch.tensor([1.0 + 2.0**-12, 0.1])
    assert run_exported(Demoted(), x).tolist() == (x.double() * 3).tolist()


class Integers(nn.Module):
    def forward(self, i, x):
        return torch.where((i // 2) % 2 == 1, x.to(torch.int32).to(torch.float32), x + i)


def test_integer_ops_and_casts_to_integers_are_kept():
    i, x = torch.tensor([0, 1, 2, 3]), torch.tensor([1.75, -2.5, 1.75, -2.5])
    assert run_exported(Integers(), i, x).tolist() == [1.75, -1.5, 1.0, -2.0]


def single(line, inputs, results):
    arguments = ", ".join(f"%{name}: {type_}" for name, type_ in inputs)
    return f"""
    func.func @main({arguments}) -> {results} {{
      %none = torch.constant.none
      %half = torch.constant.float 5.0e-1
      %one = torch.constant.int 1
      %bf16 = torch.constant.int 15
      %true = torch.constant.bool true
      {line}
      return %r : {results}
    }}
    """


def test_add_takes_alpha(evaluate):
    type_ = "!torch.vtensor<[2],f32>"
    line = f"%r = torch.aten.add.Tensor %a, %b, %half : {type_}, {type_}, !torch.float -> {type_}"
    text = single(line, [("a", type_), ("b", type_)], type_)
    (result,) = evaluate(text, torch.tensor([1.0, 2.0]), torch.tensor([10.0, 20.0]))
    assert result.tolist() == [6.0, 12.0]


def test_softmax_in_float64_has_no_half_to_float(evaluate):
    type_ = "!torch.vtensor<[1,2],f16>"
    line = f"%r = torch.aten._softmax %a, %one, %true : {type_}, !torch.int, !torch.bool -> !torch.vtensor<[1,2],f32>"
    text = single(line, [("a", type_)], "!torch.vtensor<[1,2],f32>")
    (result,) = evaluate(text, torch.tensor([[0.0, 1.0]]).half())
    np.testing.assert_allclose(result.numpy(), [[1 / (1 + np.e), np.e / (1 + np.e)]], rtol=1e-15)


def test_a_conversion_to_bf16_keeps_float64(evaluate):
    line = (
        "%r = torch.prims.convert_element_type %a, %bf16 : !torch.vtensor<[1],f32>, !torch.int"
        " -> !torch.vtensor<[1],bf16>"
    )
    text = single(line, [("a", "!torch.vtensor<[1],f32>")], "!torch.vtensor<[1],bf16>")
    (result,) = evaluate(text, torch.tensor([0.1]))
    assert (result.dtype, result.item()) == (torch.float64, 13421773 * 2.0**-27)


def test_a_literal(evaluate):
    line = "%r = torch.vtensor.literal(dense<[1.5, -2.0]> : tensor<2xf32>) : !torch.vtensor<[2],f32>"
    assert evaluate(single(line, [], "!torch.vtensor<[2],f32>"))[0].tolist() == [1.5, -2.0]


@pytest.mark.parametrize(
    ("number", "type_", "dtype"),
    [
        ("int 9007199254740993", "si64", torch.int64),  # 2**53 + 1, which no float64 is
        ("float 1.000000e-01", "f64", torch.float64),
        ("float 1.000000e-01", "f32", torch.float64),
    ],
)
def test_a_number_as_a_tensor(evaluate, number, type_, dtype):
    kind, value = number.split()
    line = (
        f"%n = torch.constant.{number}\n"
        f"%r = torch.prim.NumToTensor.Scalar %n : !torch.{kind} -> !torch.vtensor<[],{type_}>"
    )
    (result,) = evaluate(single(line, [], f"!torch.vtensor<[],{type_}>"))
    assert (result.dtype, result.shape, result.item()) == (
        dtype,
        (),
        {"int": int, "float": float}[kind](value),
    )


class Quotients(nn.Module):
    def forward(self, a):
        return torch.div(a, 3, rounding_mode="floor") - torch.div(a, 3, rounding_mode="trunc") * 10


def test_quotients_of_integers_and_a_number():
    """Floors of -7/3 and 7/3 are -3 and 2, truncated they are -2 and 2; 2**60 + 3 has no float64."""
    a = torch.tensor([-7, 7, 2**60 + 3])
    third = (2**60 + 3) // 3
    assert run_exported(Quotients(), a).tolist() == [-3 + 20, 2 - 20, -9 * third]


def test_an_op_that_torch_lacks_is_uncovered(evaluate):
    line = (
        '%r = torch.operator "torch.aten.nonsense"(%a) : (!torch.vtensor<[1],f32>) -> !torch.vtensor<[1],f32>'
    )
    text = single(line, [("a", "!torch.vtensor<[1],f32>")], "!torch.vtensor<[1],f32>")
    with pytest.raises(UncoveredOp, match=r"torch\.aten\.nonsense"):
        evaluate(text, torch.zeros(1))


@pytest.mark.parametrize(
    ("line", "second", "says"),
    [
        (
            "%r = torch.aten.floor_divide %a, %b : !torch.vtensor<[1],si64>, !torch.vtensor<[1],si64> -> !torch.vtensor<[1],si64>",
            [0],
            "ZeroDivisionError",
        ),
        (
            "%d = torch.constant.int 0\n%r = torch.aten.index_select %a, %d, %b : !torch.vtensor<[1],si64>, !torch.int, !torch.vtensor<[1],si64> -> !torch.vtensor<[1],si64>",
            [9],
            "out of range",
        ),
    ],
)
def test_what_torch_refuses_for_its_operands_is_undefined(evaluate, line, second, says):
    kind = "!torch.vtensor<[1],si64>"
    text = single(line, [("a", kind), ("b", kind)], kind)
    with pytest.raises(UndefinedResult, match=f"is refused by torch .*{says}.*: its result is undefined"):
        evaluate(text, torch.tensor([5]), torch.tensor(second))


class Gates(nn.Module):
    def forward(self, x):
        a, b, c = x.chunk(3, dim=1)
        first, second = torch.unbind(c)
        return a * b + torch.stack([second, first])


def test_lists_of_tensors_are_taken_apart():
    """(1, 7)·(2, 8) plus (9, 3)."""
    x = torch.tensor([[1.0, 2.0, 3.0], [7.0, 8.0, 9.0]])
    assert run_exported(Gates(), x).tolist() == [[1 * 2 + 9], [7 * 8 + 3]]


class Ordered(nn.Module):
    def __init__(self, pick):
        super().__init__()
        self._pick = pick

    def forward(self, x):
        return self._pick(x)


@pytest.mark.parametrize(
    ("pick", "indices"),
    [
        (lambda x: torch.topk(x, 3)[1], [1, 2, 4]),
        (lambda x: torch.topk(x, 2, largest=False)[1], [0, 3]),
        (lambda x: torch.sort(x)[1], [0, 3, 1, 2, 4]),
        (lambda x: torch.argsort(x, descending=True), [1, 2, 4, 0, 3]),
    ],
)
def test_of_equal_elements_the_first_comes_first(pick, indices):
    """Torch leaves it open; what numtrace evaluates below it is stable."""
    assert run_exported(Ordered(pick), torch.tensor([1.0, 3, 3, 1, 3])).tolist() == indices


def test_what_hands_values_on(evaluate):
    text = """
    func.func private @twice(%a: !torch.vtensor<[2],f32>) -> !torch.vtensor<[2],f32> {
      %0 = torch.aten.add.Tensor %a, %a, %one : !torch.vtensor<[2],f32>, !torch.vtensor<[2],f32>, !torch.int -> !torch.vtensor<[2],f32>
      return %0 : !torch.vtensor<[2],f32>
    }
    func.func @main(%a: !torch.vtensor<[2],f32>, %b: !torch.vtensor<[2],f32>) -> !torch.vtensor<[2],f32> {
      %0 = torch.copy.to_tensor %a : !torch.tensor<[2],f32>
      %1 = torch.copy.to_vtensor %0 : !torch.vtensor<[2],f32>
      %2 = torch.tensor_static_info_cast %1 : !torch.vtensor<[2],f32> to !torch.vtensor<[?],f32>
      %3 = torch.tensor_static_info_cast %2 : !torch.vtensor<[?],f32> to !torch.vtensor<[2],f32>
      %4 = torch.prim.TupleConstruct %3, %b : !torch.vtensor<[2],f32>, !torch.vtensor<[2],f32> -> !torch.tuple<vtensor<[2],f32>, vtensor<[2],f32>>
      %5:2 = torch.prim.TupleUnpack %4 : !torch.tuple<vtensor<[2],f32>, vtensor<[2],f32>> -> !torch.vtensor<[2],f32>, !torch.vtensor<[2],f32>
      %6 = torch.prim.ListConstruct %5#1, %5#0 : (!torch.vtensor<[2],f32>, !torch.vtensor<[2],f32>) -> !torch.list<vtensor<[2],f32>>
      %7:2 = torch.prim.ListUnpack %6 : !torch.list<vtensor<[2],f32>> -> !torch.vtensor<[2],f32>, !torch.vtensor<[2],f32>
      %8 = func.call @twice(%7#0) : (!torch.vtensor<[2],f32>) -> !torch.vtensor<[2],f32>
      %true = torch.constant.bool true
      %9 = torch_c.to_i1 %true
      %10 = torch_c.from_i1 %9
      torch.runtime.assert %10, "always"
      %one = torch.constant.int 1
      %11 = torch.aten.sub.Tensor %8, %7#1, %one : !torch.vtensor<[2],f32>, !torch.vtensor<[2],f32>, !torch.int -> !torch.vtensor<[2],f32>
      return %11 : !torch.vtensor<[2],f32>
    }
    """.replace("%0 = torch.aten.add", "%one = torch.constant.int 1\n      %0 = torch.aten.add")
    (result,) = evaluate(text, torch.tensor([1.0, 2.0]), torch.tensor([10.0, 20.0]))
    assert result.tolist() == [19.0, 38.0]  # 2·b - a


@pytest.mark.parametrize("holds", [True, False])
def test_an_assertion(evaluate, holds):
    text = """
    func.func @main(%a: !torch.vtensor<[1],f32>) -> !torch.vtensor<[1],f32> {
      %0 = torch.constant.bool WHAT
      torch.runtime.assert %0, "said"
      return %a : !torch.vtensor<[1],f32>
    }
    """.replace("WHAT", str(holds).lower())
    if holds:
        assert evaluate(text, torch.tensor([1.0]))[0].tolist() == [1.0]
    else:
        with pytest.raises(UndefinedResult, match="does not hold"):
            evaluate(text, torch.tensor([1.0]))


DROPPED = """
func.func @main(%x: !torch.vtensor<[4],f32>) -> !torch.vtensor<[4],f32> {{
  %p = torch.constant.float {share}
  %train = torch.constant.bool {train}
  %0:2 = torch.aten.native_dropout %x, %p, %train : !torch.vtensor<[4],f32>, !torch.float, !torch.bool
      -> !torch.vtensor<[4],f32>, !torch.vtensor<[4],i1>
  return %0#0 : !torch.vtensor<[4],f32>
}}
"""


@pytest.mark.parametrize(("share", "train"), [("0.5", "false"), ("0.0", "true")])
def test_dropout_that_drops_nothing(evaluate, share: str, train: str):
    (made,) = evaluate(DROPPED.format(share=share, train=train), torch.arange(4.0))
    assert made.tolist() == [0.0, 1.0, 2.0, 3.0]


def test_random_numbers_have_no_reference(evaluate):
    with pytest.raises(UndefinedResult, match="native_dropout draws random numbers: its result is undefined"):
        evaluate(DROPPED.format(share="0.5", train="true"), torch.arange(4.0))
