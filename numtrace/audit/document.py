"""The document of ``numtrace passes --audit``, ``numtrace.audit`` version 1.

Keys are always written; more may be added.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from numtrace.dumps.schema import Tool
from numtrace.errors import UsageError

FORMAT = "numtrace.audit"
VERSION = 1

#: How the reason of ``untold`` begins where numtrace itself failed.
FAULT = "a fault of numtrace"

#: What a pass does with a program, the worst first.
Outcome = Literal["changes", "crashes", "fails", "untold", "keeps", "nothing"]
OUTCOMES: tuple[Outcome, ...] = ("changes", "crashes", "fails", "untold", "keeps", "nothing")


class Finding(msgspec.Struct, kw_only=True, frozen=True):
    """One program, and what is to be said of it; those that a pass keeps, or does nothing to, have none.

    Where the exact outputs differ, the largest difference, absolute and relative, null where one side is NaN or Inf.
    ``confirmed``: whether compiled code of the two programs differs in the same way; null where they could not be
    run; ``ran``: by how much. ``changes`` is confirmed; what is not is ``untold``. ``before`` and ``after`` are the
    files of the two.
    """

    program: str
    outcome: Outcome
    reason: str = ""
    max_abs: float | None = None
    rel: float | None = None
    confirmed: bool | None = None
    ran: float | None = None
    witness: str = ""
    before: str = ""
    after: str = ""


class Audited(msgspec.Struct, kw_only=True, frozen=True):
    """A pass with its options: how often which outcome, and the programs of note in the corpus' order.

    ``same_as`` names the spelling before it that makes of every program what this one does; then the rest is not
    repeated in the table.
    """

    name: str = msgspec.field(name="pass")
    pipeline: str
    counts: dict[str, int]
    findings: list[Finding]
    same_as: str = ""


class Refused(msgspec.Struct, kw_only=True, frozen=True):
    """A spelling that IREE does not parse."""

    name: str = msgspec.field(name="pass")
    reason: str


class Audit(msgspec.Struct, kw_only=True, frozen=True):
    format: str = FORMAT
    version: int = VERSION
    tool: Tool
    iree_compiler: str
    flags: list[str]
    programs: int
    passes: list[Audited]
    refused: list[Refused]
    seconds: float


def encode(document: Audit) -> bytes:
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"


def load(path: Path) -> Audit:
    """Raises UsageError: the file cannot be read, or is no document of an audit that this version reads."""
    try:
        document = msgspec.json.decode(path.read_bytes(), type=Audit)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from None
    except msgspec.DecodeError as error:
        raise UsageError(f"{path} is not a document of numtrace passes --audit: {error}") from None
    if (document.format, document.version) != (FORMAT, VERSION):
        raise UsageError(
            f"{path} is {document.format} version {document.version}; this numtrace reads {FORMAT} {VERSION}"
        )
    return document


def worse(document: Audit, earlier: Audit) -> list[tuple[str, Finding]]:
    """By pass, what is worse than in ``earlier``: an outcome of another kind, and worse, than there.

    A pass or a program that was not in it counts as one that did nothing. A pass that was, and now cannot be run on
    any program, fails.
    """
    before = {
        (audited.name, finding.program): OUTCOMES.index(finding.outcome)
        for audited in earlier.passes
        for finding in audited.findings
    }
    ran = {audited.name for audited in earlier.passes}
    lost = [
        (refused.name, Finding(program="every program", outcome="fails", reason=refused.reason))
        for refused in document.refused
        if refused.name in ran
    ]
    return lost + [
        (audited.name, finding)
        for audited in document.passes
        if not audited.same_as
        for finding in audited.findings
        if OUTCOMES.index(finding.outcome) < before.get((audited.name, finding.program), len(OUTCOMES))
    ]
