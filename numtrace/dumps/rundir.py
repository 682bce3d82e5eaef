"""The run directory: the report, and what each variant left behind.

::

    numtrace-run.json      says that this is one, and of which command; written first
    report.json            replaced after every finished variant
    bisect.json            of `numtrace bisect`, instead of the report
    model/                 what all variants share: source, parameters, inputs
    variants/NAME/         IR of each stage, pipeline, commands
    variants/NAME/sites.jsonl   one line per site, added while the variant runs
"""

from __future__ import annotations

import fcntl
import os
import shutil
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from numtrace.dumps import files
from numtrace.dumps.names import file_name
from numtrace.dumps.schema import Report, Site, decode, encode, encode_line
from numtrace.errors import OutputError, UsageError

MARKER = "numtrace-run.json"
REPORT = "report.json"
SITES = "sites.jsonl"
_FORMAT = "numtrace.run"
#: Everything that numtrace writes at the top: what an overwritten run loses, and nothing else.
_OWNED = (REPORT, "bisect.json", "model", "variants", MARKER)


@dataclass(frozen=True)
class Folder:
    """A directory of the run; paths given to it are relative, with ``/``, and stay inside."""

    path: Path

    def file(self, relative: str) -> Path:
        """Where ``relative`` is. Raises ``ValueError`` if that is outside."""
        parts = PurePosixPath(relative).parts
        if not parts or relative.startswith("/") or ".." in parts or "\\" in relative or ":" in relative:
            raise ValueError(f"{relative!r} is no path inside a run directory; use names.file_name")
        return self.path.joinpath(*parts)

    def write_bytes(self, relative: str, data: bytes) -> Path:
        """Write a file in one step. Raises ``OutputError``."""
        path = self.file(relative)
        files.write_bytes(path, data)
        return path

    def write_text(self, relative: str, text: str) -> Path:
        """Write a UTF-8 file in one step. Raises ``OutputError``."""
        return self.write_bytes(relative, text.encode("utf-8", "backslashreplace"))


@dataclass(frozen=True)
class VariantFolder(Folder):
    """What one variant leaves behind; ``name`` is as the user knows it."""

    name: str
    relative: str
    """This directory as the document says it: relative to the run directory, with ``/``."""

    def append_site(self, site: Site) -> None:
        """Add a site to ``sites.jsonl``. Raises ``OutputError``, ``ValueError`` for NaN or Inf."""
        files.append_bytes(self.path / SITES, encode_line(site))

    def read_sites(self) -> list[Site]:
        """The sites written so far; a last line that was cut off by a kill is left out."""
        path = self.path / SITES
        if not path.exists():
            return []
        lines = path.read_bytes().split(b"\n")
        # What follows the last newline is empty, or the beginning of a line that was not finished.
        return [msgspec.json.decode(line, type=Site) for line in lines[:-1] if line]


class RunDirectory(Folder):
    """A run directory that is being written; make one with ``create``."""

    @classmethod
    def create(cls, path: Path, command: str = "run") -> RunDirectory:
        """Make ``path``, or clear it if it holds an earlier run (only what numtrace wrote); ``command`` is who writes.

        Raises ``OutputError`` if it holds anything else, cannot be written, or another process is writing to it.
        """
        run = cls(path)
        with files.output_errors(path):
            path.mkdir(parents=True, exist_ok=True)
            _lock(path)
            if any(path.iterdir()):
                if not is_run(path):
                    raise OutputError(
                        f"{path} is not empty and not a numtrace run, so nothing in it was touched: "
                        "give a new or empty directory with --out"
                    )
                run._clear()
        marker = {"format": _FORMAT, "version": 1, "command": command}
        run.write_bytes(MARKER, msgspec.json.encode(marker) + b"\n")
        with files.output_errors(path / "variants"):
            (path / "variants").mkdir()
        return run

    def variant(self, name: str) -> VariantFolder:
        """The directory of a variant, made if it is not there. Raises ``OutputError``."""
        relative = f"variants/{file_name(name)}"
        path = self.file(relative)
        with files.output_errors(path):
            path.mkdir(parents=True, exist_ok=True)
        return VariantFolder(path=path, name=name, relative=relative)

    def write_report(self, report: Report) -> Path:
        """Replace ``report.json``; call it after every finished variant. Raises ``OutputError``."""
        return self.write_bytes(REPORT, encode(report))

    def _clear(self) -> None:
        # The marker goes last: a clearing that was cut short can be done again.
        for name in _OWNED:
            path = self.path / name
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)


#: Locks on directories, held until this process ends.
_LOCKS: dict[Path, int] = {}


def _lock(path: Path) -> None:
    """Keeps other processes from writing to ``path``."""
    key = path.resolve()
    if key in _LOCKS:
        return
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(directory)
        raise OutputError(
            f"another numtrace is writing to {path}: wait until it is done, or give another directory with --out"
        ) from None
    except OSError:
        os.close(directory)  # a file system without locks
        return
    _LOCKS[key] = directory


def default_path(model: str, now: datetime, parent: Path | None = None) -> Path:
    """``numtrace-run-<model>-<timestamp>`` in ``parent`` (the current directory), one that is free."""
    stem = f"numtrace-run-{file_name(Path(model).stem)}-{now:%Y%m%d-%H%M%S}"
    parent = parent or Path.cwd()
    path, count = parent / stem, 1
    while path.exists():
        count += 1
        path = parent / f"{stem}-{count}"
    return path


def is_run(path: Path) -> bool:
    """Whether ``path`` is a run directory: it has the marker, with the marker's content."""
    return bool(_marker(path))


def _marker(path: Path) -> dict[str, Any]:
    """What the marker in ``path`` says; empty where there is none."""
    try:
        marker = msgspec.json.decode((path / MARKER).read_bytes())
    except (OSError, msgspec.DecodeError):
        return {}
    return marker if isinstance(marker, dict) and marker.get("format") == _FORMAT else {}


def load(path: Path) -> Report:
    """The report of a run directory, or a report file. Raises ``UsageError`` that says what is wrong."""
    file = path / REPORT if path.is_dir() else path
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        if not path.is_dir():
            why = f"{path} does not exist: give the directory of a numtrace run"
        elif _marker(path).get("command") == "bisect":
            why = f"{path} is of a numtrace bisect that ended before it had found anything out: run it again"
        elif is_run(path):
            why = f"{path} is a numtrace run that ended before its first variant was done: run again"
        else:
            why = f"{path} is not a numtrace run, it has no {REPORT}: give the directory that a run printed"
        raise UsageError(why) from None
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror or error}") from None
    return decode(data, str(file))
