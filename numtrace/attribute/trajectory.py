"""Site by site while the compiled program runs: what each dispatch brought in, inherited, and changed in meaning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from torch import Tensor

from numtrace.attribute.agreement import agrees
from numtrace.attribute.amendments import REWRITTEN
from numtrace.attribute.guesses import Guesses, differing
from numtrace.attribute.lanes import COMPILED, EXACT, REFERENCE, Lanes, Tag, same_values
from numtrace.attribute.matching import Formed, Holding, Pairing, permutes
from numtrace.attribute.reference import Reference
from numtrace.attribute.scalars import Constants, Exact, Rounded, Scalars, as_in_source, rounded_constants
from numtrace.attribute.site_records import Emit, Names, SiteRecords
from numtrace.attribute.source_bits import SourceBits
from numtrace.attribute.summary import Summary
from numtrace.attribute.verification import Result, Verification
from numtrace.errors import NumtraceError, UncoveredOp
from numtrace.evaluate.complex_numbers import as_parts, is_complex, of_parts
from numtrace.evaluate.dispatch import entry_point, evaluate_dispatch
from numtrace.evaluate.machine import TERMINATORS, Machine
from numtrace.evaluate.op import Op, walk
from numtrace.evaluate.program import Program
from numtrace.evaluate.typed.dispatch import typed_dispatch
from numtrace.evaluate.typed.machine import TypedMachine
from numtrace.evaluate.typed.value import Typed
from numtrace.evaluate.types import widen


class Trajectory:
    """Walks a variant's flow program beside its run.

    ``receive(key, tensors)`` is the trace callback: it must be called for every dispatch in the program's order.
    """

    def __init__(
        self,
        program: Program,
        formed: Mapping[str, list[Formed]],
        reference: Reference,
        names: Names,
        globals_: Mapping[Any, Any],
        scalars: Scalars,
        function: Op,
        arguments: list[Any],
        emit: Emit,
        exact: Mapping[str, Tensor] = MappingProxyType({}),
    ):
        """``exact``: globals that the compiler computed and rounded, as the source has them."""
        self.program = program
        self.lanes = Lanes(program, globals_, exact)
        self.summary = Summary()
        self._formed, self._reference, self._names = formed, reference, names
        self._verification = Verification(reference)
        self._source = SourceBits(program, self.lanes, reference)
        self._records = SiteRecords(program, self.lanes, names, self.summary, emit)
        self._scalars = scalars
        self._constants: dict[str, Constants] = {}
        self._places: list[tuple[Op, Exact]] = []
        self._guesses = Guesses(program, self.lanes, self._source, self._verification, scalars)
        self._typed = TypedMachine(program, sharp=False)
        self._walk = self._run(function, arguments)
        self._expected: str | None = next(self._walk, None)

    def receive(self, key: str, tensors: list[Tensor]) -> None:
        """Judges the sites of the dispatch ``key``.

        Raises:
            NumtraceError: the program's dispatches came in another order than the IR's.
        """
        if key != self._expected:
            raise NumtraceError(
                f"the compiled program traced dispatch {key} where its IR has {self._expected}"
            )
        try:
            self._expected = self._walk.send(tensors)
        except StopIteration:
            self._expected = None

    def finish(self) -> Summary:
        """The summary once the run is over.

        Raises:
            NumtraceError: dispatches of the IR were never traced.
        """
        if self._expected is not None:
            raise NumtraceError(f"the compiled program ended before dispatch {self._expected} was traced")
        return self.summary

    @property
    def constants(self) -> Constants:
        """All ops that are not as in the source, and how they are there."""
        return [*(pair for pairs in self._constants.values() for pair in pairs), *self._places]

    def settle_outputs(self, expected: list[Tensor]) -> None:
        """Amends sites that differ where the exact output is right and the one that was set back is not."""
        found = self.summary
        for want, back, exact, sites in zip(
            expected, found.outputs, found.exact_outputs, found.differing, strict=False
        ):
            want = want.reshape(exact.shape)
            if sites and agrees(exact, want) and not agrees(back, want):
                found.amended.update(dict.fromkeys(sites, REWRITTEN))

    def _run(self, function: Op, arguments: list[Any]) -> Generator[str, list[Tensor], None]:
        for number, initializer in enumerate(self.program.initializers):
            yield from self._function(initializer, f"init{number}", [])
        yield from self._function(function, function.symbol.removesuffix("$async"), arguments)

    def _function(self, function: Op, name: str, arguments: list[Any]) -> Generator[str, list[Tensor], None]:
        pairing = Pairing(self._formed.get(name, ()))
        dispatches = [op for op in walk(function.regions) if op.name == "flow.dispatch"]
        ordinals = {id(op): ordinal for ordinal, op in enumerate(dispatches)}
        formed: dict[int, Formed] = {}
        times: Counter[int] = Counter()
        for op in self.lanes.walk(function, arguments):
            if op.name in TERMINATORS:
                self._outputs(op)
                return
            key = f"{name}/{ordinals[id(op)]}"
            tensors = yield key
            if id(op) not in formed:
                formed[id(op)] = pairing.next(op)
            # The k-th time in a loop is a site of its own.
            site = f"{key}#{times[id(op)]}" if times[id(op)] else key
            times[id(op)] += 1
            self._dispatch(op, formed[id(op)], site, tensors)

    def _outputs(self, op: Op) -> None:
        values = [slot for slot in op.operands if isinstance(self.lanes.get(REFERENCE, slot), Tensor)]
        if op.name == "util.return" and values:
            self.summary.outputs = [self.lanes.get(REFERENCE, slot) for slot in values]
            self.summary.exact_outputs = [self.lanes.get(EXACT, slot) for slot in values]
            self.summary.differing = [self.lanes.tags([slot]).differing for slot in values]
            self.summary.tainted_outputs = self.lanes.tags(values).tainted

    def _dispatch(self, op: Op, formed: Formed, site: str, tensors: list[Tensor]) -> None:
        upstream = self.lanes.tags(op.operands)
        try:
            results = self._evaluate(op, formed, tensors)
        except UncoveredOp as error:
            self._uncovered(op, formed, site, tensors, upstream.tainted, str(error))
            return
        for result in results:
            self._verification.match(result, upstream)
        source = self._source.begin(formed, results)
        places: Constants = []
        if differing(results):
            before = [replace(result) for result in results]
            self._source.settle(op, source, results, upstream, self._constants[entry_point(op)])
            if differing(results):
                known = self._constants[entry_point(op)]
                results, guessed, places = self._guesses.explain(op, source, before, results, upstream, known)
                self._constants[entry_point(op)] = [*known, *guessed]
                self._places += places
                self._note_constants([*guessed, *places], formed)
            self.summary.near_ties += sum(result.near_ties for result in results)
        for index, result in enumerate(results):
            self._records.report(op, formed, f"{site}.{index}", result, upstream)
            self._settle(op, index, formed, f"{site}.{index}", result, upstream, places)

    def _evaluate(self, op: Op, formed: Formed, tensors: list[Tensor]) -> list[Result]:
        lanes, body = self.lanes, entry_point(op)
        inputs = {lane: [lanes.get(lane, slot) for slot in op.operands] for lane in (COMPILED, REFERENCE)}
        machine = lanes.machines[REFERENCE]
        constants = self._constants.get(body)
        if constants is None:
            constants = self._constants[body] = rounded_constants(
                self.program.executables[body], self._scalars
            )
        self._note_constants(constants, formed)
        with as_in_source(constants):
            # The reference trajectory has the source's constants: a rounded one is reported by its name, and
            # does not bury another difference beneath it.
            corrected = _made(machine, op, inputs[REFERENCE])
            exact: list[Tensor | None] = [None] * len(corrected)
            if lanes.differs(op.operands):
                exact = [*_made(machine, op, [lanes.get(EXACT, slot) for slot in op.operands])]
        reference = _made(machine, op, inputs[REFERENCE]) if constants else corrected
        typed = self._typed_meaning(self._typed, op, inputs[COMPILED])
        if same_values(inputs[COMPILED], inputs[REFERENCE]):
            compiled = reference
        elif typed is None:
            compiled = _made(machine, op, inputs[COMPILED])
        else:
            compiled = [value.exact for value in typed]
        holdings = formed.holdings or [Holding(formed.root, final=False, moved=False) for _ in reference]
        holdings = [
            held.of_parts() if tensor.is_complex() else held
            for held, tensor in zip(holdings, tensors, strict=True)
        ]
        typed_or_none: list[Typed | None] = [None] * len(tensors) if typed is None else [*typed]
        loose = [self._typed.loose] * len(tensors)
        rows = zip(
            map(as_parts, tensors),
            compiled,
            reference,
            exact,
            corrected,
            typed_or_none,
            loose,
            holdings,
            strict=True,
        )
        return [Result(*values) for values in rows]

    def _typed_meaning(self, machine: TypedMachine, op: Op, operands: list[Any]) -> list[Typed] | None:
        """d_Q(x_C) with its bounds; None, with the reason noted, where some op of the body has no bound."""
        body = entry_point(op)
        if body in self.summary.unbounded:
            return None
        machine.loose = False
        try:
            return [value.map(as_parts) for value in typed_dispatch(machine, op, operands)]
        except UncoveredOp as error:
            self.summary.unbounded[body] = str(error)
            return None

    def _note_constants(self, constants: Constants, formed: Formed) -> None:
        for op, exact in constants:
            name = self._names.name(op.stamps[0] if op.stamps else formed.root)
            if not isinstance(exact, Rounded):
                self.summary.places[name] = None
            elif name not in (ops := self.summary.constants.setdefault(exact, [])):
                ops.append(name)

    def _settle(
        self, op: Op, index: int, formed: Formed, site: str, result: Result, upstream: Tag, places: Constants
    ) -> None:
        """Sets the lanes for what comes after, and settles the sites that differed before."""
        lanes, slot = self.lanes, op.results[index]
        between = of_parts if is_complex(op.result_types[index]) else _itself
        lanes.set(COMPILED, slot, between(result.compiled))
        matched = result.match in ("verified", "ambiguous")
        basis = result.corrected
        # Only a value that differs is set back. A verified one is left as evaluated, so that what reaches the
        # output is a free run, and its agreement with the reference a measurement. The drift of float64 is
        # about 2^-29 of the error of a 32-bit run: it reaches the semantic floor where that error is 0.5 %.
        kept = result.reference if result.match == "differs" else basis
        lanes.set(REFERENCE, slot, between(kept))  # type: ignore[arg-type]
        self._source.keep(op, index, result, [*self._constants[entry_point(op)], *places])
        stamp = upstream.stamp if result.holding.moved else result.holding.stamp
        tainted = upstream.tainted and not matched
        settled = matched or result.match == "differs"
        since = frozenset() if settled else upstream.since.union(formed.stamps)
        if result.match in ("unmatched", "moved"):
            permuted = upstream.permuted or permutes(self.program.executables[entry_point(op)])
        else:
            permuted = result.layout is not None and result.layout.permutation is not None
        if result.healed:
            self.summary.amended.update(dict.fromkeys(upstream.differing, REWRITTEN))
            lanes.tag(slot, Tag(tainted, stamp=stamp, since=since, permuted=permuted))
            return
        sites: frozenset[str] = frozenset()
        exact = result.exact
        if result.match == "differs" and exact is None:
            exact = basis
        if exact is not None and not agrees(exact, result.reference):  # type: ignore[arg-type]
            lanes.set(EXACT, slot, between(exact))
            sites = upstream.differing | ({site} if result.match == "differs" else frozenset())
        lanes.tag(slot, Tag(tainted, sites, stamp, since, permuted))

    def _uncovered(
        self, op: Op, formed: Formed, site: str, tensors: list[Tensor], tainted: bool, why: str
    ) -> None:
        holdings = formed.holdings or [Holding(formed.root, final=False, moved=False) for _ in tensors]
        for stamp in formed.wanted():
            self._reference.release(stamp)
        for index, (slot, compiled, holding) in enumerate(zip(op.results, tensors, holdings, strict=True)):
            self._records.uncovered(op, formed, f"{site}.{index}", holding, as_parts(compiled), tainted, why)
            self.lanes.set(COMPILED, slot, compiled)
            self.lanes.set(REFERENCE, slot, widen(compiled))
            self.lanes.tag(slot, Tag(tainted=True, stamp=holding.stamp))


def _made(machine: Machine, op: Op, operands: list[Any]) -> list[Tensor]:
    """The exact results of a dispatch, of complex numbers their parts."""
    return [as_parts(value) for value in evaluate_dispatch(machine, op, operands)]


def _itself(value: Tensor) -> Tensor:
    return value
