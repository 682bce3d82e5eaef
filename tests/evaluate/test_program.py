import sys

import torch

from numtrace.evaluate.op import walk
from numtrace.evaluate.program import Program

SOURCE = """
#map = affine_map<(d0) -> (d0)>
util.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %half = arith.constant 0.5 : f32
  %data = arith.constant dense<1.0> : tensor<4xf32>
  %empty = tensor.empty() : tensor<4xf32>
  %0 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%empty : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %i = linalg.index 0 : index
    %1 = arith.index_cast %i : index to i32
    %2 = arith.sitofp %1 : i32 to f32
    %3 = arith.mulf %2, %half : f32
    %4 = arith.addf %3, %in : f32
    linalg.yield %4 : f32
  } -> tensor<4xf32> loc("numtrace.7"("conv1"))
  %5 = arith.addf %0, %data : tensor<4xf32>
  util.return %5 : tensor<4xf32>
}
util.global private @w : tensor<2xf32>
util.initializer { util.return }
"""


def test_functions_globals_and_initializers_by_symbol():
    program = Program.parse(SOURCE)
    assert list(program.functions) == ["main"]
    assert list(program.globals) == ["w"]
    assert len(program.initializers) == 1


def test_index_arithmetic_is_what_no_tensor_data_flows_into():
    """With constants of enclosing blocks too: %3 multiplies an index by one."""
    typed = {op.name: op.typed for op in walk([Program.parse(SOURCE).functions["main"].regions[0]])}
    for name in ("linalg.index", "arith.index_cast", "arith.sitofp", "arith.mulf"):
        assert typed[name], name
    assert not typed["arith.addf"]
    assert not typed["linalg.generic"]


def test_shaped_constants_are_data():
    ops = Program.parse(SOURCE).functions["main"].regions[0].ops
    assert [op.typed for op in ops[:2]] == [True, False]


def test_a_value_dies_with_its_last_reader_regions_included():
    ops = Program.parse(SOURCE).functions["main"].regions[0].ops
    half, data, empty, generic, add, _ = ops
    assert set(generic.dead) == {half.results[0], empty.results[0]}
    assert set(add.dead) == {data.results[0], generic.results[0]}
    assert half.dead == []


def test_stamps_of_a_location():
    ops = Program.parse(SOURCE).functions["main"].regions[0].ops
    assert [op.stamps for op in ops] == [(), (), (), (7,), (), ()]


def test_named_ops_have_their_implicit_maps():
    program = Program.parse("""
    util.func public @main(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>, %c: tensor<2x4xf32>) -> tensor<2x4xf32> {
      %0 = linalg.matmul ins(%a, %b : tensor<2x3xf32>, tensor<3x4xf32>) outs(%c : tensor<2x4xf32>) -> tensor<2x4xf32>
      util.return %0 : tensor<2x4xf32>
    }
    """)
    matmul = program.functions["main"].regions[0].ops[0]
    assert [str(m) for m in matmul.maps] == [
        "(d0, d1, d2) -> (d0, d2)", "(d0, d1, d2) -> (d2, d1)", "(d0, d1, d2) -> (d0, d1)"
    ]  # fmt: skip


def test_no_module_is_looked_for_at_every_op(monkeypatch):
    """The bindings have none for torch, and do not remember it."""
    asked = []

    class Finder:
        def find_spec(self, name, path=None, target=None):
            asked.append(name)

    text = """
    func.func @main(%a: !torch.vtensor<[2],f32>) -> !torch.vtensor<[2],f32> {
      %0 = torch.aten.sin %a : !torch.vtensor<[2],f32> -> !torch.vtensor<[2],f32>
      return %0 : !torch.vtensor<[2],f32>
    }
    """
    monkeypatch.setattr(sys, "meta_path", [Finder(), *sys.meta_path])
    Program.parse(text)
    assert not [name for name in asked if name.endswith(".torch")]


