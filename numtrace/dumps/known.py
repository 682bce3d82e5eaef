"""The file of accepted findings, ``numtrace.known`` version 1: written by ``numtrace accept``, edited by people."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from numtrace.dumps import files
from numtrace.dumps.finding import Kind
from numtrace.errors import UsageError

FORMAT = "numtrace.known"
VERSION = 1
#: Where `numtrace accept` writes when it is not told.
DEFAULT = Path("numtrace-known.json")


class Size(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The figures that were accepted; one that is null is not compared."""

    max_abs: float | None
    rel_l2: float | None
    bound_ratio: float | None = None
    nonfinite: int | None = 0


class Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One accepted finding.

    ``passes`` are those of the variant that it was found in, as a set; with more passes it is the same finding.
    ``module`` may be empty: any. ``model`` and ``iree`` say where it was found; the same op of another model is
    the same finding too, but only on its own model can it be gone.
    """

    kind: Kind
    op: str
    module: str = ""
    passes: list[str]
    certainty: Literal["proven", "suspect"] = "proven"
    size: Size
    note: str = ""
    model: str = ""
    iree: str = ""


class Known(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    format: str = FORMAT
    version: int = VERSION
    findings: list[Entry]


class _Head(msgspec.Struct):
    format: str = ""
    version: int = 0


@dataclass(frozen=True)
class KnownFile:
    """A file of known findings, as it was read."""

    path: Path
    entries: list[Entry]

    def plain(self) -> list[dict[str, Any]]:
        return msgspec.to_builtins(self.entries)


def read(path: Path) -> KnownFile:
    """Reads a file of known findings.

    Raises:
        UsageError: it cannot be read, or is no such file; the message says what is wrong with it.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise UsageError(
            f"there is no file {path} of known findings; write one with numtrace accept"
        ) from None
    except OSError as error:
        raise UsageError(f"the known findings in {path} cannot be read: {error.strerror or error}") from None
    return KnownFile(path, _decode(data, path).findings)


def write(path: Path, entries: list[Entry]) -> None:
    """Replaces ``path``. Raises ``OutputError``."""
    data = msgspec.json.encode(Known(findings=entries))
    files.write_bytes(path, msgspec.json.format(data, indent=2) + b"\n")


def _decode(data: bytes, path: Path) -> Known:
    try:
        head = msgspec.json.decode(data, type=_Head)
    except msgspec.ValidationError:
        head = _Head()
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not JSON ({error}): mend it, or write it with numtrace accept") from None
    if head.format != FORMAT:
        raise UsageError(
            f'{path} is no file of known findings: its "format" should be "{FORMAT}"; '
            "write one with numtrace accept"
        )
    if head.version != VERSION:
        raise UsageError(
            f"{path} has version {head.version} of the known findings and this numtrace reads version {VERSION}: "
            "use the numtrace that wrote it, or accept the findings again"
        )
    try:
        return msgspec.json.decode(data, type=Known)
    except msgspec.ValidationError as error:
        raise UsageError(f"{path} does not follow {FORMAT} {VERSION}: {error}; mend it there") from None
