"""The code of a dispatch, as read from a run directory's text."""

from __future__ import annotations

import json

import pytest

from numtrace.dumps.code import alone_folder, read_code, without_locations
from numtrace.dumps.schema import Site, Variant

FLOW = """\
module attributes {stream.affinity.default = #hal.device.affinity<@__device_0>} {
  util.global private @w : tensor<4xf32> loc("numtrace.1")
  flow.executable private @main$async_dispatch_0 {
    flow.executable.export public @main$async_dispatch_0_slow_memcpy workgroups() -> (index, index, index) {
      flow.return %x, %y, %z : index, index, index loc("numtrace.2")
    } loc("numtrace.2")
  } loc("numtrace.2")
  flow.executable private @"odd name" {
    flow.executable.export public @f workgroups() -> (index, index, index) {
    } loc("numtrace.3")
    builtin.module {
      func.func @f(%arg0: !t<readonly:tensor<4xf32>> loc("/a (b)/x.mlir":1:2), %arg1: index loc(unknown)) {
        %cst = arith.constant 0.000000e+00 : f32 loc(unknown)
        %0 = linalg.fill ins(%cst : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32> loc("numtrace.3")
        %1 = linalg.generic {} ins(%0 : tensor<4xf32>) {
        ^bb0(%in: f32 loc("numtrace.3")):
          %2 = arith.addf %in, %in : f32 loc(fused["numtrace.4", callsite("numtrace.3" at "x")])
          linalg.yield %2 : f32 loc("numtrace.4")
        } -> tensor<4xf32> loc("numtrace.4")
        return loc("numtrace.4")
      } loc("numtrace.4")
    } loc("numtrace.4")
  } loc("numtrace.4")
} loc("numtrace.0")
"""
NAMES = ["module", "w", "pad", "conv_1", "add_1"]


def site(number, dispatch):
    return Site(
        id=f"main/{number}", dispatch=dispatch, op="o", ops=[], module="", location="", dtype="f32", shape=[4],
        match="verified",
    )  # fmt: skip


@pytest.fixture
def run(tmp_path):
    (tmp_path / "variants" / "baseline").mkdir(parents=True)
    (tmp_path / "model").mkdir()
    (tmp_path / "variants" / "baseline" / "flow.mlir").write_text(FLOW)
    table = [{"number": number, "name": name} for number, name in enumerate(NAMES)]
    (tmp_path / "model" / "ops.json").write_text(json.dumps(table))
    return tmp_path


def variant(*sites):
    return Variant(
        name="baseline", passes=[], pipeline=None, flags=[], status="ran", directory="variants/baseline",
        sites=list(sites),
    )  # fmt: skip


def test_the_body_with_the_names_of_its_ops(run):
    mine = site("1.0", "f")
    code = read_code(run, variant(site("0.0", "main$async_dispatch_0_slow_memcpy"), mine), mine)
    assert code is not None
    assert (code.executable, code.entry, code.shared, code.lowering) == ("odd name", "f", (), None)
    assert code.body == (
        "func.func @f(%arg0: !t<readonly:tensor<4xf32>>, %arg1: index) {",
        "  %cst = arith.constant 0.000000e+00 : f32",
        "  %0 = linalg.fill ins(%cst : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>  // conv_1",
        "  %1 = linalg.generic {} ins(%0 : tensor<4xf32>) {",
        "  ^bb0(%in: f32):",
        "    %2 = arith.addf %in, %in : f32  // add_1 + conv_1",
        "    linalg.yield %2 : f32",
        "  } -> tensor<4xf32>",
        "  return",
        "}",
    )


def test_a_shared_body_names_no_ops_since_they_are_those_of_one_of_them(run):
    sites = [site("1.0", "f"), site("1.1", "f"), site("5.0", "f"), site("7.0", "g"), site("9.0", "f")]
    code = read_code(run, variant(*sites), sites[0])
    assert code is not None
    assert code.shared == ("main/5", "main/9")
    assert not any("//" in line for line in code.body)


def test_how_it_was_lowered_once_it_was_compiled_alone(run):
    mine = site("1.0", "f")
    folder = alone_folder(run / "variants" / "baseline", mine) / "own" / "code"
    folder.mkdir(parents=True)
    (folder / "configured_module_odd name.mlir").write_text(
        "  %0 = linalg.fill {lowering_config = #a<b = [1]>}\n"
    )
    code = read_code(run, variant(mine), mine)
    assert code is not None and code.lowering is not None
    assert code.lowering.configurations == (("linalg.fill", "b = [1]"),)
    assert code.dumped == folder


def test_what_is_not_there(run):
    mine = site("1.0", "nowhere")
    code = read_code(run, variant(mine), mine)
    assert code is not None and code.body == ()
    (run / "variants" / "baseline" / "flow.mlir").unlink()
    assert read_code(run, variant(mine), mine) is None


def test_locations_nest_and_hold_brackets():
    assert without_locations('a loc(fused["x)", loc("y")]) b loc("z (1)")') == ("a b", ' loc("z (1)")')
    assert without_locations("a location(b)") == ("a location(b)", "")
