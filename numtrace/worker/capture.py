"""The operands that one dispatch of a program really got, from one more run of its traced form.

Only what the dispatch's operands are made of is moved along: of what lies between the dispatches, the ops that
lead to them, and of the traces, those of the dispatches that lead to them. No dispatch is evaluated.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

import torch
from torch import Tensor

from numtrace.errors import RunError, UncoveredOp
from numtrace.evaluate.machine import TERMINATORS, Machine
from numtrace.evaluate.op import Op, reads
from numtrace.evaluate.program import Program
from numtrace.evaluate.types import NATIVE, tensor_type


@dataclass(frozen=True, slots=True)
class Captured:
    """A dispatch, the values of all its operands, and what it made, in the dtypes of the IR.

    ``operands`` are those of the op in order: workload, arguments, dims. A scalar is a tensor of no dimension.
    """

    op: Op
    operands: list[Tensor]
    results: list[Tensor]


class Capture:
    """Walks a program beside its run until the dispatch ``site`` (``main/12``) has been traced.

    :meth:`receive` is the trace callback.
    """

    def __init__(
        self, program: Program, globals_: Mapping[Any, Any], function: Op, arguments: list[Any], site: str
    ):
        self._program = program
        self._machine = Machine(program, dict(globals_))
        self._site = site
        self._needed = _needed(program, function, site)
        self._captured: Captured | None = None
        self._walk = self._run(function, arguments)
        self._expected: str | None = next(self._walk, None)

    @property
    def captured(self) -> Captured:
        """What was found, once the run is over.

        Raises:
            RunError: the program ended before the dispatch was traced.
        """
        if self._captured is None:
            raise RunError(f"the program ended before dispatch {self._site} was traced")
        return self._captured

    def receive(self, key: str, tensors: list[Tensor]) -> None:
        if self._captured is not None:
            return
        # IREE may have set flush-to-zero on this thread: a cast would lose denormals.
        torch.set_flush_denormal(False)
        if key != self._expected:
            raise RunError(f"the program traced dispatch {key} where its IR has {self._expected}")
        try:
            self._expected = self._walk.send(tensors)
        except StopIteration:
            self._expected = None

    def _run(self, function: Op, arguments: list[Any]) -> Generator[str, list[Tensor], None]:
        for name, body, values in _functions(self._program, function, arguments):
            block = body.regions[0]
            self._machine.env = dict(zip(block.arguments, values, strict=True))
            ordinals = count()
            for op in block.ops:
                if op.name in TERMINATORS:
                    break
                if op.name != "flow.dispatch":
                    if id(op) in self._needed:
                        self._machine.step(op)
                    continue
                key = f"{name}/{next(ordinals)}"
                tensors = yield key
                if key == self._site:
                    operands = [self._machine.env[slot] for slot in op.operands]
                    self._captured = Captured(op, _native(op, operands), tensors)
                    self._machine.env.clear()
                    return
                if id(op) in self._needed:
                    self._machine.env.update(zip(op.results, tensors, strict=True))
                for slot in op.dead:
                    self._machine.env.pop(slot, None)


def find_dispatch(program: Program, function: Op, site: str) -> Op | None:
    """The ``flow.dispatch`` with that id (without the result); None when there is none outside of loops."""
    for name, body, _ in _functions(program, function, []):
        dispatches = [op for op in body.regions[0].ops if op.name == "flow.dispatch"]
        head, _, ordinal = site.rpartition("/")
        if head == name and ordinal.isdecimal() and int(ordinal) < len(dispatches):
            return dispatches[int(ordinal)]
    return None


def _functions(program: Program, function: Op, arguments: list[Any]) -> Iterator[tuple[str, Op, list[Any]]]:
    """Name, op and arguments of the initializers and of the function, in the order in which they run."""
    for number, initializer in enumerate(program.initializers):
        yield f"init{number}", initializer, []
    yield function.symbol.removesuffix("$async"), function, arguments


def _needed(program: Program, function: Op, site: str) -> set[int]:
    """The ops (by id) that the operands of the dispatch ``site`` are made by.

    Raises:
        UncoveredOp: there is no such dispatch, or it lies in a loop or branch.
    """
    wanted = find_dispatch(program, function, site)
    if wanted is None:
        raise UncoveredOp(f"dispatch {site}", "it is not one of the straight-line ones of the program")
    needed: set[int] = set()
    slots: set[int] = set()
    globals_: set[str] = set()
    reached = False
    # Backwards: whatever makes a needed value is needed, and so is what it reads.
    for _, body, _ in reversed(list(_functions(program, function, []))):
        for op in reversed(body.regions[0].ops):
            stores = op.name == "util.global.store" and str(op.attributes["global"]) in globals_
            if op is wanted:
                reached = True
                slots.update(op.operands)
            elif reached and (stores or not slots.isdisjoint(op.results)):
                needed.add(id(op))
                if op.name == "util.global.load":
                    globals_.add(str(op.attributes["global"]))
                if op.name != "flow.dispatch":
                    slots.update(reads(op))
    return needed


def _native(op: Op, operands: list[Any]) -> list[Tensor]:
    """The operands in their IR types; what the evaluator had as float64 goes back to the type that it came from."""
    return [_as(value, str(type_)) for value, type_ in zip(operands, op.operand_types, strict=True)]


def _as(value: Any, type_: str) -> Tensor:
    dtype = NATIVE.get(tensor_type(type_)[1])
    if dtype is None or not isinstance(value, Tensor):
        raise UncoveredOp(f"an operand of type {type_}")
    return value if value.dtype == dtype else value.to(dtype)
