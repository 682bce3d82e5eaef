"""Judges the results of one dispatch on the inputs that it really got: exact value, typed value, bounds."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from numtrace.attribute.codegen import as_in_order, distance, record_of
from numtrace.attribute.terms import site_terms
from numtrace.errors import UncoveredOp
from numtrace.evaluate.complex_numbers import as_parts, part_type
from numtrace.evaluate.dispatch import evaluate_dispatch
from numtrace.evaluate.machine import Machine
from numtrace.evaluate.program import Program
from numtrace.evaluate.tensors import defined
from numtrace.evaluate.typed.dispatch import typed_dispatch
from numtrace.evaluate.typed.machine import TypedMachine
from numtrace.evaluate.typed.value import Typed
from numtrace.evaluate.types import tensor_type
from numtrace.worker.capture import Captured


class Judge:
    """What is said of the results of a dispatch, for one of them; of complex numbers by their parts.

    ``why``: why there is no exact value, in words; None when there is one.
    ``defined``: per result a mask of the elements that the program defines; None: all.
    """

    def __init__(self, program: Program, captured: Captured, result: int):
        self._program, self._captured, self._result = program, captured, result
        self._dtype = part_type(tensor_type(captured.op.result_types[result])[1])
        self.why: str | None = None
        typed = self._typed(TypedMachine(program))
        self._near = None if typed is None else typed[result]
        self.exact = self._exactly() if typed is None else [value.exact for value in typed]
        self.defined = None if self.exact is None else [defined(value) for value in self.exact]

    def __call__(self, results: Sequence[Tensor]) -> dict[str, Any]:
        """The figures of ``results``: the error against the exact value, and the distance in units of the bounds."""
        if self.exact is None:
            return {}
        made, exact, near = as_parts(results[self._result]), self.exact[self._result], self._near
        terms = site_terms(made, exact, exact, exact, self._dtype, None if near is None else near.typed)
        figures = {
            key: terms["introduced"][key] for key in ("max_abs", "at", "rel_l2", "max_ulp", "nan", "inf")
        }
        if near is None:
            return figures | {"code": "unbounded"}
        figures["codegen_max_abs"] = terms["codegen"]["max_abs"]
        close = distance(made, near, self._dtype, self._mask)
        far = self._far if close.ratio > 1 else None
        wide = None if far is None else distance(made, far, self._dtype, self._mask)
        return figures | record_of(close, wide, tuple(made.shape))

    def as_summed_in_order(self, results: Sequence[Tensor]) -> bool:
        """Whether ``results`` are beyond their bound, but no farther from the typed value than sums taken in the
        order of the IR are.

        What is within its bound is not what was accused: the dispatch made something else in another run.
        """
        near, mask = self._near, self._mask
        made = as_parts(results[self._result])
        if near is None or distance(made, near, self._dtype, mask).ratio <= 1:
            return False
        ordered = self._typed(TypedMachine(self._program, in_order=True))
        if ordered is None:
            return False
        return as_in_order(made, near, ordered[self._result].typed, mask)

    @property
    def _mask(self) -> Tensor | None:
        mask = None if self.defined is None else self.defined[self._result]
        return None if mask is None else mask.reshape(-1)

    @cached_property
    def _far(self) -> Typed | None:
        values = self._typed(TypedMachine(self._program, deterministic=True))
        return None if values is None else values[self._result]

    def _exactly(self) -> list[Tensor] | None:
        """The exact values where there are no typed ones; None, with the reason noted, where there are none either."""
        try:
            made = evaluate_dispatch(Machine(self._program), self._captured.op, self._captured.operands)
            return [as_parts(value) for value in made]
        except UncoveredOp as error:
            self.why = str(error)
            return None

    def _typed(self, machine: TypedMachine) -> list[Typed] | None:
        torch.set_flush_denormal(False)
        try:
            made = typed_dispatch(machine, self._captured.op, self._captured.operands)
            return [value.map(as_parts) for value in made]
        except UncoveredOp:
            return None
