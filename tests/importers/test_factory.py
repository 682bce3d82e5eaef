"""Factories: what they may return, and how their failures are told."""

from __future__ import annotations

import itertools
import textwrap
from pathlib import Path

import numpy as np
import pytest
from programs import Recorder

from numtrace.errors import ModelError
from numtrace.importers.factory import read
from numtrace.importers.imported import Imported

NET = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 3)
        self.drop = nn.Dropout(0.5)
        self.register_buffer("mask", torch.tensor([True, False, True]), persistent=False)
        self.register_buffer("shift", torch.tensor([1, 2, 3]))
        self.table = torch.tensor([0.5, 0.25, 0.125])

    def forward(self, x, n=1, *, scale):
        y = self.drop(self.fc(x)) * scale + self.shift + self.table * n
        return torch.where(self.mask, y, 0.0), y.sum()

class State(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(2))

    def forward(self, x):
        self.seen.add_(x)
        return self.seen * 2

class Branch(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x
        return -x

class InPlace(nn.Module):
    def forward(self, x):
        return x.add_(1)

X = torch.tensor([[1.0, 2.0]])
"""


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Imports a factory of a new module in the current directory; ``body`` is what it does."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    numbers = itertools.count()

    def make(body: str) -> Imported:
        name = f"net_{tmp_path.name.replace('-', '_')}_{next(numbers)}"
        code = f"{NET}\ndef factory():\n{textwrap.indent(body, '    ')}\n"
        Path(f"{name}.py").write_text(code)
        return read(f"{name}:factory", Recorder())

    return make


def test_parameters_buffers_constants_and_inputs(make) -> None:
    found = make('net = Net()\nreturn net, (X,), {"scale": torch.tensor(2.0)}')
    assert list(found.parameters) == ["fc.weight", "fc.bias", "mask", "shift", "table"]
    assert found.parameters["mask"].tolist() == [True, False, True]
    assert found.parameters["shift"].dtype == np.int64
    assert found.parameters["table"].tolist() == [0.5, 0.25, 0.125]
    assert [array.tolist() for array in found.inputs] == [[[1.0, 2.0]], 2.0]
    for name, kind in {"fc.bias": "3xf32", "mask": "3xi1", "shift": "3xi64", "table": "3xf32"}.items():
        assert f'@{name} = #flow.parameter.named<"model"::"{name}"> : tensor<{kind}>' in found.text
    assert 'loc("addmm"(' in found.text
    assert "dropout" not in found.text, "a module in training mode is imported as in use"
    assert ["training mode" in notice for notice in found.notices] == [True]


def test_one_tensor_is_the_one_input(make) -> None:
    found = make("return nn.Linear(2, 2).eval(), X")
    assert [array.shape for array in found.inputs] == [(1, 2)]
    assert found.notices == []


def test_a_program_brings_its_dynamic_dims(make) -> None:
    found = make(
        'dims = ({0: torch.export.Dim("batch", max=64)},)\n'
        "return torch.export.export(nn.Linear(2, 2).eval(), (torch.ones(3, 2),), dynamic_shapes=dims)"
    )
    assert "%arg0: !torch.vtensor<[?,2],f32>" in found.text
    assert [array.shape for array in found.inputs] == [(3, 2)]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("return 3", r"returned int; it must return \(module, args\)"),
        ("return (nn.ReLU(), 3)", r"returned \(ReLU, int\); args are a tuple"),
        ("return X, (X,)", r"returned \(Tensor, tuple\); it must return"),
        (
            "import numpy as np\nreturn np.load('absent.npy')",
            r"failed: FileNotFoundError: .*absent\.npy.* \(net_\w+\.py:\d+, in factory\)$",
        ),
        (
            "import sys; sys.exit('no weights')",
            r"failed: SystemExit: no weights \(net_\w+\.py:\d+, in factory\)$",
        ),
        (
            "return Branch(), X",
            r"cannot trace the module: .*data-dependent.* \(net_\w+\.py:29, in forward\)$",
        ),
        (
            "return nn.Linear(3, 2), X",
            r"cannot trace the module: a and b must have same reduction dim, but got .1, 2. X .3, 2.\.$",
        ),
        ("return State(), X[0]", "the module changes its buffer seen in every call"),
        ("return InPlace(), X", "the module changes its input x in place"),
    ],
)
def test_failures_in_a_sentence(make, body: str, says: str) -> None:
    with pytest.raises(ModelError, match=says) as caught:
        make(body)
    assert "\n" not in str(caught.value)


def test_no_such_factory(make, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="there is no Python module absent_module, neither in the current"):
        read("absent_module.part:factory", Recorder())
    Path("needs_more.py").write_text("import absent_module\n")
    with pytest.raises(
        ModelError, match=r"needs_more cannot be imported: ModuleNotFoundError.*\(needs_more.py:1"
    ):
        read("needs_more:factory", Recorder())
    Path("broken.py").write_text("x = = 1\n")
    with pytest.raises(
        ModelError, match=r"broken cannot be imported: SyntaxError: invalid syntax \(broken.py:1\)"
    ):
        read("broken:factory", Recorder())
    Path("empty_one.py").write_text("x = 1\n")
    with pytest.raises(ModelError, match="the module empty_one has no factory"):
        read("empty_one:factory", Recorder())
    with pytest.raises(ModelError, match="empty_one:x is no callable but int"):
        read("empty_one:x", Recorder())
