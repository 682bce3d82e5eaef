"""All programs of the corpus, in the order in which they are run and shown."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import cache

from numtrace.audit import composites, convolutions, matmuls, moves, windows
from numtrace.audit.program import Program
from numtrace.errors import UsageError


@cache
def corpus() -> tuple[Program, ...]:
    """Every program, each of a name of its own: ``op.form``."""
    families = (convolutions, matmuls, windows, composites, moves)
    found = tuple(program for family in families for program in family.programs())
    assert len({program.name for program in found}) == len(found)
    return found


def matching(patterns: Sequence[str]) -> tuple[Program, ...]:
    """The programs whose names match one of ``patterns``, as a shell matches file names; all without patterns.

    Raises:
        UsageError: a pattern matches none.
    """
    for pattern in patterns:
        if not any(fnmatchcase(program.name, pattern) for program in corpus()):
            ops = ", ".join(dict.fromkeys(program.name.partition(".")[0] for program in corpus()))
            raise UsageError(
                f"--program {pattern}: no program of the corpus has such a name; they begin with {ops}"
            )
    return tuple(
        program
        for program in corpus()
        if not patterns or any(fnmatchcase(program.name, pattern) for pattern in patterns)
    )
