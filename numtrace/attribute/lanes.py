"""One flow program run on several sets of values at once: what was compiled, the reference, and what is exact.

* ``compiled``: the tensors that the dispatches really got and made (from the traces).
* ``reference``: the reference trajectory, set back to the reference value at every matched site.
* ``exact``: the same program run freely, never set back. It exists only where it differs from the reference
  trajectory, that is downstream of a site that differs.
* ``source``: the reference trajectory with the source's own bits at matched sites. It exists only where these are
  others, and a decision hangs on them (see :mod:`numtrace.attribute.near_ties`).
* ``noisy``: the doubt (see :mod:`numtrace.attribute.doubts`) of each value whose bits in the ``source`` lane may be
  others than the source's all the same.

Values between dispatches (reshapes, splats, slices, globals) are moved in each lane alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import torch
from iree.compiler import ir

from numtrace.attribute.doubts import made
from numtrace.errors import UncoveredOp
from numtrace.evaluate.machine import TERMINATORS, Machine
from numtrace.evaluate.op import Block, Op, reads, walk
from numtrace.evaluate.program import Program

COMPILED, REFERENCE, EXACT, SOURCE, NOISY = "compiled", "reference", "exact", "source", "noisy"
#: Lanes that hold only what differs from the reference lane.
_SPARSE = (EXACT, SOURCE, NOISY)


@dataclass(frozen=True, slots=True)
class Tag:
    """What is known of a value.

    ``tainted``: an uncovered op is upstream. ``differing``: the sites upstream whose difference it carries.
    ``stamp``: the source op that made it. ``since``: the source ops that were at work since the last value
    that is matched with the source's. ``permuted``: its dimensions may be in another order than the source's.
    """

    tainted: bool = False
    differing: frozenset[str] = frozenset()
    stamp: int | None = None
    since: frozenset[int] = frozenset()
    permuted: bool = False


_PLAIN = Tag()
_NOTHING = object()

#: What ends a function.
_RETURNS = frozenset(("util.return", "func.return"))
_CALLS = ("util.call", "func.call")


class Lanes:
    """The environments of the lanes and the walk over a function's ops.

    ``exact`` are globals that the reference lane has other values of: constants that the compiler stored rounded.
    """

    def __init__(
        self, program: Program, globals_: Mapping[Any, Any], exact: Mapping[Any, Any] = MappingProxyType({})
    ):
        self.program = program
        self.machines = {lane: Machine(program, dict(globals_)) for lane in (COMPILED, REFERENCE, *_SPARSE)}
        self.machines[REFERENCE].globals.update(exact)
        for lane in _SPARSE:
            self.machines[lane].globals = {}
        self._tags: dict[int | str, Tag] = {}

    def get(self, lane: str, slot: int) -> Any:
        env = self.machines[lane].env
        if lane in _SPARSE and slot not in env:
            return self.machines[REFERENCE].env[slot]
        return env[slot]

    def doubted(self, slots: Iterable[int]) -> dict[int, Any]:
        """By slot the doubts of values; of those that have none, their bits in the source lane."""
        doubts = self.machines[NOISY].env
        return {slot: doubts[slot] if slot in doubts else self.get(SOURCE, slot) for slot in slots}

    def set(self, lane: str, slot: int, value: Any) -> None:
        self.machines[lane].env[slot] = value

    def tag(self, slot: int | str, tag: Tag) -> None:
        self._tags[slot] = tag

    def tags(self, slots: Iterable[int | str]) -> Tag:
        """What is known of values together; the maker is the last one's that has a maker."""
        found = [self._tags[slot] for slot in slots if slot in self._tags]
        if not found:
            return _PLAIN
        makers = [tag.stamp for tag in found if tag.stamp is not None]
        return Tag(
            any(tag.tainted for tag in found),
            frozenset().union(*(tag.differing for tag in found)),
            makers[-1] if makers else None,
            frozenset().union(*(tag.since for tag in found)),
            any(tag.permuted for tag in found),
        )

    def differs(self, slots: list[int], lane: str = EXACT) -> bool:
        """Whether a lane has a value of its own, other than the reference lane's, for one of ``slots``."""
        env = self.machines[lane].env
        return any(slot in env for slot in slots)

    def walk(self, function: Op, arguments: list[Any]) -> Iterator[Op]:
        """Evaluates what lies between dispatches and yields each ``flow.dispatch``, then the terminator.

        The values of a yielded dispatch's results must be set in the lanes before the walk goes on. A dispatch in a
        loop is yielded once per iteration.

        Raises:
            UncoveredOp: a dispatch is in a region that is neither a loop nor a branch, or in a function that is called.
        """
        block = function.regions[0]
        for lane in (COMPILED, REFERENCE):
            self.machines[lane].env.update(zip(block.arguments, arguments, strict=True))
        yield from self._block(block)

    def _block(self, block: Block) -> Iterator[Op]:
        for op in block.ops:
            if op.name == "flow.dispatch" or op.name in _RETURNS:
                yield op
            elif op.name in TERMINATORS:
                return  # of an inner block: who entered it takes the operands on
            elif any(inner.name == "flow.dispatch" for inner in walk(op.regions)):
                yield from self._around(op)
            elif op.name in _CALLS and self._dispatches(op):
                raise UncoveredOp(op.name, "dispatches in a function that is called, and not inlined")
            else:
                self._between(op)
            self._forget(op.dead)

    def _dispatches(self, call: Op) -> bool:
        """Whether the function that is called, or one that it calls, has dispatches."""
        callee = self.program.functions.get(ir.FlatSymbolRefAttr(call.attributes["callee"]).value)
        inner = [] if callee is None else list(walk(callee.regions))
        return any(op.name == "flow.dispatch" or (op.name in _CALLS and self._dispatches(op)) for op in inner)

    def _around(self, op: Op) -> Iterator[Op]:
        """A loop or a branch with dispatches in it. Which way it goes is as in the compiled program."""
        compiled = self.machines[COMPILED].env
        if op.name == "scf.for":
            body, values = op.regions[0], op.operands[3:]
            first, end, step = (int(compiled[slot]) for slot in op.operands[:3])
            for at in range(first, end, step):
                index = torch.tensor(at, dtype=torch.int64)
                for lane in (COMPILED, REFERENCE):
                    self.set(lane, body.arguments[0], index)
                self._hand(values, body.arguments[1:])
                yield from self._block(body)
                values = body.ops[-1].operands
            self._hand(values, op.results)
        elif op.name == "scf.if":
            branch = 0 if bool(compiled[op.operands[0]]) else 1
            if branch < len(op.regions):
                yield from self._block(op.regions[branch])
                self._hand(op.regions[branch].ops[-1].operands, op.results)
        elif op.name == "scf.while":
            before, after = op.regions
            values = op.operands
            while True:
                self._hand(values, before.arguments)
                yield from self._block(before)
                condition, *values = before.ops[-1].operands
                if not bool(compiled[condition]):
                    break
                self._hand(values, after.arguments)
                yield from self._block(after)
                values = after.ops[-1].operands
            self._hand(values, op.results)
        else:
            raise UncoveredOp(op.name, "dispatches in a region of it")
        for block in op.regions:
            self._forget([*block.arguments, *block.ops[-1].dead])

    def _hand(self, sources: Sequence[int], targets: Sequence[int]) -> None:
        """Gives the values of ``sources`` to ``targets`` in every lane, all at once, with what is known of them."""
        for machine in self.machines.values():
            env = machine.env
            values = [
                (target, env.get(source, _NOTHING)) for source, target in zip(sources, targets, strict=True)
            ]
            for target, value in values:
                if value is _NOTHING:
                    env.pop(target, None)
                else:
                    env[target] = value
        tags = [self._tags.get(source, _PLAIN) for source in sources]
        self._tags.update(zip(targets, tags, strict=True))

    def _forget(self, slots: Iterable[int]) -> None:
        for slot in slots:
            for machine in self.machines.values():
                machine.env.pop(slot, None)
            self._tags.pop(slot, None)

    def _between(self, op: Op) -> None:
        dead, op.dead = op.dead, []
        try:
            for lane in (COMPILED, REFERENCE):
                self.machines[lane].step(op)
            for lane in _SPARSE:
                self._sparse_between(lane, op)
        finally:
            op.dead = dead
        read: list[int | str] = list(reads(op))
        if op.name == "util.global.load":
            read.append(self._global(op))
        tag = self.tags(read)
        if tag is not _PLAIN:
            for written in [self._global(op)] if op.name == "util.global.store" else op.results:
                self._tags[written] = tag

    def _sparse_between(self, lane: str, op: Op) -> None:
        own, reference = self.machines[lane], self.machines[REFERENCE]
        if op.name == "util.global.load":
            if self._global(op) in own.globals:
                own.step(op)
            return
        if not self.differs(op.operands, lane):
            return
        read = [slot for slot in reads(op) if slot in reference.env]
        if lane == NOISY and op.name != "util.global.store":
            # An assertion makes nothing, and is not to be asked of a doubt.
            own.env.update(made(self.program, op, self.doubted(read)))
            return
        borrowed = [slot for slot in read if slot not in own.env]
        own.env.update({slot: reference.env[slot] for slot in borrowed})
        own.step(op)
        for slot in borrowed:
            own.env.pop(slot, None)

    @staticmethod
    def _global(op: Op) -> str:
        return str(op.attributes["global"])[1:]


def same_values(a: list[Any], b: list[Any]) -> bool:
    """Whether two operand lists are the very same tensors, so that one evaluation serves both."""
    return all(
        x is y or (isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor) and _same(x, y))
        for x, y in zip(a, b, strict=True)
    )


def _same(x: torch.Tensor, y: torch.Tensor) -> bool:
    return (
        x.data_ptr() == y.data_ptr()
        and x.shape == y.shape
        and x.stride() == y.stride()
        and x.dtype == y.dtype
    )
