"""What programs mean: their exact outputs on the model's inputs, told apart by number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from iree.compiler import ir
from torch import Tensor

from numtrace.attribute.agreement import alike
from numtrace.attribute.decisions import decides
from numtrace.attribute.floor import SEMANTIC_FLOOR
from numtrace.attribute.folded import Folded, folded_constants
from numtrace.attribute.guesses import guessed_places
from numtrace.attribute.magnitude import largest
from numtrace.attribute.near_ties import Snapping, Ties, Values, decided_values
from numtrace.attribute.noise import Noisy, measured, undecided
from numtrace.attribute.places import are_rounding
from numtrace.attribute.scalars import (
    Constants,
    Rounded,
    Scalars,
    as_in_source,
    derived_constants,
    rounded_constants,
    source_scalars,
)
from numtrace.attribute.sums import SummingMachine, Sums
from numtrace.attribute.worth import is_rounding
from numtrace.errors import ModelError, UncoveredOp
from numtrace.evaluate.complex_numbers import as_parts
from numtrace.evaluate.machine import MakeMachine
from numtrace.evaluate.op import Op
from numtrace.evaluate.overflow import Watch
from numtrace.evaluate.program import Program
from numtrace.evaluate.torch_conversion import signless
from numtrace.worker.modules import arguments, entry, load_globals
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

    Args of the constructor: the job's ``function``, ``params`` and ``reference``, the folder with the source, the
    inputs, and what tells torch's own max abs from given exact outputs in the types of a program: without it,
    rounded constants are never held against a program.
    """

    function: str
    params: Any
    reference: str
    shared: Path
    inputs: list[Tensor]
    own_error: Callable[[Program, list[Tensor]], float | None] | None = None
    evaluations: list[Evaluation] = field(default_factory=list)
    sums: dict[Path, dict[int, Sums]] = field(default_factory=dict)
    unknown: dict[Path, str] = field(default_factory=dict)
    _source: Program | None = None
    _base: Program | None = None
    _harmless: set[frozenset[Rounded | str]] = field(default_factory=set)
    _first: Path | None = None  # the program of the first meaning

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
        bodies = _bodies(program)
        known = [pair for body in bodies for pair in rounded_constants(body, scalars)]
        tables = self._tables(program)
        found = self._corrected(program, known, tables)
        self.sums[path] = found.sums
        number = self._number(found)
        ties = Ties()
        if number is None and self._first is not None:
            constants = [op for op, _ in known]
            derived: Constants = [pair for body in bodies for pair in derived_constants(body, constants)]
            # The lowering's own constants, such as √2: a guess that is believed when it explains everything.
            guessed = self._corrected(program, [*known, *derived], tables) if derived else found
            number = self._number(guessed) if derived else None
            if number is None:
                number = self._with_places(program, [*known, *derived], tables, guessed, scalars)
            if number is None:
                # Where a decision hangs on the rounding of float64, on what the first program decides.
                source = self._decided_values(program) if decides([program.body]) else {}
                ties, number = self._but_for_noise(program, known, tables, source, found)
                if number is None and derived:
                    ties, number = self._but_for_noise(program, [*known, *derived], tables, source, guessed)
        if number is None:
            self._first = self._first or path
            return self._new(found)
        stored = self._as_stored(program, known, tables, number, ties)
        if stored is None:
            return number
        self.sums[path] = stored.sums or found.sums
        number = self._number(stored)
        return self._new(stored) if number is None else number

    def _with_places(
        self,
        program: Program,
        known: Constants,
        tables: dict[str, Folded],
        found: Evaluation,
        scalars: Scalars,
    ) -> int | None:
        """The meaning with exact places, where what was ``found`` is no more than their rounding away from it."""
        for derived in (False, True):
            guess = [pair for body in _bodies(program) for pair in guessed_places(body, scalars, derived)]
            if not guess:
                return None
            taken, ops = [*known, *guess], [op for op, _ in guess]

            def evaluate(make: MakeMachine, taken: Constants = taken) -> list[Tensor]:
                return self._corrected(program, taken, tables, make).outputs

            made = self._corrected(program, taken, tables)
            number = self._number(made)
            if number is not None and are_rounding(found.outputs, made.outputs, program, ops, evaluate):
                return number
        return None

    def _as_stored(
        self,
        program: Program,
        known: list[tuple[Op, Rounded]],
        tables: dict[str, Folded],
        number: int,
        ties: Ties,
    ) -> Evaluation | None:
        """The program with its constants as they are, where they are worth more than rounding; else None.

        A scalar that was truncated may move an index from 2.0 to 1.9999999, and with it another pixel.
        """
        key: frozenset[Rounded | str] = frozenset([*(rounded for _, rounded in known), *tables])
        if not key or key in self._harmless or self.own_error is None:
            return None
        exact = self.evaluations[number].outputs
        allowed = self.own_error(program, exact)
        if allowed is None:
            return None
        stored = self._evaluate(program, {}, _settling(program, ties))
        worth, size = semantic_gap(stored.outputs, exact), max(map(largest, exact), default=0.0)
        if worth is None and not stored.in_range:
            return None
        if worth is not None and is_rounding(worth, allowed, size):
            self._harmless.add(key)
            return None
        return stored

    def _new(self, found: Evaluation) -> int:
        self.evaluations.append(found)
        return len(self.evaluations) - 1

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

    def _but_for_noise(
        self,
        program: Program,
        constants: Constants,
        tables: dict[str, Folded],
        source: Values,
        found: Evaluation,
    ) -> tuple[Ties, int | None]:
        """The meaning that ``found`` has but for elements that hang on the rounding of float64, and what of
        ``source`` that was settled by."""
        ties = measured(source, program, lambda make: self._corrected(program, constants, tables, make))
        settling, jumps = _settling(program, ties), decides([program.body])
        snapped = self._corrected(program, constants, tables, settling) if settling else found
        if settling and (number := self._number(snapped)) is not None:
            return ties, number

        @lru_cache(maxsize=1)
        def with_noise(seed: int) -> list[Tensor]:
            return self._corrected(program, constants, tables, partial(Noisy, program, ties, seed)).outputs

        def same(index: int, want: Tensor) -> bool:
            value, near = found.outputs[index], snapped.outputs[index]
            want = want.reshape(value.shape)
            return bool((alike(value, want) | undecided(value, near, want, with_noise, index, jumps)).all())

        for number, other in enumerate(self.evaluations):
            if all(same(index, want) for index, want in enumerate(other.outputs)):
                return ties, number
        return ties, None

    def _corrected(
        self,
        program: Program,
        constants: Constants,
        tables: dict[str, Folded],
        make: MakeMachine | None = None,
    ) -> Evaluation:
        with as_in_source(constants):
            exact = {name: table.exact for name, table in tables.items()}
            return self._evaluate(program, exact, make)

    def _evaluate(
        self,
        program: Program,
        tables: dict[str, Tensor],
        make: MakeMachine | None = None,
    ) -> Evaluation:
        function = entry(program, self.function)
        globals_ = load_globals(program, self.params) | tables
        machine = make(globals_) if make else SummingMachine(program, globals_)
        machine.watch = Watch()
        for initializer in program.initializers:
            machine.run(initializer.regions[0], [])
        values = machine.run(function.regions[0], arguments(function, self.inputs))
        outputs = [as_parts(signless(value)) for value in values if isinstance(value, Tensor)]
        sums = machine.sums if isinstance(machine, SummingMachine) else {}
        return Evaluation(outputs, sums, not machine.watch.beyond_float64)

    def _decided_values(self, program: Program) -> Values:
        """The values of the first program that decisions of ``program`` hang on."""
        assert self._first is not None
        first = Program.parse(self._first.read_text(encoding="utf-8"))
        function = entry(first, self.function)
        stage = "source" if self._first.name == "source.mlir" else "input"
        known = rounded_constants(function, source_scalars(self._stamped()))
        with as_in_source(known):
            given = arguments(function, self.inputs)
            return decided_values(first, function, stage, given, load_globals(first, self.params), program)

    def _tables(self, program: Program) -> dict[str, Folded]:
        source = self._reference()
        stored = load_globals(program, self.params)
        return folded_constants(program, source, entry(source, self.function), stored)

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


def _bodies(program: Program) -> list[Op]:
    return [*program.functions.values(), *program.initializers, *program.executables.values()]


def _settling(program: Program, ties: Ties) -> MakeMachine | None:
    return partial(Snapping, program, ties) if ties.source else None


class _Untold(Exception):
    """There are outputs, but they say nothing."""
