"""Parameter archives: opened through IREE's own index, checked against what a program asks for, written."""

from __future__ import annotations

import difflib
import json
import os
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from numtrace.errors import InputError, OutputError
from numtrace.instrument import dtypes
from numtrace.instrument.archive_headers import StoredType, damaged, parse_metadata, read_headers
from numtrace.instrument.statuses import STATUS_ERRORS
from numtrace.instrument.tensor_type import TensorType

if TYPE_CHECKING:
    from iree.runtime import ParameterIndex, ParameterIndexEntry, ParameterProvider

# What IREE's index raises for files it cannot parse or map.
_IREE_ERRORS = (*STATUS_ERRORS, OSError)


def parse_scope(text: str) -> tuple[str, Path]:
    """``model=FILE`` as (scope, path); without ``=`` the scope is empty, as for ``iree-run-module``."""
    scope, equals, file = text.partition("=")
    if not equals:
        scope, file = "", text
    if not file:
        raise InputError(f"{text!r} names no parameter archive; give SCOPE=FILE, such as model=weights.irpa")
    return scope, Path(file)


class ParameterArchives:
    """The archives of a model by scope; several files of one scope are one index, as in IREE."""

    def __init__(self, archives: Iterable[tuple[str, Path]] = ()):
        self._scopes: dict[str, _Scope] = {}
        for scope, path in archives:
            self.add(scope, path)

    def add(self, scope: str, path: Path) -> None:
        """Open ``path`` (.safetensors, .irpa, .gguf) under ``scope``, memory mapped.

        InputError: missing, truncated or damaged, another format, or a key that the scope already has.
        """
        self._scopes.setdefault(scope, _Scope()).load(path)

    @property
    def scopes(self) -> list[str]:
        """The scopes, in the order they were added."""
        return list(self._scopes)

    def keys(self, scope: str) -> list[str]:
        """The parameter names of ``scope``, in file order; InputError if no archive was given for it."""
        return list(self._scope(scope).entries)

    def stored(self, scope: str, key: str) -> StoredType | None:
        """What the archive says of a parameter's type; None if it keeps bytes only. InputError if missing."""
        return self._entry(scope, key).stored

    def array(self, scope: str, key: str, expected: TensorType) -> np.ndarray:
        """The parameter's bits as ``expected``, read-only, a view of the mapped file (a splat is broadcast).

        InputError: missing, or its type does not fit as in ``check``.
        """
        entry = self._entry(scope, key)
        self._require_fit(entry, scope, key, expected)
        dtype = dtypes.numpy_dtype(expected.dtype)
        if entry.entry.is_file:
            return np.asarray(entry.entry.file_view).view(dtype).reshape(expected.static_shape)
        pattern = np.frombuffer(entry.entry.splat_pattern, np.uint8)
        if len(pattern) == dtype.itemsize:
            return np.broadcast_to(pattern.view(dtype)[0], expected.static_shape)
        # The pattern is no single element: laid out byte by byte.
        repeats = -(-expected.nbytes // len(pattern))
        return np.tile(pattern, repeats)[: expected.nbytes].view(dtype).reshape(expected.static_shape)

    def check(self, required: Mapping[tuple[str, str], TensorType]) -> None:
        """InputError unless each (scope, key) is there with its elements: count and dtype equal.

        The shapes may differ, since IREE reshapes parameters (4x4 for 4x4x1x1). The message names the first
        parameter that does not fit and says how many more there are.
        """
        faults = [name for name, expected in required.items() if not self._fits(*name, expected)]
        if not faults:
            return
        more = f" (and {len(faults) - 1} more parameters do not fit)" if len(faults) > 1 else ""
        try:
            self._require_fit(self._entry(*faults[0]), *faults[0], required[faults[0]])
        except InputError as error:
            asked = _name(*faults[0])
            # Of what is not there at all, the type says what kind of file to look for.
            needs = (
                ""
                if self._has(*faults[0])
                else f"; the program takes {asked}, {required[faults[0]]}, from there"
            )
            raise InputError(f"{error}{needs}{more}") from error

    def index(self, scope: str) -> ParameterIndex:
        """IREE's index of ``scope``."""
        return self._scope(scope).index

    def provider(self, scope: str) -> ParameterProvider:
        """A provider of ``scope`` for ``iree.runtime.create_io_parameters_module``."""
        return self._scope(scope).index.create_provider(scope=scope)

    def _scope(self, scope: str) -> _Scope:
        if scope not in self._scopes:
            given = ", ".join(repr(name) for name in self._scopes) or "none"
            if scope and [*self._scopes] == [""]:
                bare = self._scopes[""].paths[0]
                raise InputError(
                    f"no archive for parameter scope {scope!r}: {str(bare)!r} was given without a scope; "
                    f"write --params {shlex.quote(f'{scope}={bare}')}"
                )
            option = f"--params {scope}=FILE" if scope else "--params FILE"
            raise InputError(f"no archive for parameter scope {scope!r} (given: {given}); add {option}")
        return self._scopes[scope]

    def _entry(self, scope: str, key: str) -> _Entry:
        archive = self._scope(scope)
        if key not in archive.entries:
            near = difflib.get_close_matches(key, archive.entries, n=3)
            hint = f"nearest: {', '.join(near)}" if near else f"it has {len(archive.entries)} others"
            files = ", ".join(repr(str(path)) for path in archive.paths)
            raise InputError(f"parameter {_name(scope, key)} is not in {files}; {hint}")
        return archive.entries[key]

    def _has(self, scope: str, key: str) -> bool:
        return scope in self._scopes and key in self._scopes[scope].entries

    def _fits(self, scope: str, key: str, expected: TensorType) -> bool:
        return self._has(scope, key) and self._scopes[scope].entries[key].fits(expected)

    def _require_fit(self, entry: _Entry, scope: str, key: str, expected: TensorType) -> None:
        if not entry.fits(expected):
            given = f"{entry.stored}" if entry.stored else f"{entry.entry.length} bytes"
            raise InputError(
                f"parameter {_name(scope, key)} is {given} in {str(entry.path)!r}, and the program takes "
                f"{expected} ({expected.nbytes} bytes)"
            )


@dataclass(frozen=True)
class _Entry:
    entry: ParameterIndexEntry
    stored: StoredType | None
    path: Path

    def fits(self, expected: TensorType) -> bool:
        stored = self.stored
        same = stored is None or (
            dtypes.same_storage(stored.dtype, expected.dtype) and stored.count == expected.count
        )
        return same and self.entry.length == expected.nbytes


@dataclass
class _Scope:
    index: ParameterIndex = field(default_factory=lambda: _new_index())
    paths: list[Path] = field(default_factory=list)
    entries: dict[str, _Entry] = field(default_factory=dict)

    def load(self, path: Path) -> None:
        types = read_headers(path)
        first = len(self.index)
        try:
            self.index.load(str(path), format=path.suffix.lower().removeprefix("."))
            loaded = [self.index[i] for i in range(first, len(self.index))]
            keys = [entry.key for entry in loaded]
            ends = [entry.file_storage[1] + entry.length if entry.is_file else 0 for entry in loaded]
            size = path.stat().st_size
        except _IREE_ERRORS as error:
            raise damaged(path, _reason(error)) from error
        # IREE 3.13 opens a gguf that was cut between its header and its data, and would read past the map.
        for key, end in zip(keys, ends, strict=True):
            if end > size:
                raise damaged(path, f"{key!r} ends at byte {end}, found {size}")
        self.paths.append(path)
        for key, entry in zip(keys, loaded, strict=True):
            if key in self.entries:
                # IREE takes the first, whichever was meant.
                both = f"{str(self.entries[key].path)!r} and in {str(path)!r}"
                raise InputError(f"parameter {key!r} is in {both}; give one of them, or another scope")
            stored = types[key] if key in types else parse_metadata(bytes(entry.metadata))
            self.entries[key] = _Entry(entry, stored, path)


def write_irpa(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write ``arrays`` (bf16 and f8 as ml_dtypes) as an IREE parameter archive, whole or not at all.

    Each is aligned to 64 bytes and carries its dtype and shape. OutputError: unwritable, or the disk is full.
    """
    index = _new_index()
    for key, array in arrays.items():
        flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        fields = {"type": "Tensor", "dtype": array.dtype.name, "shape": list(array.shape)}
        index.add_buffer(key, flat, metadata=f"TENSORv0:{json.dumps(fields)}")
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        index.create_archive_file(str(part))
        part.replace(path)
    except _IREE_ERRORS as error:
        raise OutputError(f"cannot write parameters to {str(path)!r}: {_reason(error)}") from error
    finally:
        part.unlink(missing_ok=True)


def _new_index() -> ParameterIndex:
    from iree.runtime import ParameterIndex

    return ParameterIndex()


def _name(scope: str, key: str) -> str:
    """A parameter as MLIR spells it: ``"model"::"decoder.conv_in.weight"``."""
    return f'"{scope}"::"{key}"' if scope else f'"{key}"'


def _reason(error: Exception) -> str:
    """The sentence in an IREE status, without the place in IREE's sources."""
    return str(error).partition("; ")[2] or str(error)
