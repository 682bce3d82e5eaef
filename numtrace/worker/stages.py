"""The stages of a pipeline that bisect goes through: compiled one after another, only as far as needed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from numtrace.instrument.compiler import phase
from numtrace.worker.compilation import Variant

#: IREE's phases down to where a program is cut into dispatches; what comes after is code, not mathematics.
PHASES = ("input", "preprocessing", "global-optimization", "dispatch-creation", "flow")


@dataclass(frozen=True, slots=True)
class Stage:
    """A program in ``path``; ``phase`` is what to compile from to go on, None for the source."""

    name: str
    path: Path
    phase: str | None


def stages(variant: Variant) -> Iterator[Stage]:
    """The source and each stage down to ``flow``; with a pass from ``input`` on, which the pass is given.

    Raises:
        CompileError: on the way to one of them, when it is asked for.
    """
    if not variant.job["passes"]:
        yield Stage("source", variant.shared / "source.mlir", None)
    stage = Stage("input", variant.shared / "input.mlir", "input")
    yield stage
    for name in PHASES[1:]:
        variant.channel.stage(f"compile to {name}")
        flags = [*variant.flags, *variant.pass_flags]
        phase(stage.path, variant.file(name), stage.phase, name, flags, variant.timeout)
        stage = Stage(name, variant.file(name), name)
        yield stage
