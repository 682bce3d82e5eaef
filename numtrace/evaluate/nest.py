"""What a structured op's region does with its accumulators: nothing, a reduction, a contraction, or else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from iree.compiler import ir

from numtrace.evaluate.affine import Linear, linear_map, loop_sizes, loops_of
from numtrace.evaluate.op import Block, Op, reads
from numtrace.evaluate.read_out import ReadOut
from numtrace.evaluate.types import tensor_type

#: Ops that join an accumulator with a contribution, for numbers and for i1 (where addi is not a sum).
_COMBINERS = frozenset(
    ("arith.addf", "arith.addi", "arith.maximumf", "arith.minimumf", "arith.maxnumf", "arith.minnumf",
     "arith.maxsi", "arith.minsi", "complex.add")
)  # fmt: skip
_BOOLEAN_COMBINERS = frozenset(("arith.ori", "arith.andi"))

Value = TypeVar("Value")

_FLOAT_CASTS = ("arith.extf", "arith.truncf")


class Nest:
    """The loops of one structured op, read once per op.

    ``parallel`` are the loops that every output has, ``reductions`` the others. ``joins`` names the op that
    joins each output with what is new: empty when there is no reduction, None when the region has another
    form. ``contributions`` are the slots of what is new and ``contributing`` the ops that they need.
    ``factors`` are the two inputs whose product is summed, when it is a contraction. ``orders`` has the loop
    of each dimension of each output, and ``whole`` says that outputs are just that, for all parallel loops.
    ``read_out`` has the inputs, by position, that ``maps`` holds for only after :meth:`over_loops`.

    Element types, for the typed meaning: ``yield_types``, ``contribution_types``, ``sum_types`` (all that a
    running sum is rounded to, per output), ``factor_casts`` (the narrowing casts between each factor and the product).
    """

    def __init__(self, op: Op):
        self.loops = op.maps[0].n_dims
        self.body: Block = op.regions[0]
        outs = max(1, len(op.results))
        self.ins = len(op.maps) - outs
        ways = [ReadOut.of(m) for m in op.maps[: self.ins]]
        self.read_out = {position: way for position, way in enumerate(ways) if way is not None}
        self.maps = [
            self.read_out[position].forms if position in self.read_out else linear_map(affine_map)
            for position, affine_map in enumerate(op.maps)
        ]
        self.out_maps = self.maps[self.ins :]
        used = [loops_of(forms) for forms in self.out_maps]
        self.parallel = sorted(set.intersection(*used))
        self.reductions = [loop for loop in range(self.loops) if loop not in self.parallel]
        shapes = [tensor_type(type_)[0] for type_ in op.operand_types[self.ins : len(self.maps)]]
        orders = [
            _order(forms, shape, self.parallel) for forms, shape in zip(self.out_maps, shapes, strict=True)
        ]
        self.orders = [order for order in orders if order is not None]
        self.whole = len(self.orders) == outs
        used_slots = {slot for inner in self.body.ops for slot in reads(inner)}
        self.read = used_slots.intersection(self.body.arguments)
        self._producers = {slot: inner for inner in self.body.ops for slot in inner.results}
        self._types = dict(zip(self.body.arguments, self.body.argument_types, strict=True))
        self._types |= {
            slot: type_
            for inner in self.body.ops
            for slot, type_ in zip(inner.results, inner.result_types, strict=True)
        }
        self.yield_types = list(self.body.ops[-1].operand_types)
        self.contribution_types: list[ir.Type] = []
        self.sum_types: list[list[str]] = []
        self.factor_casts: tuple[list[str], list[str]] = ([], [])
        self.joins: list[str] | None = []
        self.contributions: list[int] = []
        self.contributing: list[Op] = []
        self.factors: tuple[int, int] | None = None
        if self.reductions:
            self._read_reduction()

    def sizes(self, shapes: Sequence[tuple[int, ...]]) -> list[int]:
        """The trip count of every loop, from the shapes of the operands.

        Raises:
            UncoveredOp: some loop's follows from none.
        """
        if not self.read_out:
            return loop_sizes(self.maps, shapes, self.loops)
        maps = [
            self.read_out[position].extents if position in self.read_out else forms
            for position, forms in enumerate(self.maps)
        ]
        return loop_sizes(maps, shapes, self.loops)

    def over_loops(
        self, inputs: list[Value], sizes: list[int], lanes: Callable[[Value, Callable], Value]
    ) -> list[Value]:
        """``inputs`` as ``maps`` has them; ``lanes(value, move)`` moves the tensors of a value."""
        if not self.read_out:
            return inputs
        return [
            lanes(value, partial(self.read_out[position], sizes=sizes))
            if position in self.read_out
            else value
            for position, value in enumerate(inputs)
        ]

    def _read_reduction(self) -> None:
        combiners = [self._combiner(index) for index in range(len(self.out_maps))]
        self.contributions = [combiner[1] for combiner in combiners if combiner is not None]
        self.contributing = self._needed(self.contributions)
        accumulators = set(self.body.arguments[self.ins :])
        touched = {*self.contributions, *(slot for inner in self.contributing for slot in reads(inner))}
        if None in combiners or not self.whole or touched & accumulators:
            # An accumulator that takes part in a contribution (argmax, Welford) is no plain reduction.
            self.joins = None
            return
        joining = [combiner[0] for combiner in combiners if combiner is not None]
        self.joins = [op.name for op in joining]
        self.contribution_types = [self._types[slot] for slot in self.contributions]
        self.sum_types = [
            [_element(op.result_types[0]), *self._passed(op, index), _element(self.yield_types[index])]
            for index, op in enumerate(joining)
        ]
        if len(self.joins) == 1:
            self.factors = self._factors()

    def _combiner(self, index: int) -> tuple[Op, int] | None:
        """The op that joins output ``index`` with its contribution, and the slot of the contribution."""
        op = self._producers.get(self._uncast(self.body.ops[-1].operands[index]))
        if op is None:
            return None
        boolean = tensor_type(op.result_types[0])[1] == "i1"
        if op.name not in (_BOOLEAN_COMBINERS if boolean else _COMBINERS):
            return None
        sides = [self._uncast(slot) for slot in op.operands]
        accumulator = self.body.arguments[self.ins + index]
        if sides.count(accumulator) != 1:
            return None
        return op, op.operands[1 - sides.index(accumulator)]

    def _passed(self, joining: Op, index: int) -> list[str]:
        """The types that a running sum is narrowed to between one step and the next, beside its own."""
        accumulator = self.body.arguments[self.ins + index]
        (taken,) = (slot for slot in joining.operands if self._uncast(slot) == accumulator)
        return [*self._casts(taken), *self._casts(self.body.ops[-1].operands[index])]

    def _factors(self) -> tuple[int, int] | None:
        op = self._producers.get(self._uncast(self.contributions[0]))
        products = {"arith.addf": "arith.mulf", "arith.addi": "arith.muli", "complex.add": "complex.mul"}
        if self.joins is None or op is None or op.name != products.get(self.joins[0]):
            return None
        inputs = self.body.arguments[: self.ins]
        a, b = (self._uncast(slot) for slot in op.operands)
        if a not in inputs or b not in inputs:
            return None
        found = (inputs.index(a), inputs.index(b))
        covered = loops_of(self.maps[found[0]]) | loops_of(self.maps[found[1]])
        # A loop of neither factor repeats the output, or multiplies the sum: left to the general reduction.
        if len(covered) != self.loops:
            return None
        left, right = op.operands
        self.factor_casts = (self._casts(left), self._casts(right))
        self.sum_types[0].insert(0, _element(op.result_types[0]))
        return found

    def _uncast(self, slot: int) -> int:
        """``slot`` seen through casts between float types, which are the identity in exact arithmetic."""
        while (op := self._producers.get(slot)) is not None and op.name in _FLOAT_CASTS:
            slot = op.operands[0]
        return slot

    def _casts(self, slot: int) -> list[str]:
        """The types that a value is narrowed to by the casts on its way to ``slot``, in order."""
        found = []
        while (op := self._producers.get(slot)) is not None and op.name in _FLOAT_CASTS:
            if op.name == "arith.truncf":
                found.append(_element(op.result_types[0]))
            slot = op.operands[0]
        return found[::-1]

    def _needed(self, wanted: list[int]) -> list[Op]:
        """The ops of the region that the slots ``wanted`` depend on, in order."""
        slots, ops = set(wanted), []
        for inner in reversed(self.body.ops[:-1]):
            if slots.intersection(inner.results):
                ops.append(inner)
                slots.update(reads(inner))
        return ops[::-1]


def _element(type_: ir.Type) -> str:
    return tensor_type(type_)[1]


def _order(forms: tuple[Linear, ...], shape: Sequence[int | None], parallel: list[int]) -> list[int] | None:
    """The loop of each dimension, when they are the loops ``parallel``, each once and nothing else.

    A dimension of size 1 whose index is a constant (what torch keeps of a reduced one) is passed over.
    """
    walked = [form for form, size in zip(forms, shape, strict=True) if form.coefficients or size != 1]
    loops = [form.coefficients[0][0] for form in walked if form.is_loop]
    return loops if len(loops) == len(walked) and sorted(loops) == parallel else None
