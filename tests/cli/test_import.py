"""Models of other frameworks end to end: imported first, or in the run itself; StableHLO and TOSA as they are."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import pytest
from commands import Run, variants

NET = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 2)
        nn.init.constant_(self.fc.weight, 2.0)
        nn.init.constant_(self.fc.bias, 0.5)

    def forward(self, x, *, shift):
        return torch.relu(self.fc(x) - shift)

def make():
    print("about to make it")
    return Net().eval(), (torch.tensor([[1.0, 2.0]]),), {"shift": torch.tensor([0.0, 100.0])}

def fail():
    return {}["weights"]
"""

#: relu([[6.5, -93.5]]), of the factory's inputs.
RIGHT = [[6.5, 0.0]]

STABLEHLO = """
func.func @main(%x: tensor<2x3xf32>, %w: tensor<3x2xf32>) -> tensor<2x2xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<2x2xf32>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32> loc("dot_0"("net.fc"))
  %r = stablehlo.maximum %y, %zero : tensor<2x2xf32>
  return %r : tensor<2x2xf32>
}
"""

TOSA = """
func.func @main(%x: tensor<1x2x3xf32>, %w: tensor<1x3x2xf32>) -> tensor<1x2x2xf32> {
  %zero = "tosa.const"() <{values = dense<0.0> : tensor<1xf32>}> : () -> tensor<1xf32>
  %y = tosa.matmul %x, %w, %zero, %zero
      : (tensor<1x2x3xf32>, tensor<1x3x2xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x2x2xf32> loc("dot_0"("net.fc"))
  %r = "tosa.clamp"(%y) <{min_val = 0.0 : f32, max_val = 10.0 : f32}> : (tensor<1x2x2xf32>) -> tensor<1x2x2xf32>
  return %r : tensor<1x2x2xf32>
}
"""


@pytest.fixture
def net(tmp_path: Path) -> Path:
    (tmp_path / "net.py").write_text(NET)
    return tmp_path


def output(run: Path) -> list:
    return np.load(run / "variants" / "baseline" / "exact0.npy").tolist()


def test_import_prints_the_line_that_runs_it(numtrace: Run, net: Path) -> None:
    done = numtrace("import", "net:make", "-o", "out/net.mlir")
    assert done.code == 0, done.err
    assert done.out.splitlines() == [
        "numtrace run out/net.mlir --params=model=out/net.irpa --input=@out/net.input0.npy --input=@out/net.input1.npy"
    ]
    assert sorted(path.name for path in (net / "out").iterdir()) == [
        "net.input0.npy",
        "net.input1.npy",
        "net.irpa",
        "net.mlir",
    ]
    ran = numtrace(*shlex.split(done.out)[1:], "--json", "-o", "run")
    assert ran.code == 0, ran.err
    assert ran.document["reference"]["kind"] == "torch"
    assert output(net / "run") == RIGHT


def test_a_factory_is_a_model(numtrace: Run, net: Path) -> None:
    ran = numtrace("run", "net:make", "--json", "-o", "run")
    assert ran.code == 0, ran.err
    assert ran.document["model"]["path"] == "net:make"
    assert [given["source"] for given in ran.document["model"]["inputs"]] == ["example", "example"]
    assert output(net / "run") == RIGHT
    sites = variants(ran.document)["baseline"]["sites"]
    assert {"fc"} <= {site["module"] for site in sites}
    assert "about to make it" in (net / "run" / "model" / "import.log").read_text()
    other = numtrace("run", "net:make", "--seed", "3", "--json", "-o", "seeded")
    assert [given["source"] for given in other.document["model"]["inputs"]] == ["seed 3", "seed 3"]


def test_a_failing_factory_is_one_sentence(numtrace: Run, net: Path) -> None:
    done = numtrace("run", "net:fail")
    assert done.code == 2
    assert done.said == "numtrace: net:fail failed: KeyError: 'weights' (net.py:20, in fail)\n"
    assert [path.name for path in net.iterdir() if path.name.startswith("numtrace-run")] == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["import", "model.mlir"], "model.mlir is nothing to import"),
        (["import", "net:make", "-o", "net"], "net was given for the model, a name that ends in .mlir"),
        (["run", "net:make", "--attention", "op"], "--attention chooses a form of a built-in model"),
        (["run", "net:make", "--params", "model=x.irpa"], "net:make has its parameters in itself"),
        (["run", "absent.onnx"], "there is no file absent.onnx"),
        (["run", "absent.pt2"], "there is no file absent.pt2"),
    ],
)
def test_bad_usage(numtrace: Run, net: Path, arguments: list[str], says: str) -> None:
    done = numtrace(*arguments)
    assert done.code == 2
    assert says in done.said
    assert done.said.count("\n") == 1


def test_an_onnx_model_by_its_nodes(numtrace: Run, tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx", reason="the extra numtrace[onnx] is not installed")
    from onnx import TensorProto, helper, numpy_helper

    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["y"], name="/net/fc/Gemm"),
        helper.make_node("Softmax", ["y"], ["z"]),
    ]
    weights = {"w": np.full((64, 2), 0.125, np.float32), "b": np.array([0, np.log(3)], np.float32)}
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 64])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 2]) for name in ("z", "y")],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    onnx.save(model, tmp_path / "net.onnx")
    ran = numtrace("run", "net.onnx", "--input", "1x64xf32=1", "--json", "-o", "run")
    assert ran.code == 0, ran.err
    assert ran.document["reference"]["kind"] == "onnx"
    np.testing.assert_allclose(output(tmp_path / "run"), [[0.25, 0.75]], atol=1e-7)
    sites = variants(ran.document)["baseline"]["sites"]
    assert ("/net/fc/Gemm", "net.fc") in {(site["op"], site["module"]) for site in sites}
    assert "Softmax" in {op for site in sites for op in site["ops"]}


def test_an_onnx_model_without_outputs_has_nothing_to_compare(numtrace: Run, tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx", reason="the extra numtrace[onnx] is not installed")
    from onnx import TensorProto, helper

    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "graph", inputs, [])
    opsets = [helper.make_opsetid("", 18)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), tmp_path / "net.onnx")
    ran = numtrace("run", "net.onnx")
    assert ran.code == 2
    assert ran.said == (
        "numtrace: main returns nothing: the model has no output, and there is nothing to compare\n"
    )


@pytest.mark.parametrize(("text", "batch"), [(STABLEHLO, ""), (TOSA, "1x")], ids=["stablehlo", "tosa"])
def test_what_iree_s_input_conversion_takes(numtrace: Run, tmp_path: Path, text: str, batch: str) -> None:
    (tmp_path / "net.mlir").write_text(text)
    inputs = ["--input", f"{batch}2x3xf32=1 2 3 4 5 6", "--input", f"{batch}3x2xf32=1 -1 0 0 1 -1"]
    ran = numtrace("run", "net.mlir", *inputs, "--json", "-o", "run")
    assert ran.code == 0, ran.err
    # [1 2 3; 4 5 6] · [1 -1; 0 0; 1 -1] = [4 -4; 10 -10], without the negative ones.
    assert np.ravel(output(tmp_path / "run")).tolist() == [4, 0, 10, 0]
    assert ran.document["reference"]["kind"] == "self"
    baseline = variants(ran.document)["baseline"]
    assert baseline["verdict"] == "ok"
    assert baseline["coverage"]["verified"] == baseline["coverage"]["sites"] > 0
    assert "dot_0" in {op for site in baseline["sites"] for op in site["ops"]}
    assert "net.fc" in {site["module"] for site in baseline["sites"]}
