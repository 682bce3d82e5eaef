"""Runs the body of a dispatch in both meanings at once, with the bound."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from numtrace.errors import UncoveredOp
from numtrace.evaluate.machine import Machine
from numtrace.evaluate.program import Op, Program
from numtrace.evaluate.registry import lookup
from numtrace.evaluate.typed.moves import moved
from numtrace.evaluate.typed.registry import rule_of
from numtrace.evaluate.typed.value import Typed, bounded, lift, together
from numtrace.evaluate.types import is_float, tensor_type

#: The probability that one site's rounding errors exceed the probabilistic bound though the code is right.
FAILURE = 2.0**-30


class TypedMachine(Machine):
    """Evaluates ops on typed values; what no tensor data flows into stays plain, as in ``Machine``.

    Args:
        deterministic: bounds that hold for every rounding error, instead of with probability 1 - FAILURE.
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

    def growth(self, terms: int, results: int, unit: float) -> float:
        """The relative error of a sum of ``terms`` in any order, per unit of the sum of absolute values.

        Deterministic: n·u, which holds without a restriction on n (C.-P. Jeannerod and S. M. Rump, "Improved
        error bounds for inner products in floating-point arithmetic", SIAM J. Matrix Anal. Appl. 34(2), 2013).
        Probabilistic: exp(λ√n·u + n·u²/(1-u)) - 1 (N. J. Higham and T. Mary, "A new approach to probabilistic
        rounding error analysis", SIAM J. Sci. Comput. 41(5), 2019, theorem 2.4), with λ such that all n
        roundings of all ``results`` sums keep to it with probability 1 - FAILURE: 2·N·exp(-λ²(1-u)²/2).
        Of f64 twice that: the typed meaning, which is summed in float64, is as far off.
        """
        sides = 2 if unit <= 2.0**-53 else 1
        worst = sides * terms * unit
        if self.deterministic:
            return worst
        chance = math.sqrt(2 * math.log(2 * max(results, 1) / FAILURE)) / (1 - unit)
        exponent = chance * math.sqrt(terms) * unit + terms * unit * unit / (1 - unit)
        return min(worst, sides * math.expm1(exponent)) if exponent < 700 else worst

    def _evaluate(self, op: Op) -> None:
        env = self.env
        operands = [env[slot] for slot in op.operands]
        rule = rule_of(op.name)
        if op.typed or (rule is None and not any(isinstance(value, Typed) for value in operands)):
            super()._evaluate(op)
            return
        if rule is not None:
            value = rule(op, self, *operands)
        elif _moves(op):
            value = moved(op, self, operands)
        else:
            value = self._by_definition(op, operands)
        if len(op.results) == 1:
            env[op.results[0]] = value[0] if type(value) is tuple else value
        elif op.results:
            env.update(zip(op.results, value, strict=True))

    def _by_definition(self, op: Op, operands: list[Any]) -> Any:
        """Ops on integers and booleans alone, which round nothing.

        Raises:
            UncoveredOp: the op computes with floats and has no rule.
        """
        if any(is_float(tensor_type(type_)[1]) for type_ in (*op.operand_types, *op.result_types)):
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
    return not op.name.startswith(("arith.", "math.", "linalg.", "iree_linalg_ext.", "scf."))


def _doubt(values: list[Typed], like: Tensor) -> Tensor | None:
    """Infinite where any operand is in doubt: an integer function of it may be anything."""
    if not bounded(values):
        return None
    doubt = torch.zeros(like.shape, dtype=torch.float32)
    for value in values:
        if value.bound is not None:
            doubt = torch.where(value.bound > 0, torch.inf, doubt)
    return doubt
