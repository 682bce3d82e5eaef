"""Runs blocks of a :class:`~numtrace.evaluate.program.Program` on torch tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch

from numtrace.errors import UncoveredOp
from numtrace.evaluate.affine import Domain
from numtrace.evaluate.op import Block, Op
from numtrace.evaluate.overflow import Watch, leaves_float64
from numtrace.evaluate.program import Program
from numtrace.evaluate.registry import lookup
from numtrace.evaluate.types import widen

#: Ops that compute on numbers: their float operands are widened to float64. The rest only moves values.
COMPUTING = ("arith.", "math.", "complex.", "linalg.", "iree_linalg_ext.")

TERMINATORS = frozenset(
    (
        "linalg.yield", "tensor.yield", "iree_linalg_ext.yield", "scf.yield", "scf.condition",
        "util.return", "func.return", "flow.return",
    )
)  # fmt: skip


class Machine:
    """Evaluates ops in order and forgets every value after its last use.

    ``env`` maps slots to values: torch tensors, or what a dialect's own functions make (a buffer of a
    dispatch). No op writes to its operands, so values may share memory. ``globals`` holds the module's
    globals by symbol, ``domain`` the loops of the structured op whose region is being evaluated.
    """

    def __init__(self, program: Program, globals_: dict[str, Any] | None = None):
        self.program = program
        self.env: dict[int, Any] = {}
        self.globals: dict[str, Any] = {} if globals_ is None else globals_
        self.domain: Domain | None = None
        #: Whether a region's values are made in stripes that stay in the caches, or as a whole.
        self.striped = True
        #: What floats are evaluated in: float64, or float32 to see torch's own error in a dtype.
        self.float_dtype: torch.dtype = torch.float64
        #: The type that contracted operands are rounded to first, and which they are by torch op.
        self.contracted: tuple[torch.dtype, dict[str, tuple[int, ...]]] | None = None
        #: Where there is one, it is told of results out of range, and of reshapes that do not fit.
        self.watch: Watch | None = None

    def step(self, op: Op) -> None:
        """Evaluates one op and stores its results.

        Raises:
            UncoveredOp: there is no function for it.
        """
        self._evaluate(op)
        self._forget(op.dead)

    def _evaluate(self, op: Op) -> None:
        fn = op.fn
        if fn is None:
            fn = op.fn = lookup(op.name)
            op.computes = not op.typed and op.name.startswith(COMPUTING)
        env = self.env
        operands = [env[slot] for slot in op.operands]
        if op.computes:
            operands = [widen(value) if isinstance(value, torch.Tensor) else value for value in operands]
        try:
            value = fn(op, self, *operands)
        except UncoveredOp as error:
            error.stamps = error.stamps or op.stamps
            raise
        if self.watch is not None and op.computes and leaves_float64(op, operands, value):
            self.watch.beyond_float64.update(op.stamps)
        if len(op.results) == 1:
            env[op.results[0]] = value[0] if type(value) is tuple else value
        elif op.results:
            env.update(zip(op.results, value, strict=True))

    def results(self, op: Op, operands: Mapping[int, Any]) -> list[Any]:
        """The results of one op on values by slot.

        Raises:
            UncoveredOp: there is no function for it.
        """
        self.env.update(operands)
        self._evaluate(op)
        return [self.env[slot] for slot in op.results]

    def run(self, block: Block, arguments: Sequence[Any]) -> list[Any]:
        """Evaluates ``block`` and returns the operands of its terminator."""
        env = self.env
        env.update(zip(block.arguments, arguments, strict=True))
        try:
            return self._ops(block)
        except BaseException:
            # An op without an evaluation ends the block: its values must not stay behind.
            for op in block.ops:
                self._forget(op.results)
            raise
        finally:
            self._forget(block.arguments)

    def run_part(self, block: Block, arguments: Sequence[Any], ops: list[Op], wanted: list[int]) -> list[Any]:
        """Evaluates only ``ops`` of ``block`` and returns the slots ``wanted``."""
        env = self.env
        env.update(zip(block.arguments, arguments, strict=True))
        try:
            for op in ops:
                self._evaluate(op)
            return [self._value(slot) for slot in wanted]
        finally:
            # Not op by op: the last reader in the block of a wanted slot may be one of ``ops``.
            self._forget(block.arguments)
            for op in ops:
                self._forget(op.results)

    def _ops(self, block: Block) -> list[Any]:
        for op in block.ops:
            if op.name in TERMINATORS:
                values = [self._value(slot) for slot in op.operands]
                self._forget(op.dead)
                return values
            self.step(op)
        return []

    def _value(self, slot: int) -> Any:
        return self.env[slot]

    def _forget(self, slots: Iterable[int]) -> None:
        for slot in slots:
            self.env.pop(slot, None)


#: Makes a machine for a program's globals.
MakeMachine = Callable[[dict[Any, Any]], Machine]
