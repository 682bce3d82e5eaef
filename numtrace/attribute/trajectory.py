"""Site by site while the compiled program runs: what each dispatch brought in, inherited, and changed in meaning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from numtrace.attribute.agreement import agrees, alike, nearest, placed_in
from numtrace.attribute.codegen import Distance, distance, free_share, record_of
from numtrace.attribute.decisions import decided_on
from numtrace.attribute.lanes import COMPILED, EXACT, REFERENCE, SOURCE, Lanes, Tag, same_values
from numtrace.attribute.layout import Layout, layouts
from numtrace.attribute.matching import Formed, Holding, Pairing, permutes
from numtrace.attribute.near_ties import Snapping
from numtrace.attribute.reference import Reference
from numtrace.attribute.scalars import (
    Rounded,
    Scalars,
    as_in_source,
    derived_constants,
    rounded_constants,
)
from numtrace.attribute.terms import site_terms
from numtrace.errors import NumtraceError, UncoveredOp
from numtrace.evaluate.dispatch import entry_point, evaluate_dispatch
from numtrace.evaluate.machine import TERMINATORS
from numtrace.evaluate.program import Op, Program, walk
from numtrace.evaluate.tensors import defined
from numtrace.evaluate.typed.dispatch import typed_dispatch
from numtrace.evaluate.typed.machine import TypedMachine
from numtrace.evaluate.typed.value import Typed
from numtrace.evaluate.types import tensor_type, widen

#: What a site is amended to when what is made of it is found to be right.
REWRITTEN = "rewritten: the value is not the source op's own, what is made of it is right"

#: From this part of a bound that was made wider than it need be, the sharp one is asked. It is 1.5 times wider for
#: normally distributed data, 3 times where nineteen of twenty elements are zero; only sites that come near the bound
#: pay for the sharp one.
_NEAR = 1 / 16

Emit = Callable[[dict[str, Any]], None]


@dataclass(slots=True)
class Names:
    """How stamps are shown: op name, module path and original location of each."""

    table: list[dict[str, Any]]

    def name(self, stamp: int | None) -> str:
        return self.table[stamp]["name"] if stamp is not None and stamp < len(self.table) else "(compiler)"

    def get(self, stamp: int | None, key: str) -> str:
        return self.table[stamp][key] if stamp is not None and stamp < len(self.table) else ""


@dataclass(slots=True)
class _Result:
    """One result of a dispatch in the lanes, while its site is being judged."""

    compiled: Tensor
    exact_compiled: Tensor
    exact_reference: Tensor
    exact: Tensor | None
    corrected: Tensor  # as exact_reference, with the source's constants
    typed: Typed | None  # d_Q(x_C) with its bound; None where there is no bound
    loose: bool  # whether the bound was made wider to save work
    holding: Holding
    candidates: list[tuple[Tensor, Layout]] | None = None  # source values that it may hold, and how they lie
    reference: Tensor | None = None
    match: str = "unmatched"
    layout: Layout | None = None
    healed: bool = False
    constant: bool = False
    near_ties: int = 0


@dataclass(slots=True)
class Summary:
    """What the walk found beyond the sites."""

    outputs: list[Tensor] = field(default_factory=list)
    exact_outputs: list[Tensor] = field(default_factory=list)
    differing: list[frozenset[str]] = field(
        default_factory=list
    )  # per output: sites whose difference it carries
    constants: dict[Rounded, list[str]] = field(default_factory=dict)
    origin: tuple[str, str] | None = None
    disagrees: bool = False  # whether the reference is finite at the origin
    amended: dict[str, str] = field(default_factory=dict)
    unbounded: dict[str, str] = field(default_factory=dict)  # by entry point: why it has no error bound
    tainted_outputs: bool = False
    near_ties: int = 0


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
        self._formed, self._reference, self._names, self._emit = formed, reference, names, emit
        self._scalars = scalars
        self._constants: dict[str, list[tuple[Op, Rounded]]] = {}
        self._typed = TypedMachine(program, sharp=False)
        self._decided_on = decided_on(program)
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
            self._judge(result, upstream)
        if formed.decides or self.lanes.differs(op.operands, SOURCE):
            self._settle_near_ties(op, formed, results, upstream)
        if any(result.match == "differs" for result in results):
            results = self._with_derived_constants(op, formed, results, upstream)
        for index, result in enumerate(results):
            self._report(op, formed, f"{site}.{index}", result, upstream)
            self._settle(op, index, formed, f"{site}.{index}", result, upstream)

    def _evaluate(self, op: Op, formed: Formed, tensors: list[Tensor]) -> list[_Result]:
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
            corrected = evaluate_dispatch(machine, op, inputs[REFERENCE])
            exact: list[Tensor | None] = [None] * len(corrected)
            if lanes.differs(op.operands):
                exact = [*evaluate_dispatch(machine, op, [lanes.get(EXACT, slot) for slot in op.operands])]
        reference = evaluate_dispatch(machine, op, inputs[REFERENCE]) if constants else corrected
        typed = self._typed_meaning(self._typed, op, inputs[COMPILED])
        if same_values(inputs[COMPILED], inputs[REFERENCE]):
            compiled = reference
        elif typed is None:
            compiled = evaluate_dispatch(machine, op, inputs[COMPILED])
        else:
            compiled = [value.exact for value in typed]
        holdings = formed.holdings or [Holding(formed.root, final=False, moved=False) for _ in reference]
        typed_or_none: list[Typed | None] = [None] * len(tensors) if typed is None else [*typed]
        loose = [self._typed.loose] * len(tensors)
        rows = zip(
            tensors, compiled, reference, exact, corrected, typed_or_none, loose, holdings, strict=True
        )
        return [_Result(*values) for values in rows]

    def _typed_meaning(self, machine: TypedMachine, op: Op, operands: list[Any]) -> list[Typed] | None:
        """d_Q(x_C) with its bounds; None, with the reason noted, where some op of the body has no bound."""
        body = entry_point(op)
        if body in self.summary.unbounded:
            return None
        machine.loose = False
        try:
            return typed_dispatch(machine, op, operands)
        except UncoveredOp as error:
            self.summary.unbounded[body] = str(error)
            return None

    def _settle_near_ties(self, op: Op, formed: Formed, results: list[_Result], upstream: Tag) -> None:
        """Sets the elements that hang on rounding to the source's, and judges their results again."""
        differing = [index for index, result in enumerate(results) if result.match == "differs"]
        wanted = formed.stamps if formed.decides else ()
        if not differing:
            for stamp in wanted:
                self._reference.release(stamp)
            return
        source = [
            value for stamp in wanted for value in self._source_values(stamp) if value.dtype == torch.float64
        ]
        machine = Snapping(self.program, source)
        operands = [self.lanes.get(SOURCE, slot) for slot in op.operands]
        with as_in_source(self._constants[entry_point(op)]):
            values = evaluate_dispatch(machine, op, operands)
        for index in differing:
            result = results[index]
            assert result.reference is not None
            decided_alike = ~alike(result.corrected, result.reference) & alike(
                values[index], result.reference
            )
            result.near_ties = int(decided_alike.sum())
            if result.near_ties:
                self.summary.near_ties += result.near_ties
                same = result.corrected is result.exact_reference
                result.corrected = torch.where(decided_alike, result.reference, result.corrected)
                result.exact_reference = (
                    result.corrected
                    if same
                    else torch.where(decided_alike, result.reference, result.exact_reference)
                )
                result.match, result.layout, result.reference = "unmatched", None, None
                self._judge(result, upstream)

    def _source_values(self, stamp: int) -> list[Tensor]:
        return [value for value in self._reference.values(stamp) if isinstance(value, Tensor)]

    def _with_derived_constants(
        self, op: Op, formed: Formed, results: list[_Result], upstream: Tag
    ) -> list[_Result]:
        """The results judged again with what the lowering's own constants may stand for; as they were if that fails."""
        body = entry_point(op)
        known = self._constants[body]
        derived = derived_constants(self.program.executables[body], [constant for constant, _ in known])
        if not derived:
            return results
        inputs = [self.lanes.get(REFERENCE, slot) for slot in op.operands]
        with as_in_source([*known, *derived]):
            corrected = evaluate_dispatch(self.lanes.machines[REFERENCE], op, inputs)
        again = [
            replace(result, corrected=value, match="unmatched", reference=None, layout=None, healed=False)
            for result, value in zip(results, corrected, strict=True)
        ]
        for result in again:
            self._judge(result, upstream)
        if any(result.match == "differs" for result in again):
            return results
        self._constants[body] = [*known, *derived]
        self._note_constants(derived, formed)
        return again

    def _note_constants(self, constants: list[tuple[Op, Rounded]], formed: Formed) -> None:
        for op, rounded in constants:
            name = self._names.name(op.stamps[0] if op.stamps else formed.root)
            ops = self.summary.constants.setdefault(rounded, [])
            if name not in ops:
                ops.append(name)

    def _judge(self, result: _Result, upstream: Tag) -> None:
        """Finds the reference value of a result and sets ``match``, ``reference`` and ``layout``."""
        holding = result.holding
        basis = result.corrected
        if result.candidates is None:  # the reference hands its values out once
            asks = holding.final and holding.stamp is not None
            result.candidates = self._candidates(result, upstream) if asks else []
        candidates = result.candidates
        for source, layout in candidates:
            if agrees(layout.view(basis), layout.place(source, basis)):
                self._accept(result, basis, source, layout, candidates)
                result.constant = basis is not result.exact_reference
                return
        if result.exact is not None and upstream.differing:
            for source, layout in candidates:
                if agrees(layout.view(result.exact), layout.place(source, result.exact)):
                    # The value before it was not the source's, this one is: the program was rewritten.
                    self._accept(result, result.exact, source, layout, candidates)
                    result.exact_reference = result.corrected = result.exact
                    result.healed = True
                    return
        # What is only moved holds what it was given, unless that was an intermediate of the same source op.
        made = not holding.moved or upstream.stamp == holding.stamp
        known = [candidate for candidate in candidates if candidate[1].known]
        if known and made and not upstream.tainted:
            source, layout = nearest(basis, known)
            result.match, result.layout = "differs", layout
            result.reference = placed_in(basis, layout, source)
            return
        if holding.moved:
            result.match = "moved"
        result.reference = basis

    def _candidates(self, result: _Result, upstream: Tag) -> list[tuple[Tensor, Layout]]:
        stamp = result.holding.stamp
        values = self._source_values(stamp)  # type: ignore[arg-type]
        shape = tuple(result.exact_reference.shape)
        return [
            (value, layout)
            for value in values
            for layout in layouts(
                tuple(value.shape), shape, result.holding.window, permuted=upstream.permuted
            )
        ]

    def _accept(
        self, result: _Result, basis: Tensor, source: Tensor, layout: Layout, candidates: list
    ) -> None:
        others = [
            (other, at)
            for other, at in candidates
            if (other is not source or at != layout) and agrees(at.view(basis), at.place(other, basis))
        ]
        result.match = "ambiguous" if others else "verified"
        result.layout = layout
        result.reference = placed_in(basis, layout, source)

    def _settle(self, op: Op, index: int, formed: Formed, site: str, result: _Result, upstream: Tag) -> None:
        """Sets the lanes for what comes after, and settles the sites that differed before."""
        lanes, slot = self.lanes, op.results[index]
        lanes.set(COMPILED, slot, result.compiled)
        matched = result.match in ("verified", "ambiguous")
        basis = result.corrected
        # Only a value that differs is set back. A verified one is left as evaluated, so that what reaches the
        # output is a free run, and its agreement with the reference a measurement. The drift of float64 is
        # about 2^-29 of the error of a 32-bit run: it reaches the semantic floor where that error is 0.5 %.
        lanes.set(REFERENCE, slot, result.reference if result.match == "differs" else basis)
        self._set_source(op, index, result)
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
        differing: frozenset[str] = frozenset()
        exact = result.exact
        if result.match == "differs" and exact is None:
            exact = basis
        if exact is not None and not agrees(exact, result.reference):  # type: ignore[arg-type]
            lanes.set(EXACT, slot, exact)
            differing = upstream.differing | ({site} if result.match == "differs" else frozenset())
        lanes.tag(slot, Tag(tainted, differing, stamp, since, permuted))

    def _set_source(self, op: Op, index: int, result: _Result) -> None:
        """Keeps the source's bits of a value that a decision hangs on, and what is made of them."""
        lanes, slot = self.lanes, op.results[index]
        value = None
        if result.match in ("unmatched", "moved"):
            if lanes.differs(op.operands, SOURCE):
                operands = [lanes.get(SOURCE, slot) for slot in op.operands]
                with as_in_source(self._constants[entry_point(op)]):
                    value = evaluate_dispatch(lanes.machines[REFERENCE], op, operands)[index]
        elif slot in self._decided_on:
            value = result.reference
        if value is not None and not _same_bits(value, lanes.get(REFERENCE, slot)):
            lanes.set(SOURCE, slot, value)

    def _report(self, op: Op, formed: Formed, site: str, result: _Result, upstream: Tag) -> None:
        record = self._record(op, formed, site, result.holding, result.compiled, upstream.tainted)
        made_by = sorted(upstream.since.union(formed.stamps))
        record |= {"made_by": made_by, "made_by_names": [self._names.name(stamp) for stamp in made_by]}
        record["made_by_modules"] = [self._names.get(stamp, "module") for stamp in made_by]
        record["match"] = result.match
        record["layout"] = None if result.layout is None else str(result.layout)
        record["constant"] = result.constant
        record["near_ties"] = result.near_ties
        dtype = record["dtype"]
        assert result.reference is not None
        typed = None if result.typed is None else result.typed.typed
        record |= site_terms(
            result.compiled, result.exact_compiled, result.exact_reference, result.reference, dtype, typed
        )
        record |= self._code(op, site, result, dtype)
        if record["introduced"]["nan"] or record["introduced"]["inf"]:
            record["disagreeing"] = _disagreeing(result.compiled, result.exact_compiled)
        self._first_nonfinite(record, result.compiled, result.reference)
        self._emit(record)

    def _code(self, op: Op, site: str, result: _Result, dtype: str) -> dict[str, Any]:
        """What the bounds say of the code: the wide one, where that is near the sharp one, where that is exceeded
        the deterministic one."""
        if result.typed is None:
            return {"code": "unbounded", "unbounded_reason": self.summary.unbounded[entry_point(op)]}
        mask = defined(result.exact_compiled)
        mask = None if mask is None else mask.reshape(-1)
        near, far = distance(result.compiled, result.typed, dtype, mask), None

        def again(machine: TypedMachine) -> Distance:
            operands = [self.lanes.get(COMPILED, slot) for slot in op.operands]
            value = typed_dispatch(machine, op, operands)[int(site.rsplit(".", 1)[1])]
            return distance(result.compiled, value, dtype, mask)

        if near.ratio > _NEAR and result.loose:
            near = again(TypedMachine(self.program))
        if near.ratio > 1:
            far = again(TypedMachine(self.program, deterministic=True))
        fields = record_of(near, far, tuple(result.compiled.shape))
        if near.free:
            fields["free_share"] = free_share(result.compiled, result.typed, mask)
        return fields

    def _record(
        self, op: Op, formed: Formed, site: str, holding: Holding, compiled: Tensor, tainted: bool
    ) -> dict[str, Any]:
        names, shown = (
            self._names,
            holding.stamp if holding.stamp is not None and not holding.moved else formed.root,
        )
        index = int(site.rsplit(".", 1)[1])
        return {
            "id": site,
            "dispatch": entry_point(op).rsplit("::", 1)[-1],
            "op": names.name(shown),
            "ops": [
                names.name(stamp) for stamp in formed.stamps if not names.get(stamp, "kind").endswith("func")
            ],
            "stamps": list(formed.stamps),
            "module": names.get(shown, "module") or names.get(formed.root, "module"),
            "location": names.get(shown, "location"),
            "dtype": tensor_type(op.result_types[index])[1],
            "shape": list(compiled.shape),
            "tainted": tainted,
            "elements": compiled.numel(),
        }

    def _first_nonfinite(self, record: dict[str, Any], compiled: Tensor, reference: Tensor) -> None:
        """Notes the first site to hold a NaN or Inf; one that the reference does not have comes before others."""
        if self.summary.disagrees or not compiled.is_floating_point():
            return
        bad = ~torch.isfinite(compiled.float() if compiled.element_size() == 1 else compiled)
        if not bool(bad.any()):
            return
        disagrees = bool((bad & torch.isfinite(reference)).any())
        if disagrees or self.summary.origin is None:
            self.summary.origin = (record["id"], record["op"])
            self.summary.disagrees = disagrees
            record["nonfinite_first"] = True

    def _uncovered(
        self, op: Op, formed: Formed, site: str, tensors: list[Tensor], tainted: bool, why: str
    ) -> None:
        holdings = formed.holdings or [Holding(formed.root, final=False, moved=False) for _ in tensors]
        for stamp in formed.wanted():
            self._reference.release(stamp)
        for index, (slot, compiled, holding) in enumerate(zip(op.results, tensors, holdings, strict=True)):
            record = self._record(op, formed, f"{site}.{index}", holding, compiled, tainted)
            record |= {"match": "uncovered", "reason": why}
            self.lanes.set(COMPILED, slot, compiled)
            self.lanes.set(REFERENCE, slot, widen(compiled))
            self.lanes.tag(slot, Tag(tainted=True, stamp=holding.stamp))
            self._emit(record)


def _same_bits(a: Tensor, b: Tensor) -> bool:
    return a is b or torch.equal(a, b)


def _disagreeing(compiled: Tensor, exact: Tensor) -> int:
    """How many defined elements are NaN or infinite on one side only, or another infinity."""
    a, b = compiled.double(), exact.double()
    finite = torch.isfinite(a) & torch.isfinite(b)
    apart = ~(finite | (a == b) | (torch.isnan(a) & torch.isnan(b)))
    mask = defined(exact)
    return int((apart if mask is None else apart & mask).sum())
