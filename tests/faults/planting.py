"""Ways to put the wrong ops of a piece into a program, each with IREE's own means.

* A pass: a transform library that finds the right ops and calls the wrong ones instead. The IR changes.
* The code: IREE is told to take other code for a dispatch than what it would make of the IR, which stays right.
* A stage of IREE's own pipeline: its file is edited on disk, and the next phase goes on from there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from programs import FLAGS

from faults.piece import Piece, program
from numtrace.instrument.compiler import compile_file
from numtrace.worker import compilation, variant
from numtrace.worker.stages import PHASES


class NotPlanted(Exception):
    """The wrong ops do not fit into the place of the right ones: the draw says nothing."""


def as_pass(pieces: Sequence[Piece], planted: Sequence[int], folder: Path) -> str:
    """Pipeline text of a pass that replaces the pieces ``planted``."""
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / "library.mlir"
    bodies = [_replacement(pieces[n], n) for n in planted]
    pairs = ", ".join(f"@match{n} -> @replace{n}" for n in planted)
    library.write_text(
        "module attributes {transform.with_named_sequence} {\n"
        + "".join(bodies)
        + f"""
transform.named_sequence @__transform_main(%module: !transform.any_op) {{
  %functions = transform.structured.match ops{{["util.func"]}} in %module : (!transform.any_op) -> !transform.any_op
  transform.foreach %functions : !transform.any_op {{
  ^bb0(%function: !transform.any_op):
    transform.foreach_match in %function {pairs} : (!transform.any_op) -> !transform.any_op
  }}
  transform.apply_dce to %module : !transform.any_op
  transform.yield
}}
}}
"""
    )
    return f"builtin.module(iree-preprocessing-transform-interpreter{{transform-spec-path={library}}},inline)"


def _replacement(piece: Piece, n: int) -> str:
    arguments = ", ".join(f"%{name}: {type_}" for name, type_ in piece.arguments)
    return f"""
util.func private @planted{n}({arguments}) -> {piece.result} {{
{piece.wrong}
util.return %out : {piece.result}
}}
transform.named_sequence @replace{n}(
    %ins: !transform.any_value {{transform.readonly}}, %out: !transform.any_value {{transform.readonly}}) {{
  %root = transform.get_defining_op %out : (!transform.any_value) -> !transform.any_op
  %table = transform.util.get_nearest_symbol_table %root : (!transform.any_op) -> !transform.any_op
  %callee = transform.util.import_symbol @planted{n} into %table if undefined
      : (!transform.any_op) -> !transform.any_op
  transform.util.cast_and_call %callee(%ins) -> %out after %root {{
  }} : (!transform.any_op, !transform.any_value, !transform.any_value, !transform.any_op) -> !transform.any_op
  transform.yield
}}
transform.named_sequence @match{n}(%root: !transform.any_op {{transform.readonly}})
    -> (!transform.any_value, !transform.any_value) {{
  %ins, %outs = transform.iree.match.cast_compatible_dag_from_root %root {{
  ^bb0({arguments}):
{piece.right}
  }} : (!transform.any_op) -> (!transform.any_value, !transform.any_value)
  transform.yield %ins, %outs : !transform.any_value, !transform.any_value
}}
"""


def as_code(pieces: Sequence[Piece], planted: Sequence[int], folder: Path) -> list[str]:
    """Compiler flags by which the dispatches of the pieces ``planted`` run wrong code.

    Raises:
        NotPlanted: with the wrong ops the compiler cuts the program into other dispatches.
    """
    right = executables(program(pieces)[0], folder / "right")
    wrong = executables(program(pieces, planted)[0], folder / "wrong")
    if right.keys() != wrong.keys():
        raise NotPlanted(f"{len(right)} dispatches, and {len(wrong)} with the fault")
    flags = []
    for name, text in right.items():
        other = wrong[name].replace(_entry(wrong[name]), _entry(text))
        if other == text:
            continue
        if _layout(other) != _layout(text):
            raise NotPlanted(f"{name} takes other operands with the fault")
        path = folder / f"{name}.mlir"
        path.write_text(_apart(other))
        flags.append(f"--iree-hal-substitute-executable-source={name}={path}")
    if not flags:
        raise NotPlanted("the compiler makes the same of both")
    return flags


def executables(text: str, folder: Path) -> dict[str, str]:
    """The sources of a program's executables by their name."""
    folder.mkdir(parents=True)
    source = folder / "program.mlir"
    source.write_text(text)
    code = folder / "sources"
    # Without locations, which would make every executable another text.
    flags = [*FLAGS, "--compile-to=executable-sources", f"--iree-hal-dump-executable-sources-to={code}"]
    compile_file(source, folder / "out.mlir", flags)
    return {
        path.stem.removeprefix("module_"): path.read_text() for path in sorted(code.glob("module_*.mlir"))
    }


@contextmanager
def edited(stage: str, edit: Callable[[str], str]) -> Iterator[None]:
    """Has the file of ``stage`` edited as soon as a variant's compilation has written it.

    The program without traces, which is compiled in one go otherwise, is compiled from there as well.
    """
    phase, whole = compilation.phase, variant.Compilation

    def editing(source: Path, target: Path, start: str | None, end: str | None, *more: Any) -> str:
        printed = phase(source, target, start, end, *more)
        if end == stage:
            target.write_text(edit(target.read_text()))
        return printed

    class GoingOn(AbstractContextManager):
        def __init__(self, source: Path, target: Path, flags: Sequence[str], *, timeout: float | None):
            self._target, self._flags, self._timeout = target, flags, timeout

        def __exit__(self, *_: object) -> None:
            pass

        def wait(self) -> str:
            flow = self._target.with_name("flow.mlir")
            return phase(flow, self._target, "flow", None, self._flags, self._timeout)

    compilation.phase, variant.Compilation = editing, GoingOn
    try:
        yield
    finally:
        compilation.phase, variant.Compilation = phase, whole


def compiled_to(stage: str, source: Path, folder: Path) -> str:
    """The text at ``stage`` of a program at the input stage."""
    folder.mkdir(parents=True)
    start = "input"
    for name in PHASES[1 : PHASES.index(stage) + 1]:
        compilation.phase(source, folder / f"{name}.mlir", start, name, FLAGS)
        source, start = folder / f"{name}.mlir", name
    return source.read_text()


def _apart(text: str) -> str:
    """The results at the beginning of their buffers, as where every dispatch is traced.

    The compiler puts the results of a function into one buffer, and their offsets into the code. So only the traced
    program has the right places for them; in the plain one a wrong piece may write over another's result as well.
    """
    return re.sub(r"offset\(%c\d+\)", "offset(%c0)", text)


def _entry(text: str) -> str:
    found = re.search(r"hal.executable.export public @(\S+)", text)
    assert found is not None
    return found[1]


def _layout(text: str) -> str:
    found = re.search(r"layout\((#hal.pipeline.layout<.*?>)\) count", text)
    assert found is not None
    return found[1]
