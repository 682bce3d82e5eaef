"""The float64 reference: the source program op by op, just far enough ahead of the compiled program.

Values are handed out by stamp: ``values(stamp)`` are the tensors that the source op with that number makes, of complex
numbers their parts.
They are forgotten when the program and all sites that asked for them have had them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from numtrace.errors import ModelError
from numtrace.evaluate.complex_numbers import as_parts
from numtrace.evaluate.machine import TERMINATORS, Machine
from numtrace.evaluate.op import Op
from numtrace.evaluate.program import Program
from numtrace.evaluate.torch_conversion import signless


class Reference:
    """Evaluates ``function`` of a source program lazily.

    Args:
        program: the source (torch dialect) or the module at the ``input`` stage.
        function: the entry function's op.
        arguments: one value per block argument (tensors; None for fences).
        globals_: the parameters by symbol or (scope, key).
        finals: for each stamp the slots whose values belong to it, see :mod:`numtrace.attribute.matching`.
        wanted: how many sites will ask for each stamp.
    """

    def __init__(
        self,
        program: Program,
        function: Op,
        arguments: Sequence[Any],
        globals_: Mapping[Any, Any],
        finals: Mapping[int, Sequence[int]],
        wanted: Iterable[int] = (),
    ):
        self._machine = Machine(program, dict(globals_))
        self._ops = iter(function.regions[0].ops)
        self._finals = finals
        self._left = Counter(wanted)
        self._owner = {slot: stamp for stamp, slots in finals.items() for slot in slots}
        self._found: dict[int, dict[int, Tensor]] = {}
        self.outputs: list[Tensor] | None = None
        #: Which results of the source are not defined, by the stamps of their ops.
        self.undefined: dict[tuple[int, ...], str] = {}
        for op in program.initializers:
            self._machine.run(op.regions[0], [])
        self._machine.env.update(zip(function.regions[0].arguments, arguments, strict=True))

    def values(self, stamp: int) -> list[Tensor]:
        """The tensors of the source op ``stamp``, in order; empty when it makes none.

        Raises:
            UncoveredOp: torch has no function for an op on the way.
        """
        slots = self._finals.get(stamp, ())
        while self.outputs is None and any(slot not in self._found.get(stamp, {}) for slot in slots):
            self._step()
        found = self._found.get(stamp, {})
        values = [found[slot] for slot in slots if slot in found]
        self.release(stamp)
        return values

    def release(self, stamp: int) -> None:
        """Does without the values of ``stamp`` for one that was to ask for them."""
        self._left[stamp] -= 1
        if self._left[stamp] <= 0:
            self._found.pop(stamp, None)

    def finish(self) -> list[Tensor]:
        """Evaluates to the end and returns the program's outputs.

        Raises:
            UncoveredOp: an op cannot be evaluated.
            ModelError: the function does not return.
        """
        while self.outputs is None:
            self._step()
        return self.outputs

    def _step(self) -> None:
        op = next(self._ops, None)
        if op is None:
            raise ModelError("the function has no return op; numtrace evaluates functions of one block")
        if op.name in TERMINATORS:
            values = [self._machine.env[slot] for slot in op.operands]
            self.outputs = [signless(value) if isinstance(value, torch.Tensor) else value for value in values]
            return
        dead, op.dead = op.dead, []
        try:
            self._machine.step(op)
        finally:
            op.dead = dead
        if "undefined" in op.cache:
            self.undefined[op.stamps] = op.cache["undefined"]
        for slot in op.results:
            stamp, value = self._owner.get(slot), self._machine.env.get(slot)
            if stamp is not None and self._left[stamp] > 0 and isinstance(value, torch.Tensor):
                # By the bits, as what is compared with it: signs are a matter of the op below the torch dialect.
                self._found.setdefault(stamp, {})[slot] = as_parts(signless(value))
        for slot in dead:
            self._machine.env.pop(slot, None)
