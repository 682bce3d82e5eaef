"""What has to be imported is told by its name."""

from __future__ import annotations

import pytest

from numtrace.importers.sources import kind_of, short_name, split_factory


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("net.onnx", "onnx"),
        ("dir.v2/Net.ONNX", "onnx"),
        ("program.pt2", "pt2"),
        ("package.module:factory", "factory"),
        ("net:Models.small", "factory"),
        ("model.mlir", None),
        ("sdxl-vae-tiny", None),
        ("c:model.mlir.txt:x y", None),
        ("1net:make", None),
        ("net:", None),
        ("", None),
    ],
)
def test_kinds(source: str, kind: str | None) -> None:
    assert kind_of(source) == kind


def test_a_file_whose_name_has_a_colon_is_a_file(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net:small").write_text("")
    assert kind_of("net:small") is None


def test_names() -> None:
    assert short_name("package.module:Models.small") == "small"
    assert short_name("dir.v2/net.onnx") == "net"
    assert split_factory("package.module:Models.small") == ("package.module", "Models.small")
