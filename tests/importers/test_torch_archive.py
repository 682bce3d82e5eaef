"""Archives of torch.export: read without unpickling, and refused where that would not do."""

from __future__ import annotations

import contextlib
import io
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from numtrace.errors import ModelError
from numtrace.importers.torch_archive import read


class Harmful:
    """Whoever unpickles it makes a folder."""

    def __init__(self, path: Path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("archive") / "net.pt2"
    torch.export.save(torch.export.export(nn.Linear(2, 3).eval(), (torch.ones(1, 2),)), path)
    return path


@pytest.fixture
def changed(saved: Path, tmp_path: Path) -> Callable[..., Path]:
    """The archive with other members: by the end of their names, bytes to bytes; or added."""

    def change(members: dict[str, Callable[[bytes], bytes]], add: dict[str, bytes] | None = None) -> Path:
        path = tmp_path / "net.pt2"
        with zipfile.ZipFile(saved) as old, zipfile.ZipFile(path, "w") as new:
            for name in old.namelist():
                data = old.read(name)
                for end, edit in members.items():
                    data = edit(data) if name.endswith(end) else data
                new.writestr(name, data)
            for name, data in (add or {}).items():
                new.writestr(f"net/{name}", data)
        return path

    return change


def test_parameters_inputs_and_text(saved: Path) -> None:
    found = read(saved)
    torch.manual_seed(0)
    linear = nn.Linear(2, 3)
    assert found.parameters["weight"].tolist() == linear.weight.tolist()
    assert list(found.parameters) == ["weight", "bias"]
    assert [array.tolist() for array in found.inputs] == [[[1.0, 1.0]]]
    assert 'loc("addmm")' in found.text


def test_the_same_archive_written_by_zipfile_is_read(changed) -> None:
    assert list(read(changed({})).parameters) == ["weight", "bias"]


def test_nothing_is_unpickled(changed, tmp_path: Path) -> None:
    harm = tmp_path / "harm"
    buffer = io.BytesIO()
    torch.save(((Harmful(harm),), {}), buffer)
    path = changed({"sample_inputs/model.pt": lambda _: buffer.getvalue()})
    with pytest.raises(ModelError, match=r"holds data/sample_inputs/model\.pt, which torch would unpickle"):
        read(path)
    assert not harm.exists()
    with contextlib.suppress(TypeError):  # of torch's own warning about it, whose format is broken
        torch.export.load(path)  # what numtrace does not do
    assert harm.exists()


def _pickled(data: bytes) -> bytes:
    config = json.loads(data)
    config["config"]["weight"]["use_pickle"] = True
    return json.dumps(config).encode()


def _custom(data: bytes) -> bytes:
    entry = {"path_name": "opaque_obj_0", "is_param": False, "use_pickle": False, "tensor_meta": None}
    return json.dumps({"config": {"thing": entry}}).encode()


@pytest.mark.parametrize(
    ("members", "add", "says"),
    [
        (
            {"model_weights_config.json": _pickled},
            {},
            "holds data/weights/weight_0, which torch would unpickle",
        ),
        ({"model_constants_config.json": _custom}, {}, "holds data/constants/opaque_obj_0, which torch"),
        ({}, {"data/weights/model.pt": b""}, r"holds data/weights/model\.pt, which torch would unpickle"),
        ({}, {"data/constants/model.pt": b""}, r"holds data/constants/model\.pt, which torch would unpickle"),
        ({}, {"data/aotinductor/model/x.so": b""}, r"holds compiled code \(data/aotinductor/model/x\.so\)"),
        ({}, {"models/other.json": b"{}"}, r"holds 2 programs \((model, other|other, model)\)"),
    ],
)
def test_refused(changed, members, add, says: str) -> None:
    with pytest.raises(ModelError, match=says):
        read(changed(members, add))


def test_no_archive(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="there is no file"):
        read(tmp_path / "absent.pt2")
    (tmp_path / "net.pt2").write_bytes(b"text")
    with pytest.raises(ModelError, match=r"net\.pt2 is no archive of torch\.export; write it with"):
        read(tmp_path / "net.pt2")
    torch.save({"weight": torch.ones(2)}, tmp_path / "state.pt2")
    with pytest.raises(ModelError, match=r"state\.pt2 is no archive of torch\.export"):
        read(tmp_path / "state.pt2")
