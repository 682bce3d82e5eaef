"""Runs the body of a dispatch in both meanings at once, with the bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from numtrace.errors import UncoveredOp
from numtrace.evaluate.machine import COMPUTING, Machine
from numtrace.evaluate.op import Op
from numtrace.evaluate.program import Program
from numtrace.evaluate.registry import lookup
from numtrace.evaluate.typed.moves import moved
from numtrace.evaluate.typed.registry import rule_of
from numtrace.evaluate.typed.special import assumed, unassumed
from numtrace.evaluate.typed.summation import Summation
from numtrace.evaluate.typed.value import Typed, bounded, lift, together
from numtrace.evaluate.types import is_float, is_inexact, tensor_type, widen


class TypedMachine(Machine):
    """Evaluates ops on typed values; what no tensor data flows into stays plain, as in ``Machine``.

    Args:
        deterministic: bounds that hold for every rounding error, instead of with probability 1 - FAILURE
            (``typed/summation.py``).
        in_order: the typed meaning sums term by term, rounding each time (``typed/order.py``).
        sharp: no bound is made wider than it need be to save work (``typed/sizes.py``); ``loose`` tells whether
            one was.
    """

    def __init__(
        self,
        program: Program,
        *,
        deterministic: bool = False,
        in_order: bool = False,
        sharp: bool = True,
    ):
        super().__init__(program)
        self.deterministic = deterministic
        self.in_order = in_order
        self.sharp = sharp
        self.loose = False
        self._data_free: dict[
            int, Typed
        ] = {}  # floats that no tensor data flows into, where tensor data meets them

    def summation(self, terms: int, results: int, *types: str) -> Summation:
        """``results`` sums of ``terms`` terms each, rounded to ``types`` (the last is the result's)."""
        return Summation(terms, results, types, self.deterministic)

    def _evaluate(self, op: Op) -> None:
        env = self.env
        rule = rule_of(op.name)
        if op.typed and not op.whole:
            super()._evaluate(op)
            self._note_data_free(op, rule)
            return
        operands = [self._value(slot) for slot in op.operands]
        if rule is None and not any(isinstance(value, Typed) for value in operands):
            super()._evaluate(op)
            return
        try:
            if rule is not None:
                value = rule(op, self, *operands)
                if any(assumed(op)):
                    value = unassumed(op, value, operands)
            elif _moves(op):
                value = moved(op, self, operands)
            else:
                value = self.by_definition(op, operands)
        except NotImplementedError as error:  # of torch: it has no maximum of f8, say
            raise UncoveredOp(op.name, f"torch does not compute it in its type ({error})") from None
        if op.whole and isinstance(value, Typed):
            # The source asks for no rounding here: what this rounds to is what it means.
            value = replace(value, exact=value.wide)
        if len(op.results) == 1:
            env[op.results[0]] = value[0] if type(value) is tuple else value
        elif op.results:
            env.update(zip(op.results, value, strict=True))

    def _value(self, slot: int) -> Any:
        return self._data_free.get(slot, self.env[slot])

    def _note_data_free(self, op: Op, rule: Callable | None) -> None:
        """A float made of indices is plain, so that what it is an index of is certain; but code is as far off it as
        off any other: the sine of a position has the error of the sine."""
        for slot in op.results:
            self._data_free.pop(slot, None)
        if rule is None or len(op.results) != 1 or not is_float(tensor_type(op.result_types[0])[1]):
            return
        made = rule(op, self, *(self._value(slot) for slot in op.operands))
        (slot,) = op.results
        self._data_free[slot] = Typed(widen(self.env[slot]), made.typed, made.bound, False)

    def by_definition(self, op: Op, operands: list[Any]) -> Any:
        """Ops on integers and booleans alone, which round nothing.

        Raises:
            UncoveredOp: the op computes with floats or complex numbers and has no rule.
        """
        if any(is_inexact(tensor_type(type_)[1]) for type_ in (*op.operand_types, *op.result_types)):
            raise UncoveredOp(op.name, "no error bound is known")
        fn = lookup(op.name)
        values = [lift(value, type_) for value, type_ in zip(operands, op.operand_types, strict=True)]
        exact = fn(op, self, *(value.exact for value in values))
        if together(values) and not bounded(values):
            return exact
        typed = fn(op, self, *(value.typed for value in values))
        if isinstance(exact, tuple):
            raise UncoveredOp(op.name, "no error bound is known")
        return Typed(exact, typed, _doubt(values, exact), together(values))


def _moves(op: Op) -> bool:
    return not op.name.startswith((*COMPUTING, "scf."))


def _doubt(values: list[Typed], like: Tensor) -> Tensor | None:
    """Infinite where any operand is in doubt: an integer function of it may be anything."""
    if not bounded(values):
        return None
    doubt = torch.zeros(like.shape, dtype=torch.float32)
    for value in values:
        if value.bound is not None:
            doubt = torch.where(value.bound != 0, torch.inf, doubt)
    return doubt
