"""Index arithmetic on floats that becomes data: the weights of an interpolation, the numbers of an ``arange``.

The source computes it from whole numbers, a lowering in the type of the data, with a rounding in every op. Elsewhere
index arithmetic is evaluated in the types it has, since what it picks hangs on its bits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from iree.compiler import ir
from torch import Tensor

from numtrace.attribute.magnitude import largest
from numtrace.attribute.noise import EXACT_OPS, signed_draw
from numtrace.evaluate.formats import FORMATS, is_float_type
from numtrace.evaluate.machine import Machine, MakeMachine
from numtrace.evaluate.op import Op, walk
from numtrace.evaluate.program import Program
from numtrace.evaluate.types import tensor_type

#: What places are shaken by, of the rounding of their type: so little that float64 still shows what comes of it.
_SCALE = 2.0**-22
#: And by how many times that, to see whether what comes of it is in proportion.
_TIMES = 8
#: What float64 is off by itself, of the largest element.
_FLOAT64 = 2.0**-49
#: So far, of the largest element, nothing moves in proportion to a shake.
_JUMP = 2.0**-26
#: Each shake is half of what it stands for at least, and the roundings of up to a dozen ops may all go one way.
_MARGIN = 8
_SEEDS = range(4)


@dataclass(frozen=True, slots=True)
class Place:
    """An op of index arithmetic on floats, to be evaluated in float64 as data is."""

    def set(self, op: Op) -> None:
        op.typed = False
        op.cache["rounds"] = False  # it is made of whole numbers, and float64 has no noise worth that name

    def unset(self, op: Op) -> None:
        op.typed = True


def places(body: Op) -> list[Op]:
    """The index arithmetic on floats in ``body`` of the source ops of which some becomes data.

    Of the others all of it stays index arithmetic: a division of whole numbers in floats has integers to make, and no
    rounding of its own.
    """
    readers: dict[int, list[Op]] = defaultdict(list)
    groups: dict[tuple[int, ...], list[Op]] = defaultdict(list)
    for op in walk(body.regions):
        for slot in op.operands:
            readers[slot].append(op)
        if op.typed and not op.whole and op.name != "arith.constant" and op.stamps and _floats(op):
            groups[op.stamps].append(op)
    found: dict[tuple[int, ...], list[Op]] = {}
    while True:
        known = {id(op) for ops in found.values() for op in ops}
        more = {
            stamps: ops
            for stamps, ops in groups.items()
            if stamps not in found and any(_becomes_data(op, readers, known) for op in ops)
        }
        if not more:
            return [op for ops in found.values() for op in ops]
        found |= more


class Shaken(Machine):
    """An evaluation in which places are off by ``scale`` times the unit roundoff of the type that they are in.

    Args:
        program, globals_: as of any machine.
        found: what makes the places, and the constants of it.
        seed: of the noise; of one seed it is the same for each scale.
    """

    def __init__(
        self,
        program: Program,
        found: Iterable[Op],
        scale: float,
        seed: int,
        globals_: dict[str, Any] | None = None,
    ):
        super().__init__(program, globals_)
        self.striped = False
        self._units = {id(op): (n, unit * scale) for n, op in enumerate(found) if (unit := _unit(op))}
        self._seed = seed

    def _evaluate(self, op: Op) -> None:
        super()._evaluate(op)
        if id(op) in self._units:
            stream, unit = self._units[id(op)]
            value = self.env[op.results[0]].double()
            self.env[op.results[0]] = value * (1 + signed_draw(value, self._seed, stream) * unit)


def are_rounding(
    was: Sequence[Tensor],
    now: Sequence[Tensor],
    program: Program,
    found: Sequence[Op],
    evaluate: Callable[[MakeMachine], Sequence[Tensor]],
) -> bool:
    """Whether results are no more apart than the rounding of the places ``found`` puts them, element by element.

    How far it does is measured: shaken by 2^-22 of it, a result moves by as much less. Where it does not move in
    proportion, by eight times as much when it is shaken by eight times as much, something is picked by the places, and
    another pick is another meaning.

    Args:
        was, now: the results with the places as they are in the program, and exact.
        evaluate: the exact results with a machine that it makes.
    """
    if all(map(same_numbers, was, now)):
        return True
    small = [torch.zeros_like(value.double()) for value in now]
    smooth = [torch.ones_like(value, dtype=torch.bool) for value in now]
    for seed in _SEEDS:
        by_one, by_many = (
            evaluate(partial(Shaken, program, found, scale, seed)) for scale in (_SCALE, _TIMES * _SCALE)
        )
        for index, (value, one, many) in enumerate(zip(now, by_one, by_many, strict=True)):
            little, much = one.double() - value.double(), many.double() - value.double()
            small[index] = torch.maximum(small[index], little.abs())
            # Float64 rounds the places too, by up to 1/16 of a shake: more than an element at the top of a sine moves.
            own = _FLOAT64 * largest(value) + largest(little[much.abs() < _JUMP * largest(value)]) / 2
            smooth[index] &= (much - _TIMES * little).abs() <= much.abs() / 4 + own
    for old, new, moves, even in zip(was, now, small, smooth, strict=True):
        a, b = old.double(), new.double()
        allowed = moves * (_MARGIN / _SCALE)
        inside = even & ((a - b).abs() <= allowed + _curved(allowed, even, new)) & new.is_floating_point()
        if not bool((inside | (a == b) | (a.isnan() & b.isnan())).all()):
            return False
    return True


def _curved(allowed: Tensor, smooth: Tensor, value: Tensor) -> float:
    """What is left where the first order is nothing, as at the top of a sine: the square of what it is elsewhere, by
    the size of the values. An error of 1/64 of them is none that squares are enough for."""
    size = largest(value)
    first = min(largest(torch.where(smooth, allowed, 0.0)), size / 64)
    return first * first / size if size else 0.0


def same_numbers(a: Tensor, b: Tensor) -> bool:
    return bool(((a == b) | (a.isnan() & b.isnan())).all()) if a.is_floating_point() else torch.equal(a, b)


def _becomes_data(op: Op, readers: dict[int, list[Op]], known: set[int]) -> bool:
    if not is_float_type(_element(op.result_types[0])):
        return False
    return any(not reader.typed or id(reader) in known for slot in op.results for reader in readers[slot])


def _floats(op: Op) -> bool:
    return any(is_float_type(_element(type_)) for type_ in (*op.operand_types, *op.result_types))


def _unit(op: Op) -> float:
    """The unit roundoff of what ``op`` rounds, 0 where it rounds nothing; a constant may be truncated: twice that."""
    element = _element(op.result_types[0])
    constant = op.name == "arith.constant"
    if not is_float_type(element) or (op.name in EXACT_OPS and not constant):
        return 0.0
    return FORMATS[element].unit_roundoff * (2 if constant else 1)


def _element(type_: ir.Type) -> str:
    return tensor_type(type_)[1]
