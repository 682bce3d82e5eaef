"""The document of ``numtrace bisect``, ``numtrace.bisect`` version 1. Keys are always written; more may be added."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from numtrace.dumps.schema import Environment, Target, Tool
from numtrace.errors import UsageError

FORMAT = "numtrace.bisect"
VERSION = 1
#: Its file in the run directory.
FILE = "bisect.json"


class Stage(msgspec.Struct, kw_only=True, frozen=True):
    """One stage of the pipeline, evaluated exactly; the gaps are to the stage evaluated before it.

    ``changed`` says that its exact outputs are others. A gap is null where one of the two is NaN or Inf and the
    other is not.
    """

    name: str
    file: str
    known: bool
    changed: bool
    max_abs: float | None
    rel: float | None
    reason: str = ""
    """Why it has no exact outputs, where it has none."""
    seconds: float = 0.0


class Ran(msgspec.Struct, kw_only=True, frozen=True):
    """A pass, with its options, and the op that it ran on; without a name it is the end of the stage."""

    name: str = msgspec.field(name="pass")
    pipeline: str
    on: str


class SourceOp(msgspec.Struct, kw_only=True, frozen=True):
    name: str
    kind: str
    module: str
    location: str


class Side(msgspec.Struct, kw_only=True, frozen=True):
    """The whole module's file, and of its IR what changed of the first source op."""

    file: str
    ir: str


class Untold(msgspec.Struct, kw_only=True, frozen=True):
    """A snapshot without exact outputs."""

    name: str = msgspec.field(name="pass")
    reason: str


class Step(msgspec.Struct, kw_only=True, frozen=True):
    """Where the meaning changes. Several passes: those between could not be evaluated, it is one of them.

    ``ops`` are the source ops that the pass changed and that the difference at the outputs can have come from,
    the first one first; ``changed`` is how many it changed in all.
    """

    stage: str
    passes: list[Ran]
    ops: list[SourceOp]
    changed: int
    max_abs: float | None
    rel: float | None
    before: Side
    after: Side
    snapshots: int
    evaluated: int
    exhaustive: bool
    unknown: list[Untold]


class Bisection(msgspec.Struct, kw_only=True, frozen=True):
    """``verdict``: ``found``, ``unchanged`` or ``inconclusive``; ``reason`` says it in one sentence."""

    format: str = FORMAT
    version: int = VERSION
    tool: Tool
    environment: Environment
    model: str
    sha256: str
    function: str
    target: Target
    passes: list[str]
    pipeline: str | None
    verdict: Literal["found", "unchanged", "inconclusive"]
    reason: str
    stages: list[Stage]
    steps: list[Step]
    notices: list[str]
    seconds: float


def encode(document: Bisection) -> bytes:
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"


def load(run: Path) -> Bisection | None:
    """The document in a run directory; None where it is not one of a search.

    Raises:
        UsageError: the document is of another version, or was cut off.
    """
    file = run / FILE
    try:
        document = msgspec.json.decode(file.read_bytes(), type=Bisection)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror or error}") from None
    except msgspec.DecodeError as error:
        raise UsageError(
            f"{file} is not a document of numtrace bisect that this version reads: {error}"
        ) from None
    if (document.format, document.version) != (FORMAT, VERSION):
        raise UsageError(
            f"{file} is {document.format} version {document.version}; this numtrace reads {FORMAT} {VERSION}"
        )
    return document
