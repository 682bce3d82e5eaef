"""ONNX models: names, parameters, external data, and what is refused."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from numtrace.errors import ModelError, UsageError
from numtrace.importers.onnx_model import read

onnx = pytest.importorskip("onnx", reason="the extra numtrace[onnx] is not installed")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

WEIGHT = np.arange(108, dtype=np.float32).reshape(4, 27)
BIAS = np.array([1, 2, 3, 4], np.float32)


def write(path: Path, *, batch: int | str = 2, nodes=None, functions=(), **saving) -> Path:
    nodes = nodes or [
        helper.make_node("Gemm", ["x", "fc.weight", "fc.bias"], ["y"], name="/net/fc/Gemm", transB=1),
        helper.make_node("Clip", ["y", "", "high"], ["c"]),
        helper.make_node("Clip", ["c", "low"], ["z"]),
    ]
    weights = {"fc.weight": WEIGHT, "fc.bias": BIAS, "high": np.float32(6), "low": np.float32(0)}
    graph = helper.make_graph(
        nodes,
        "some graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 27])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [batch, 4]) for name in ("z", "y")],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items()],
    )
    versions = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    model = helper.make_model(graph, opset_imports=versions, ir_version=10, functions=list(functions))
    onnx.save(model, path, **saving)
    return path


def locations(text: str) -> list[str]:
    from iree.compiler import ir

    module = ir.Module.parse(text, ir.Context())
    found = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "torch.operator":
            found.append(f"{op.attributes['name'].value} {op.location}")
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return [where for where in found if "Constant" not in where]


def test_nodes_have_their_names_and_modules(tmp_path: Path) -> None:
    text = read(write(tmp_path / "net.onnx")).text
    assert locations(text) == [
        'onnx.Gemm loc("/net/fc/Gemm"("net.fc"))',
        'onnx.Clip loc("Clip")',
        'onnx.Clip loc("Clip_1")',
    ]
    assert re.search(r"func\.func @main\(%arg0: !torch\.vtensor<\[2,27\],f32>", text)


def test_scopes_of_torch_s_exporter_are_the_module(tmp_path: Path) -> None:
    node = helper.make_node("Gemm", ["x", "fc.weight"], ["y"], name="node_linear", transB=1)
    entry = node.metadata_props.add()
    entry.key, entry.value = "pkg.torch.onnx.name_scopes", "['', 'block', 'block.fc', 'linear']"
    last = helper.make_node("Relu", ["y"], ["z"], name="relu")
    text = read(write(tmp_path / "net.onnx", nodes=[node, last])).text
    assert locations(text) == ['onnx.Gemm loc("node_linear"("block.fc"))', 'onnx.Relu loc("relu")']


def test_large_initialisers_are_parameters(tmp_path: Path) -> None:
    found = read(write(tmp_path / "net.onnx"))
    assert list(found.parameters) == ["fc.weight"]
    assert found.parameters["fc.weight"].tolist() == WEIGHT.tolist()
    assert '@fc.weight = #flow.parameter.named<"model"::"fc.weight"> : tensor<4x27xf32>' in found.text


def test_external_data_is_read_from_beside_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = read(write(tmp_path / "net.onnx"))
    folder = tmp_path / "external"
    folder.mkdir()
    path = write(folder / "net.onnx", save_as_external_data=True, location="net.data", size_threshold=0)
    assert (folder / "net.data").stat().st_size >= WEIGHT.nbytes + BIAS.nbytes
    monkeypatch.chdir(tmp_path)
    outside = read(path)
    assert outside.text == inside.text
    assert outside.parameters["fc.weight"].tolist() == WEIGHT.tolist()
    (folder / "net.data").unlink()
    with pytest.raises(ModelError, match=r"net\.onnx is no valid ONNX model: .*net\.data"):
        read(path)


def test_dynamic_dims_stay(tmp_path: Path) -> None:
    text = read(write(tmp_path / "net.onnx", batch="n")).text
    assert "%arg0: !torch.vtensor<[?,27],f32>" in text


def test_functions_of_the_model_are_inlined(tmp_path: Path) -> None:
    twice = helper.make_function(
        "own",
        "Twice",
        ["a"],
        ["b"],
        [helper.make_node("Add", ["a", "a"], ["b"])],
        [helper.make_opsetid("", 18)],
    )
    first = helper.make_node("Gemm", ["x", "fc.weight"], ["y"], name="gemm", transB=1)
    call = helper.make_node("Twice", ["y"], ["z"], domain="own")
    text = read(write(tmp_path / "net.onnx", nodes=[first, call], functions=[twice])).text
    assert [where.split()[0] for where in locations(text)] == ["onnx.Gemm", "onnx.Add"]


def test_what_is_no_onnx(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="there is no file"):
        read(tmp_path / "absent.onnx")
    (tmp_path / "text.onnx").write_text("no protobuf")
    with pytest.raises(ModelError, match=r"text\.onnx is no valid ONNX model"):
        read(tmp_path / "text.onnx")
    path = write(tmp_path / "op.onnx", nodes=[helper.make_node("Nope", ["x"], ["z"])])
    with pytest.raises(ModelError, match=r"op\.onnx is no valid ONNX model: .*Nope"):
        read(path)


def test_without_the_package_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "net.onnx")
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(
        UsageError, match=r"net\.onnx needs the onnx package: pip install 'numtrace\[onnx\]'$"
    ):
        read(path)
