"""Headers of parameter archives: what they say, and that a damaged one is a sentence, never a crash."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from numtrace.errors import InputError
from numtrace.instrument.archive_headers import StoredType, parse_metadata, read_headers


def _safetensors(path: Path, header: object, data: bytes = b"") -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def _text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def _gguf(path: Path, kind: int = 0) -> Path:
    """One 2x3 tensor ``w`` (gguf lists 3 first) and one pair of each sort."""
    pairs = [
        _text("a.string") + struct.pack("<I", 8) + _text("llama"),
        _text("a.float") + struct.pack("<If", 6, 1.5),
        _text("an.array") + struct.pack("<IIQ", 9, 4, 3) + struct.pack("<III", 1, 2, 3),
        _text("strings") + struct.pack("<IIQ", 9, 8, 2) + _text("x") + _text("yz"),
    ]
    tensor = _text("w") + struct.pack("<IQQIQ", 2, 3, 2, kind, 0)
    header = b"GGUF" + struct.pack("<IQQ", 3, 1, len(pairs)) + b"".join(pairs) + tensor
    path.write_bytes(header + bytes(-len(header) % 32) + np.arange(6, dtype=np.float32).tobytes())
    return path


def test_safetensors(tmp_path):
    save_file(
        {"w": np.zeros((2, 3), np.float16), "s": np.array(1, np.uint8), "b": np.array([True])},
        tmp_path / "x.safetensors",
        metadata={"format": "pt"},
    )
    assert read_headers(tmp_path / "x.safetensors") == {
        "w": StoredType("f16", (2, 3)),
        "s": StoredType("ui8", ()),
        "b": StoredType("i1", (1,)),
    }


def test_gguf(tmp_path):
    assert read_headers(_gguf(tmp_path / "x.gguf")) == {"w": StoredType("f32", (2, 3))}
    assert str(read_headers(_gguf(tmp_path / "q.gguf", kind=2))["w"]) == "2x3x<gguf element type 2>"


@pytest.mark.parametrize("kind", [4, 5])
def test_gguf_element_types_on_which_iree_divides_by_zero(tmp_path, kind):
    with pytest.raises(InputError, match=f"'w' has element type {kind}, which gguf no longer has"):
        read_headers(_gguf(tmp_path / "x.gguf", kind))


def test_a_gguf_cut_anywhere_in_its_header_is_an_input_error(tmp_path):
    whole = _gguf(tmp_path / "x.gguf").read_bytes()
    header = whole.index(_text("w")) + len(_text("w")) + 32
    for size in range(header):
        (tmp_path / "cut.gguf").write_bytes(whole[:size])
        with pytest.raises(InputError, match=r"cut\.gguf' is truncated or damaged"):
            read_headers(tmp_path / "cut.gguf")


def test_a_safetensors_cut_anywhere_is_an_input_error(tmp_path):
    save_file({"w": np.zeros(4, np.float32)}, tmp_path / "x.safetensors")
    whole = (tmp_path / "x.safetensors").read_bytes()
    for size in range(len(whole)):
        (tmp_path / "cut.safetensors").write_bytes(whole[:size])
        with pytest.raises(InputError, match=r"cut\.safetensors' is truncated or damaged"):
            read_headers(tmp_path / "cut.safetensors")
    (tmp_path / "cut.safetensors").write_bytes(whole[:-3])
    with pytest.raises(InputError, match=f"'w' ends at byte {len(whole)}, found {len(whole) - 3}"):
        read_headers(tmp_path / "cut.safetensors")


@pytest.mark.parametrize(
    ("header", "says"),
    [
        (b"not json", "header cannot be read"),
        (b"[1, 2]", "header cannot be read"),
        (b'{"w": 1}', "header cannot be read"),
        (b"\xff\xff", "header cannot be read"),
        (b"[" * 100_000, "header cannot be read"),
        ({"w": {"dtype": "F32", "shape": [4]}}, "data_offsets"),
        ({"w": {"dtype": ["F32"], "shape": [4], "data_offsets": [0, 16]}}, "header cannot be read"),
        (
            {"w": {"dtype": "F32", "shape": [4000], "data_offsets": [0, 16]}},
            "4000xf32, which takes 16000 bytes",
        ),
        ({"w": {"dtype": "F32", "shape": [4], "data_offsets": [16, 0]}}, "4xf32, which takes 16 bytes"),
        ({"w": {"dtype": "F32", "shape": [4], "data_offsets": [-32, -16]}}, "starts before"),
        ({"w": {"dtype": "F32", "shape": [4], "data_offsets": [0, 2**64]}}, "ends at byte"),
    ],
)
def test_safetensors_whose_header_is_wrong(tmp_path, header, says):
    with pytest.raises(InputError, match=says):
        read_headers(_safetensors(tmp_path / "x.safetensors", header, bytes(16)))


def test_a_dtype_that_mlir_lacks_keeps_its_name(tmp_path):
    entry = {"dtype": "C64", "shape": [2], "data_offsets": [0, 16]}
    types = read_headers(_safetensors(tmp_path / "x.safetensors", {"w": entry}, bytes(16)))
    assert types == {"w": StoredType("C64", (2,))}


def test_files_that_are_no_archive(tmp_path):
    (tmp_path / "x.safetensors").write_text(
        "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
    )
    with pytest.raises(InputError, match="Git LFS pointer"):
        read_headers(tmp_path / "x.safetensors")
    (tmp_path / "x.pt").write_bytes(b"PK")
    with pytest.raises(InputError, match=r"x\.pt.*\.safetensors, \.irpa, \.gguf"):
        read_headers(tmp_path / "x.pt")
    with pytest.raises(InputError, match=r"cannot read .*gone\.irpa.*No such file"):
        read_headers(tmp_path / "gone.irpa")
    (tmp_path / "dir.irpa").mkdir()
    with pytest.raises(InputError, match="cannot read"):
        read_headers(tmp_path / "dir.irpa")


@pytest.mark.parametrize(
    ("metadata", "stored"),
    [
        (b'TENSORv0:{"type": "Tensor", "dtype": "bfloat16", "shape": [2, 3]}', StoredType("bf16", (2, 3))),
        (b'PYTORCH:{"type": "Tensor", "dtype": "torch.float32", "shape": []}', StoredType("f32", ())),
        (b'TENSORv0:{"dtype": "complex64", "shape": [2]}', StoredType("complex<f32>", (2,))),
        (b'TENSORv0:{"dtype": "complex32", "shape": [2]}', None),
        (b"TENSORv0:{", None),
        (b"anything else", None),
        (b"\xff", None),
        (b"", None),
    ],
)
def test_metadata_of_irpa(metadata, stored):
    assert parse_metadata(metadata) == stored
