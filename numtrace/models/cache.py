"""Generated files kept in the user's cache: whole or absent, safe between processes.

A file is written under a temporary name and renamed; beside it ``<name>.json`` holds its size, its
SHA-256 and the notices that its making raised. Whatever does not match its sidecar is made again.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from numtrace.errors import OutputError

VARIABLE = "NUMTRACE_CACHE_DIR"
_ABANDONED_SECONDS = 24 * 3600


@dataclass(frozen=True)
class Entry:
    """A file in the cache, with what was said while it was made."""

    path: Path
    notices: tuple[str, ...] = ()


def cache_directory(given: Path | None = None) -> Path:
    """``given``, else the environment's ``NUMTRACE_CACHE_DIR``, else the platform's cache for numtrace."""
    if given is not None:
        return Path(given)
    if named := os.environ.get(VARIABLE):
        return Path(named).expanduser()
    import platformdirs

    return Path(platformdirs.user_cache_dir("numtrace", appauthor=False))


def fingerprint(*parts: object) -> str:
    """16 hexadecimal digits that change when the text of any part does."""
    text = json.dumps([str(part) for part in parts])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's bytes, hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def obtain(directory: Path, name: str, make: Callable[[Path], Sequence[str]]) -> Entry:
    """The file ``name`` in ``directory``; ``make(path)`` writes it when it is absent or damaged.

    ``make`` returns its notices, which are kept and given again with the cached file. It must write
    the same bytes each time for the same ``name``: then it does not matter which of two processes
    that make it at once comes last. Raises `OutputError` when the cache cannot be written.
    """
    path = directory / name
    notices = _intact(path)
    if notices is None:
        try:
            notices = _write(path, make)
        except OSError as error:
            raise OutputError(
                f"cannot write {path}: {error.strerror or error}; free some space, or set {VARIABLE} "
                "to a directory that can be written"
            ) from error
    return Entry(path, notices)


def _intact(path: Path) -> tuple[str, ...] | None:
    """The notices of a cached file, or None when it must be made again."""
    try:
        record = json.loads(_sidecar(path).read_text(encoding="utf-8"))
        if path.stat().st_size != record["size"] or file_sha256(path) != record["sha256"]:
            return None
        return tuple(record["notices"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write(path: Path, make: Callable[[Path], Sequence[str]]) -> tuple[str, ...]:
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(path.parent)
    with tempfile.TemporaryDirectory(
        dir=path.parent, prefix=".making-", ignore_cleanup_errors=True
    ) as making:
        data = Path(making) / path.name
        notices = tuple(make(data))
        record = {"size": data.stat().st_size, "sha256": file_sha256(data), "notices": notices}
        sidecar = _sidecar(data)
        sidecar.write_text(json.dumps(record), encoding="utf-8")
        # The sidecar last: a file without one counts as absent.
        data.replace(path)
        sidecar.replace(_sidecar(path))
    return notices


def _sidecar(path: Path) -> Path:
    return path.with_name(path.name + ".json")


def _remove_abandoned(directory: Path) -> None:
    """Remove what processes killed while writing have left; a day is longer than any writing takes."""
    for making in directory.glob(".making-*"):
        try:
            if time.time() - making.stat().st_mtime < _ABANDONED_SECONDS:
                continue
            for file in making.iterdir():
                file.unlink()
            making.rmdir()
        except OSError:
            continue  # another process was faster, or it is not ours to remove
