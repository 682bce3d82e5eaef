"""Index arithmetic on floats that becomes data: the weights of an interpolation, the numbers of an ``arange``.

The source computes it from whole numbers, a lowering in the type of the data, with a rounding in every op. Elsewhere
index arithmetic is evaluated in the types it has, since what it picks hangs on its bits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from iree.compiler import ir
from torch import Tensor

from numtrace.attribute.magnitude import largest
from numtrace.evaluate.formats import FORMATS, is_float_type
from numtrace.evaluate.op import Op, walk
from numtrace.evaluate.types import tensor_type

#: An interpolation moves by as many times its largest element as its place does: by two if linear, by three if cubic.
_STEEPNESS = 4.0


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


def rounding(found: Iterable[Op], tensors: Iterable[Tensor]) -> float:
    """What the rounding of places, made by the ops ``found``, may be worth in what has ``tensors``, in max abs.

    A place is at most as large as the longest dimension, and each op that makes it rounds it once. A constant may be
    truncated: it is an ulp off, twice the unit roundoff.
    """
    found, tensors = [*found], [*tensors]
    units = sum(_unit(op) for op in found)
    longest = max((size for tensor in tensors for size in tensor.shape), default=0)
    return units * (longest + 1) * _STEEPNESS * max(map(largest, tensors), default=0.0)


def _becomes_data(op: Op, readers: dict[int, list[Op]], known: set[int]) -> bool:
    if not is_float_type(_element(op.result_types[0])):
        return False
    return any(not reader.typed or id(reader) in known for slot in op.results for reader in readers[slot])


def _floats(op: Op) -> bool:
    return any(is_float_type(_element(type_)) for type_ in (*op.operand_types, *op.result_types))


def _unit(op: Op) -> float:
    element = _element(op.result_types[0])
    if not is_float_type(element):
        return 0.0
    return FORMATS[element].unit_roundoff * (2 if op.name == "arith.constant" else 1)


def _element(type_: ir.Type) -> str:
    return tensor_type(type_)[1]
