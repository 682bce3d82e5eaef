"""What the report says of each site, sent as soon as it is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from numtrace.attribute.codegen import Distance, distance, free_share, record_of
from numtrace.attribute.lanes import COMPILED, Lanes, Tag
from numtrace.attribute.matching import Formed, Holding
from numtrace.attribute.summary import Summary
from numtrace.attribute.terms import site_terms
from numtrace.attribute.verification import Result
from numtrace.evaluate.complex_numbers import as_parts, part_type
from numtrace.evaluate.dispatch import entry_point
from numtrace.evaluate.op import Op
from numtrace.evaluate.program import Program
from numtrace.evaluate.tensors import defined
from numtrace.evaluate.typed.dispatch import typed_dispatch
from numtrace.evaluate.typed.machine import TypedMachine
from numtrace.evaluate.types import tensor_type

#: From this part of a bound that was made wider than it need be, the sharp one is asked: the wide one is 1.5 times as
#: wide for normally distributed data, and taken only where the data is not much more uneven (``typed/sizes.py``).
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


class SiteRecords:
    """Makes and emits the records of the sites of ``program``, whose values are in ``lanes``."""

    def __init__(self, program: Program, lanes: Lanes, names: Names, summary: Summary, emit: Emit):
        self._program, self._lanes, self._names = program, lanes, names
        self._summary, self._emit = summary, emit

    def report(self, op: Op, formed: Formed, site: str, result: Result, upstream: Tag) -> None:
        record = self._record(op, formed, site, result.holding, result.compiled, upstream.tainted)
        made_by = sorted(upstream.since.union(formed.stamps))
        record |= {"made_by": made_by, "made_by_names": [self._names.name(stamp) for stamp in made_by]}
        record["made_by_modules"] = [self._names.get(stamp, "module") for stamp in made_by]
        record["match"] = result.match
        record["layout"] = None if result.layout is None else str(result.layout)
        record["constant"] = result.constant
        record["near_ties"], record["unsure"] = result.near_ties, result.unsure
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

    def _code(self, op: Op, site: str, result: Result, dtype: str) -> dict[str, Any]:
        """What the bounds say of the code: the wide one, where that is near the sharp one, where that is exceeded
        the deterministic one."""
        if result.typed is None:
            return {"code": "unbounded", "unbounded_reason": self._summary.unbounded[entry_point(op)]}
        mask = defined(result.exact_compiled)
        mask = None if mask is None else mask.reshape(-1)
        near, far = distance(result.compiled, result.typed, dtype, mask), None

        def again(machine: TypedMachine) -> Distance:
            operands = [self._lanes.get(COMPILED, slot) for slot in op.operands]
            value = typed_dispatch(machine, op, operands)[int(site.rsplit(".", 1)[1])]
            return distance(result.compiled, value.map(as_parts), dtype, mask)

        if result.loose and (near.ratio > _NEAR or near.free):
            near = again(TypedMachine(self._program))
        if near.ratio > 1:
            far = again(TypedMachine(self._program, deterministic=True))
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
            # Complex numbers are held against each other part by part.
            "dtype": part_type(tensor_type(op.result_types[index])[1]),
            "shape": list(compiled.shape),
            "tainted": tainted,
            "elements": compiled.numel(),
        }

    def uncovered(
        self, op: Op, formed: Formed, site: str, holding: Holding, compiled: Tensor, tainted: bool, why: str
    ) -> None:
        """A site that there is no exact value of, and why."""
        record = self._record(op, formed, site, holding, compiled, tainted)
        self._emit(record | {"match": "uncovered", "reason": why})

    def _first_nonfinite(self, record: dict[str, Any], compiled: Tensor, reference: Tensor) -> None:
        """Notes the first site to hold a NaN or Inf; one that the reference does not have comes before others."""
        if self._summary.disagrees or not compiled.is_floating_point():
            return
        bad = ~torch.isfinite(compiled.float() if compiled.element_size() == 1 else compiled)
        if not bool(bad.any()):
            return
        disagrees = bool((bad & torch.isfinite(reference)).any())
        if disagrees or self._summary.origin is None:
            self._summary.origin = (record["id"], record["op"])
            self._summary.disagrees = disagrees
            record["nonfinite_first"] = True


def _disagreeing(compiled: Tensor, exact: Tensor) -> int:
    """How many defined elements are NaN or infinite on one side only, or another infinity."""
    a, b = compiled.double(), exact.double()
    finite = torch.isfinite(a) & torch.isfinite(b)
    apart = ~(finite | (a == b) | (torch.isnan(a) & torch.isnan(b)))
    mask = defined(exact)
    return int((apart if mask is None else apart & mask).sum())
