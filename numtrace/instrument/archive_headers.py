"""What a parameter archive says about its tensors: names, element types and shapes, from the headers alone.

IREE's own index knows keys and byte ranges only. The headers are read before IREE opens the file, and their
sizes are checked against the file's: a damaged archive must give a sentence, not a crash (IREE 3.13 divides
by zero on the two gguf element types that were removed from the format).
"""

from __future__ import annotations

import json
import math
import mmap
import struct
from dataclasses import dataclass
from pathlib import Path

from numtrace.errors import InputError
from numtrace.instrument import dtypes
from numtrace.instrument.npy import unreadable

#: Suffixes of the archives that IREE's index opens; without the dot they are its names of the formats.
SUFFIXES = (".safetensors", ".irpa", ".gguf")

_SAFETENSORS = {
    **{name: name.lower() for name in ("F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8")},
    **{f"U{width}": f"ui{width}" for width in (64, 32, 16, 8)},
    "BOOL": "i1",
    "F8_E4M3": "f8E4M3FN",
    "F8_E5M2": "f8E5M2",
    "F8_E4M3FNUZ": "f8E4M3FNUZ",
    "F8_E5M2FNUZ": "f8E5M2FNUZ",
    "F8_E8M0": "f8E8M0FNU",
}

# Of the element types of gguf that IREE reads, these two mean the same in every version of the format.
_GGUF = {0: "f32", 1: "f16"}
_GGUF_REMOVED = (4, 5)
_GGUF_STRING, _GGUF_ARRAY = 8, 9
_GGUF_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}


@dataclass(frozen=True)
class StoredType:
    """A tensor as its archive describes it; ``dtype`` is MLIR's name, else the archive's own."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def count(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    def __str__(self) -> str:
        return "".join(f"{size}x" for size in self.shape) + self.dtype


def read_headers(path: Path) -> dict[str, StoredType]:
    """Key → type for each tensor of a safetensors or gguf archive; empty for irpa (see ``parse_metadata``).

    InputError: no such file, not an archive that IREE opens, truncated or damaged.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(
            f"{str(path)!r} is no parameter archive that IREE opens; those end in {', '.join(SUFFIXES)}"
        )
    try:
        with path.open("rb") as file:
            if not file.seek(0, 2):
                raise damaged(path, "it is empty")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                if data[:23] == b"version https://git-lfs":
                    raise InputError(f"{str(path)!r} is a Git LFS pointer, not the archive; run git lfs pull")
                if suffix == ".irpa":
                    return {}
                return _read_safetensors(data, path) if suffix == ".safetensors" else _Gguf(data, path).read()
    except OSError as error:
        raise unreadable(path, error) from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, struct.error) as error:
        raise damaged(path, f"its header cannot be read ({type(error).__name__}: {error})") from error


def parse_metadata(metadata: bytes) -> StoredType | None:
    """The type in an irpa entry's metadata, from IREE (``TENSORv0:``) or iree-turbine (``PYTORCH:``)."""
    kind, _, text = metadata.decode(errors="replace").partition(":")
    if kind not in ("TENSORv0", "PYTORCH"):
        return None
    try:
        fields = json.loads(text)
        name = str(fields["dtype"]).removeprefix("torch.")
        return StoredType(dtypes.from_name(name), tuple(int(size) for size in fields["shape"]))
    except (ValueError, KeyError, TypeError, InputError):
        return None  # metadata is free text: then only the byte length is known


def damaged(path: Path, reason: str) -> InputError:
    """The InputError for an archive that ends too early or contradicts itself."""
    return InputError(f"parameter archive {str(path)!r} is truncated or damaged: {reason}; fetch it again")


def _read_safetensors(data: mmap.mmap, path: Path) -> dict[str, StoredType]:
    """Format: u64 length, JSON of that length, then the tensors at offsets relative to the JSON's end."""
    start = 8 + struct.unpack_from("<Q", data)[0]
    if start > len(data):
        raise damaged(path, f"its header takes {start} bytes, found {len(data)}")
    entries = json.loads(data[8:start])
    entries.pop("__metadata__", None)
    types = {}
    for key, entry in entries.items():
        begin, end = entry["data_offsets"]
        if begin < 0:
            raise damaged(path, f"{key!r} starts before the data, at {begin}")
        if start + end > len(data):
            raise damaged(path, f"{key!r} ends at byte {start + end}, found {len(data)}")
        stored = StoredType(_SAFETENSORS.get(entry["dtype"], entry["dtype"]), tuple(map(int, entry["shape"])))
        if stored.dtype in dtypes.KNOWN:
            size = stored.count * dtypes.numpy_dtype(stored.dtype).itemsize
            if end - begin != size:
                raise damaged(path, f"{key!r} is {stored}, which takes {size} bytes, and has {end - begin}")
        types[key] = stored
    return types


class _Gguf:
    """Format: ``GGUF``, u32 version, u64 tensor count, u64 pair count, the pairs, a record per tensor."""

    def __init__(self, data: mmap.mmap, path: Path):
        self._data, self._path, self._at = data, path, 0

    def read(self) -> dict[str, StoredType]:
        if self._data[:4] != b"GGUF":
            raise damaged(self._path, "it does not start with GGUF")
        self._at = 8
        tensors, pairs = self._take("<QQ")
        for _ in range(pairs):
            self._text()
            self._skip(self._take("<I")[0])
        return dict(self._tensor() for _ in range(tensors))

    def _tensor(self) -> tuple[str, StoredType]:
        key = self._text()
        shape = self._take(f"<{self._rank()}Q")
        kind, _ = self._take("<IQ")
        if kind in _GGUF_REMOVED:
            raise damaged(self._path, f"{key!r} has element type {kind}, which gguf no longer has")
        # gguf lists the fastest dim first.
        return key, StoredType(_GGUF.get(kind, f"<gguf element type {kind}>"), shape[::-1])

    def _rank(self) -> int:
        (rank,) = self._take("<I")
        if rank > 8:
            raise damaged(self._path, f"a tensor claims {rank} dims")
        return rank

    def _skip(self, kind: int) -> None:
        if kind == _GGUF_STRING:
            self._text()
        elif kind == _GGUF_ARRAY:
            element, count = self._take("<IQ")
            if element in _GGUF_SIZES:
                self._advance(count * _GGUF_SIZES[element])
            else:
                for _ in range(count):
                    self._skip(element)
        else:
            self._advance(_GGUF_SIZES[kind])

    def _text(self) -> str:
        (length,) = self._take("<Q")
        start = self._at
        self._advance(length)
        return self._data[start : self._at].decode()

    def _take(self, layout: str) -> tuple[int, ...]:
        start = self._at
        self._advance(struct.calcsize(layout))
        return struct.unpack_from(layout, self._data, start)

    def _advance(self, size: int) -> None:
        self._at += size
        if self._at > len(self._data):
            raise damaged(self._path, f"its header goes on past its {len(self._data)} bytes")
