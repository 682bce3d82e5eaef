"""What programs mean: their exact outputs on the model's inputs, told apart by number."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from iree.compiler import ir
from torch import Tensor

from numtrace.attribute.floor import SEMANTIC_FLOOR
from numtrace.attribute.folded import folded_constants
from numtrace.attribute.scalars import (
    derived_constants,
    rounded_constants,
    set_to_source,
    source_scalars,
)
from numtrace.attribute.sums import SummingMachine, Sums
from numtrace.errors import ModelError, UncoveredOp
from numtrace.evaluate.overflow import Watch
from numtrace.evaluate.program import Program
from numtrace.evaluate.torch_conversion import SIGNLESS
from numtrace.worker.modules import archives, arguments, entry, load_globals
from numtrace.worker.outcome import relative_gap, semantic_gap


@dataclass(slots=True)
class Evaluation:
    """The exact outputs of a program, the sums of its source ops' values, and whether float64 held them all."""

    outputs: list[Tensor]
    sums: dict[int, Sums]
    in_range: bool


@dataclass(slots=True)
class Meanings:
    """Evaluates programs of one model and numbers their meanings.

    ``evaluations`` has one evaluation of each meaning, ``sums`` those of each program by its file, and ``unknown``
    why one has no meaning here.

    Args of the constructor: the job's ``function``, ``params`` and ``reference``, the folder with the source, and
    the inputs.
    """

    function: str
    params: Any
    reference: str
    shared: Path
    inputs: list[Tensor]
    evaluations: list[Evaluation] = field(default_factory=list)
    sums: dict[Path, dict[int, Sums]] = field(default_factory=dict)
    unknown: dict[Path, str] = field(default_factory=dict)
    _source: Program | None = None
    _base: Program | None = None

    def of(self, path: Path) -> int | None:
        """The number of the meaning of the program in ``path``; None when it cannot be told, see ``unknown``.

        Scalars and tables that a lowering rounded are taken with the values of the source.
        """
        try:
            return self._told(path)
        except (UncoveredOp, ModelError, _Untold) as error:
            self.unknown[path] = str(error)
        except ir.MLIRError as error:
            self.unknown[path] = f"it does not parse: {str(error).splitlines()[0]}"
        except RuntimeError as error:  # torch's own: two shapes that do not go together
            self.unknown[path] = f"its evaluation failed: {str(error).splitlines()[0]}"
        return None

    def gap(self, first: int, second: int) -> tuple[float | None, float | None]:
        """Between two meanings: max abs, and relative to the outputs' sizes; None for a NaN or Inf on one side."""
        a, b = self.evaluations[first].outputs, self.evaluations[second].outputs
        return semantic_gap(b, a), relative_gap(b, a, a)

    def _told(self, path: Path) -> int:
        program = Program.parse(path.read_text(encoding="utf-8"))
        scalars = source_scalars(self._stamped())
        bodies = [*program.functions.values(), *program.initializers, *program.executables.values()]
        known = [pair for body in bodies for pair in rounded_constants(body, scalars)]
        set_to_source(known)
        found = self._evaluate(program)
        self.sums[path] = found.sums
        number = self._number(found)
        if number is None and self.evaluations:
            constants = [op for op, _ in known]
            derived = [pair for body in bodies for pair in derived_constants(body, constants)]
            if derived:
                # The lowering's own constants, such as √2: a guess that is believed when it explains everything.
                set_to_source(derived)
                number = self._number(self._evaluate(program))
        if number is None:
            self.evaluations.append(found)
            number = len(self.evaluations) - 1
        return number

    def _number(self, found: Evaluation) -> int | None:
        for number, other in enumerate(self.evaluations):
            if [value.numel() for value in other.outputs] != [value.numel() for value in found.outputs]:
                raise _Untold("its outputs have other shapes than before")
            gap = relative_gap(found.outputs, other.outputs, other.outputs)
            if gap is None and not (found.in_range and other.in_range):
                raise _Untold("it leaves the range of float64, and what follows from that proves nothing")
            if gap is not None and gap <= SEMANTIC_FLOOR:
                return number
        return None

    def _evaluate(self, program: Program) -> Evaluation:
        function = entry(program, self.function)
        globals_ = load_globals(program, self.params)
        source = self._reference()
        tables = folded_constants(program, source, entry(source, self.function), globals_)
        globals_ |= {name: table.exact for name, table in tables.items()}
        machine = SummingMachine(program, globals_)
        machine.watch = Watch()
        for initializer in program.initializers:
            machine.run(initializer.regions[0], [])
        values = machine.run(function.regions[0], arguments(function, self.inputs))
        outputs = [_signless(value) for value in values if isinstance(value, Tensor)]
        return Evaluation(outputs, machine.sums, not machine.watch.beyond_float64)

    def _stamped(self) -> Program:
        """The source as the user gave it."""
        if self._source is None:
            self._source = Program.parse((self.shared / "source.mlir").read_text(encoding="utf-8"))
        return self._source

    def _reference(self) -> Program:
        """The program that tables are computed from: the source, or the first stage below another dialect's."""
        if self.reference == "torch":
            return self._stamped()
        if self._base is None:
            self._base = Program.parse((self.shared / "input.mlir").read_text(encoding="utf-8"))
        return self._base


class _Untold(Exception):
    """There are outputs, but they say nothing."""


def _signless(value: Tensor) -> Tensor:
    return value.view(SIGNLESS[value.dtype]) if value.dtype in SIGNLESS else value


def open_meanings(job: dict[str, Any], inputs: list[Tensor]) -> Meanings:
    return Meanings(job["function"], archives(job["params"]), job["reference"], Path(job["shared"]), inputs)
