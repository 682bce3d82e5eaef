"""ONNX models as exporters write them, through the command: what is exact of them was worked out in numpy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from commands import Result, Run

onnx = pytest.importorskip("onnx", reason="the extra numtrace[onnx] is not installed")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

#: Of GRU: steps, batch, inputs, hidden.
STEPS, BATCH, INPUTS, HIDDEN = 3, 2, 4, 5


def save(
    path: Path, nodes: list, x: tuple[int, ...], y: tuple[int, ...], arrays: dict[str, np.ndarray], **saving
) -> None:
    """A model of x and y, both f32; ``arrays`` are its initializers."""
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, y)],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    onnx.save(model, path, **saving)


def is_right(done: Result, folder: Path, expected: np.ndarray, within: float) -> None:
    """The run says ``ok``, and what it takes for exact is."""
    assert done.code == 0, done.err
    (baseline,) = done.document["variants"]
    assert baseline["verdict"] == "ok", baseline["reason"]
    made = np.load(folder / "run" / "variants" / "baseline" / "exact0.npy")
    assert made.shape == expected.shape
    assert made == pytest.approx(expected, rel=0, abs=within)


def gru(x: np.ndarray, w: np.ndarray, r: np.ndarray, b: np.ndarray, h: np.ndarray) -> np.ndarray:
    """Every state, by the equations in ONNX's text with ``linear_before_reset`` 0: gates in the order z, r, h."""
    (wz, wr, wh), (rz, rr, rh) = np.split(w, 3), np.split(r, 3)
    bz, br, bh = np.split(b[: len(b) // 2] + b[len(b) // 2 :], 3)
    states = []
    for row in x:
        z = 1 / (1 + np.exp(-(row @ wz.T + h @ rz.T + bz)))
        reset = 1 / (1 + np.exp(-(row @ wr.T + h @ rr.T + br)))
        new = np.tanh(row @ wh.T + (reset * h) @ rh.T + bh)
        h = (1 - z) * new + z * h
        states.append(h)
    return np.stack(states)


@pytest.mark.parametrize("start", [None, 0.5], ids=["from zero", "from an initializer"])
def test_a_gru(numtrace: Run, tmp_path: Path, start: float | None) -> None:
    """A loop whose body reads what is outside of it; the state that it starts with may be a constant."""
    draw = np.random.default_rng(0)
    shapes = {"w": (3 * HIDDEN, INPUTS), "r": (3 * HIDDEN, HIDDEN), "b": (6 * HIDDEN,)}
    arrays = {name: draw.standard_normal((1, *shape)).astype(np.float32) for name, shape in shapes.items()}
    h = np.full((1, BATCH, HIDDEN), start or 0.0, np.float32)
    given = ["x", "w", "r", "b"] if start is None else ["x", "w", "r", "b", "", "h"]
    node = helper.make_node("GRU", given, ["y"], name="gru", hidden_size=HIDDEN)
    sizes = (STEPS, BATCH, INPUTS), (STEPS, 1, BATCH, HIDDEN)
    save(tmp_path / "gru.onnx", [node], *sizes, arrays if start is None else arrays | {"h": h})
    x = draw.standard_normal(sizes[0]).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    done = numtrace("run", "gru.onnx", "--input", "@x.npy", "--json", "-o", "run")
    w, r, b = (arrays[name][0].astype(float) for name in ("w", "r", "b"))
    is_right(done, tmp_path, gru(x.astype(float), w, r, b, h[0].astype(float))[:, None], 1e-12)


def raw(name: str, value: list, dtype: type) -> object:
    """A Constant node as exporters write it: its elements are bytes."""
    node = helper.make_node("Constant", [], [name], value=numpy_helper.from_array(np.array(value, dtype)))
    assert node.attribute[0].t.raw_data
    return node


def test_constants_in_raw_bytes(numtrace: Run, tmp_path: Path) -> None:
    """What is negative of (1, -2, 3; -4, 5, -6) times (2, 0.5, -1), but the middle column as it is."""
    nodes = [raw("slope", [2, 0.5, -1], np.float32), raw("mask", [True, False, True], np.bool_)]
    nodes += [helper.make_node("PRelu", ["x", "slope"], ["p"])]
    nodes += [helper.make_node("Where", ["mask", "p", "x"], ["y"])]
    save(tmp_path / "net.onnx", nodes, (2, 3), (2, 3), {})
    done = numtrace("run", "net.onnx", "--input", "2x3xf32=1 -2 3 -4 5 -6", "--json", "-o", "run")
    assert done.document["reference"]["kind"] == "onnx", "each op is one that numtrace reads by itself"
    is_right(done, tmp_path, np.array([[1.0, -2, 3], [-8, 5, 6]]), 0)


def test_a_shape_in_raw_bytes(numtrace: Run, tmp_path: Path) -> None:
    nodes = [raw("to", [3, 2], np.int64), helper.make_node("Reshape", ["x", "to"], ["y"])]
    save(tmp_path / "net.onnx", nodes, (2, 3), (3, 2), {})
    done = numtrace("run", "net.onnx", "--input", "2x3xf32=1 -2 3 -4 5 -6", "--json", "-o", "run")
    is_right(done, tmp_path, np.array([[1.0, -2], [3, -4], [5, -6]]), 0)


def test_names_with_quotes(numtrace: Run, tmp_path: Path) -> None:
    """One of a parameter, one of a constant: 64 times 0.125, and the bias."""
    weight, bias = np.full((64, 2), 0.125, np.float32), np.array([1, -1], np.float32)
    nodes = [
        helper.make_node("MatMul", ["x", 'the "weight"'], ["p"]),
        helper.make_node("Add", ["p", '"bias" \\'], ["y"]),
    ]
    arrays = {'the "weight"': weight, '"bias" \\': bias}
    save(tmp_path / "net.onnx", nodes, (1, 64), (1, 2), arrays)
    done = numtrace("run", "net.onnx", "--input", "1x64xf32=1", "--json", "-o", "run")
    is_right(done, tmp_path, np.array([[9.0, 7.0]]), 0)


@pytest.mark.parametrize(
    ("count", "says"),
    [(2, "net.onnx is no valid ONNX model"), (128, "the elements of w cannot be read")],
    ids=["of a constant", "of a parameter"],
)
def test_external_data_that_are_cut_off(numtrace: Run, tmp_path: Path, count: int, says: str) -> None:
    node = helper.make_node("Add", ["x", "w"], ["y"])
    arrays = {"w": np.ones(count, np.float32)}
    external = {"save_as_external_data": True, "location": "net.data", "size_threshold": 0}
    save(tmp_path / "net.onnx", [node], (count,), (count,), arrays, **external)
    data = tmp_path / "net.data"
    data.write_bytes(data.read_bytes()[: 4 * count - 5])
    done = numtrace("run", "net.onnx", "--json", "-o", "run")
    assert (done.code, done.out) == (2, "")
    assert done.said.startswith(f"numtrace: {says}: ")
    assert f"{4 * count - 5} bytes" in done.said
    assert done.said.count("\n") == 1


def test_of_ops_in_one_dispatch_the_one_that_is_read_otherwise_is_named(
    numtrace: Run, tmp_path: Path
) -> None:
    """IREE's tanh-Gelu has 0.797724 for sqrt(2/pi); the dispatch stores what Softplus and Tanh, both right, make of it.

    The Gelu is off by 5.1e-5 at most, of which Softplus and Tanh leave a third.
    """
    nodes = [
        helper.make_node("Gelu", ["x"], ["g"], approximate="tanh"),
        helper.make_node("Softplus", ["g"], ["s"]),
        helper.make_node("Tanh", ["s"], ["y"]),
    ]
    save(tmp_path / "net.onnx", nodes, (64,), (64,), {})
    x = np.linspace(-4, 4, 64).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    done = numtrace("run", "net.onnx", "--input", "@x.npy", "--json", "-o", "run")
    (baseline,) = done.document["variants"]
    assert (done.code, baseline["verdict"]) == (1, "lowering-bug"), baseline["reason"]
    assert baseline["reason"].endswith("brought in at Gelu")
    assert [finding["op"] for finding in baseline["findings"]] == ["Gelu"]
    (site,) = baseline["sites"]
    assert sorted(site["ops"]) == ["Gelu", "Softplus", "Tanh"]

    x = x.astype(float)
    right, made = (
        np.tanh(np.log1p(np.exp(x / 2 * (1 + np.tanh(c * (x + 0.044715 * x**3))))))
        for c in (np.sqrt(2 / np.pi), 0.797724)
    )
    assert site["semantic"]["max_abs"] == pytest.approx(np.abs(made - right).max(), rel=1e-3)
