"""All programs of the corpus, in the order in which they are run and shown."""

from __future__ import annotations

from functools import cache

from numtrace.audit import composites, convolutions, matmuls, moves, windows
from numtrace.audit.program import Program


@cache
def corpus() -> tuple[Program, ...]:
    """Every program, each of a name of its own: ``op.form``."""
    families = (convolutions, matmuls, windows, composites, moves)
    found = tuple(program for family in families for program in family.programs())
    assert len({program.name for program in found}) == len(found)
    return found
