"""Every exception a user can meet, one tree.

Each says what was given, what was expected and what to do next; ``exit_code`` is what the command exits with.
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of ``numtrace run``, in the order of precedence given in the README."""

    OK = 0
    FINDING = 1  # a bug verdict, or over a given tolerance
    USAGE = 2  # usage or bad input, an unwritable output directory included
    FAILED = 3  # compile or run failed
    INCONCLUSIVE = 4
    INTERNAL = 70  # fault of numtrace
    INTERRUPTED = 130


class NumtraceError(Exception):
    """Base of all errors that numtrace raises on purpose; the message is one clear sentence."""

    exit_code = ExitCode.INTERNAL
    kind = "error"
    """In a word, for the report: ``compiler-crash``, ``time-out``, …"""


class UsageError(NumtraceError):
    """Something that the user gave cannot be used: a flag, a name, a file, a shape."""

    exit_code = ExitCode.USAGE
    kind = "usage"


class ModelError(UsageError):
    """The model cannot be read: not MLIR, no such function, a parse error with the compiler's line."""


class InputError(UsageError):
    """An input, a golden or a parameter archive is missing, broken or does not fit the model."""


class PassError(UsageError):
    """A pass is unknown, its pipeline does not parse, or the installed IREE lacks it."""


class OutputError(UsageError):
    """The output directory cannot be written, or the disk is full."""


class TargetError(NumtraceError):
    """The host lacks features that the target CPU asks for."""

    exit_code = ExitCode.FAILED


class CompileError(NumtraceError):
    """``iree-compile`` reported an error, crashed or ran out of time.

    ``stamps`` are numtrace's numbers of the source ops that the compiler's message speaks of, innermost
    first; ``location`` names the first of them, once somebody who has the table of stamps has looked it up.
    """

    exit_code = ExitCode.FAILED
    location: str | None = None

    def __init__(
        self, message: str, *, kind: str = "compiler-error", stamps: tuple[int, ...] = (), printed: str = ""
    ):
        self.kind, self.stamps, self.printed = kind, stamps, printed
        super().__init__(message)


class RunError(NumtraceError):
    """The compiled program failed, crashed, hung or was killed: ``kind`` says which."""

    exit_code = ExitCode.FAILED

    def __init__(self, message: str, *, kind: str = "run-error"):
        self.kind = kind
        super().__init__(message)


class UncoveredOp(NumtraceError):
    """The evaluator has no function for an op; the site becomes ``uncovered``, the run goes on.

    ``stamps`` are numtrace's numbers of the source ops that it came from; ``location`` names them, once somebody
    who has the table of stamps has looked them up.
    """

    location: str | None = None

    def __init__(self, op: str, why: str = ""):
        self.op = op
        self.stamps: tuple[int, ...] = ()
        super().__init__(self._sentence(op, why))

    def _sentence(self, op: str, why: str) -> str:
        return f"no evaluation of {op}{': ' + why if why else ''}"


class UndefinedResult(UncoveredOp):
    """An op has no result with these operands: a division by zero, an index out of range. Nobody's fault."""

    kind = "undefined"

    def _sentence(self, op: str, why: str) -> str:
        return f"{op} {why}: its result is undefined"
