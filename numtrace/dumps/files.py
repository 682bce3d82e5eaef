"""Writing files so that a reader sees the old one or the new one, never half of one."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from numtrace.errors import OutputError

#: Of --out, which is a directory for some commands and a file for others.
_ADVICE = {
    errno.ENOSPC: "the disk is full: free space, or give another --out",
    errno.EDQUOT: "your disk quota is used up: free space, or give another --out",
    errno.EFBIG: "the file is larger than is allowed here: raise the limit, or give another --out",
    errno.EACCES: "permission denied: give an --out that you may write",
    errno.EPERM: "permission denied: give an --out that you may write",
    errno.EROFS: "the file system is read-only: give another --out",
    errno.ENOTDIR: "a part of the path is a file, not a directory: give another --out",
    errno.EEXIST: "a file is in the way: move it, or give another --out",
    errno.ENAMETOOLONG: "the path is too long: give a shorter --out",
}


@contextmanager
def output_errors(path: Path) -> Iterator[None]:
    """Turn an ``OSError`` about ``path`` into an ``OutputError`` that says what to do."""
    try:
        yield
    except OSError as error:
        why = _ADVICE.get(error.errno or 0, f"{error.strerror or error}: give another --out")
        raise OutputError(f"cannot write {path}: {why}") from error


def write_bytes(path: Path, data: bytes) -> None:
    """Replace ``path`` by ``data`` in one step, making its directory. Raises ``OutputError``.

    No fsync: a killed process loses nothing by that, and a run writes often.
    """
    temporary = path.with_name(f".{path.name[:80]}.{os.getpid()}.tmp")
    with output_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            temporary.write_bytes(data)
            temporary.replace(path)
        except BaseException:
            # KeyboardInterrupt too: no temporary file stays behind.
            with suppress(OSError):
                temporary.unlink()
            raise


def append_bytes(path: Path, data: bytes) -> None:
    """Add ``data`` at the end of ``path``. Raises ``OutputError``."""
    with output_errors(path), path.open("ab") as stream:
        stream.write(data)