DIVISION = """
util.func public @main(%a: tensor<3xi32>, %b: tensor<3xi32>) -> tensor<3xi32> {
  %e = tensor.empty() : tensor<3xi32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]} ins(%a, %b : tensor<3xi32>, tensor<3xi32>) outs(%e : tensor<3xi32>) {
  ^bb0(%x: i32, %y: i32, %o: i32):
    %0 = arith.sitofp %x : i32 to f32 loc("numtrace.1")
    %1 = arith.sitofp %y : i32 to f32 loc("numtrace.1")
    %2 = arith.divf %0, %1 : f32 loc("numtrace.DIV")
    %3 = math.floor %2 : f32 loc("numtrace.1")
    %4 = arith.fptosi %3 : f32 to i32 loc("numtrace.1")
    linalg.yield %4 : i32
  } -> tensor<3xi32>
  util.return %r : tensor<3xi32>
}
"""
#: The middle one has no f32: the neighbours are 33554432 and 33554436.
NUMBERS = torch.tensor([7, 33554435, -7], dtype=torch.int32), torch.tensor([2, 1, 2], dtype=torch.int32)


def test_an_integer_op_in_floats_rounds_as_these_do(evaluate):
    """No type of an op on integers asks for rounding: what its lowering rounds is another meaning."""
    (result,) = evaluate(DIVISION.replace("DIV", "1"), *NUMBERS)
    assert result.tolist() == [3, 33554436, -4]


def test_casts_that_the_source_has_are_exact(evaluate):
    """Here a division of floats is an op of the source, which asks for its roundings: they are erased."""
    (result,) = evaluate(DIVISION.replace("DIV", "2"), *NUMBERS)
    assert result.tolist() == [3, 33554435, -4]


def test_floats_that_an_integer_op_is_given_are_exact(evaluate):
    """As the scale of a quantized one: a number that is not whole."""
    text = DIVISION.replace("DIV", "1").replace(
        "%1 = arith.sitofp %y : i32 to f32", "%1 = arith.constant 0.1 : f32"
    )
    (result,) = evaluate(text, *NUMBERS)
    tenth = torch.tensor(0.1).double()
    assert result.tolist() == [int(torch.floor(number / tenth)) for number in (7.0, 33554435.0, -7.0)]


#: Divisions by %y and by %z of one %x, whose cast is the first one's: what is left of two that CSE went over.
SHARED = """
util.func public @main(%a: i32, %b: i32, %c: i32) -> (i32, i32) {
  %0 = arith.sitofp %a : i32 to f32 loc("numtrace.1")
  %1 = arith.sitofp %b : i32 to f32 loc("numtrace.1")
  %2 = arith.divf %0, %1 : f32 loc("numtrace.1")
  %3 = arith.fptosi %2 : f32 to i32 loc("numtrace.1")
  %4 = arith.sitofp %c : i32 to f32 loc("numtrace.2")
  %5 = arith.divf %0, %4 : f32 loc("numtrace.2")
  %6 = arith.fptosi %5 : f32 to i32 loc("numtrace.2")
  util.return %3, %6 : i32, i32
}
"""
DIVIDED = [torch.tensor(number, dtype=torch.int32) for number in (33554435, 1, 1)]


def test_integer_ops_that_share_a_cast_round_both(evaluate):
    assert [value.item() for value in evaluate(SHARED, *DIVIDED)] == [33554436, 33554436]


def test_a_float_op_that_shares_a_cast_with_an_integer_op_is_exact(evaluate):
    """A division of floats and a cast of its own: that is what the source asks for, and the cast is both's."""
    text = SHARED.replace(
        'fptosi %5 : f32 to i32 loc("numtrace.2")', 'fptosi %5 : f32 to i32 loc("numtrace.3")'
    )
    assert [value.item() for value in evaluate(text, *DIVIDED)] == [33554435, 33554435]


def test_what_the_body_of_a_source_op_does_is_exact(evaluate):
    """It says itself that it computes in f32: its roundings are asked for."""
    (result,) = evaluate(
        DIVISION.replace('"numtrace.DIV"', '"numtrace.1"').replace('.1")', '.1"("body"))'), *NUMBERS
    )
    assert result.tolist() == [3, 33554435, -4]
