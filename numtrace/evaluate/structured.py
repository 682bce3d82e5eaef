"""Every structured op takes one path: indexing maps and a region.

The region is evaluated once, on whole tensors. Parallel loops broadcast; a region of the form
``out ⊕ f(inputs)`` becomes a contraction or a reduction; anything else is a loop over the reduction
dimensions, slow but right.
"""

from __future__ import annotations

from itertools import product

import torch
from torch import Tensor

from numtrace.evaluate.affine import Domain, align, linear_map, loop_sizes, loop_view
from numtrace.evaluate.contraction import contract
from numtrace.evaluate.program import Block, Op, walk
from numtrace.evaluate.registry import evaluates

#: Points of the loop nest that one temporary may have; beyond, the longest parallel loop is cut in stripes.
STRIPE = 1 << 22

#: How a region's last op joins the accumulator: over a whole dimension, and for two values.
_COMBINERS = {
    "arith.addf": (torch.sum, torch.add),
    "arith.addi": (torch.sum, torch.add),
    "arith.maximumf": (torch.amax, torch.maximum),
    "arith.maxsi": (torch.amax, torch.maximum),
    "arith.minimumf": (torch.amin, torch.minimum),
    "arith.minsi": (torch.amin, torch.minimum),
}

_FLOAT_CASTS = ("arith.extf", "arith.truncf")


class Nest:
    """The loops of one structured op: maps, iterator kinds and the region, read once per op."""

    def __init__(self, op: Op):
        self.maps = [linear_map(m) for m in op.maps]
        self.loops = op.maps[0].n_dims
        self.body: Block = op.regions[0]
        self.outs = max(1, len(op.results))
        self.ins = len(self.maps) - self.outs
        self.parallel = sorted({d for forms in self.maps[self.ins :] for form in forms for d, _ in form.coefficients})
        self.reductions = [loop for loop in range(self.loops) if loop not in self.parallel]
        outs = set(self.body.arguments[self.ins :])
        self.reads_outs = any(slot in outs for inner in walk([self.body]) for slot in inner.operands)
        self.combiners = [self._combiner(i) for i in range(self.outs)] if self.reductions else []
        self.factors = self._factors() if self.outs == 1 and all(self.combiners) and self.combiners else None

    def _combiner(self, index: int) -> tuple[Op, int] | None:
        """The op that joins output ``index`` with its new contribution, and the slot of that contribution.

        None when the region has another form: the accumulator is read elsewhere or joined otherwise.
        """
        accumulator = self.body.arguments[self.ins + index]
        op = self._producer(self.body.ops[-1].operands[index])
        if op is None or op.name not in _COMBINERS or op.operands.count(accumulator) != 1:
            return None
        if sum(inner.operands.count(accumulator) for inner in walk([self.body])) != 1:
            return None
        return op, op.operands[1 - op.operands.index(accumulator)]

    def _factors(self) -> tuple[int, int] | None:
        """The two inputs whose product is added to the accumulator, seen through casts between float types."""
        combiner, contribution = self.combiners[0]  # type: ignore[misc]
        op = self._producer(self._uncast(contribution))
        if combiner.name not in ("arith.addf", "arith.addi") or op is None:
            return None
        if op.name not in ("arith.mulf", "arith.muli"):
            return None
        inputs = self.body.arguments[: self.ins]
        a, b = (self._uncast(slot) for slot in op.operands)
        return (inputs.index(a), inputs.index(b)) if a in inputs and b in inputs else None

    def _producer(self, slot: int) -> Op | None:
        return next((op for op in self.body.ops if slot in op.results), None)

    def _uncast(self, slot: int) -> int:
        while (op := self._producer(slot)) is not None and op.name in _FLOAT_CASTS:
            slot = op.operands[0]
        return slot

    def needed(self, wanted: list[int]) -> list[Op]:
        """The ops of the region that the slots ``wanted`` depend on, in order."""
        slots, ops = set(wanted), []
        for inner in reversed(self.body.ops[:-1]):
            if slots.intersection(inner.results):
                ops.append(inner)
                slots.update(inner.operands)
        return ops[::-1]


def evaluate_structured(op: Op, machine, operands: list[Tensor]) -> tuple[Tensor, ...]:
    """The results of a structured op on ``operands`` (inputs, then outs), exact.

    Raises:
        UncoveredOp: a map is not linear, or reads outside of its operand.
    """
    nest = op.cache.get("nest")
    if nest is None:
        nest = op.cache["nest"] = Nest(op)
    domain = Domain.whole(loop_sizes(nest.maps, [tuple(value.shape) for value in operands], nest.loops))
    results = [out.clone(memory_format=torch.contiguous_format) for out in operands[nest.ins :]]
    if 0 in domain.sizes:
        return tuple(results)
    inputs = operands[: nest.ins]
    if not nest.reductions:
        _elementwise(nest, machine, inputs, results, domain)
    elif not all(nest.combiners):
        _loop(nest, machine, inputs, results, domain)
    elif nest.factors is not None and _same_dtype(results[0], *(inputs[i] for i in nest.factors)):
        factors = [(inputs[i], nest.maps[i]) for i in nest.factors]
        contract(factors, (results[0], nest.maps[-1]), domain)
    else:
        _reduce(nest, machine, inputs, results, domain)
    return tuple(results)


def _same_dtype(out: Tensor, *inputs: Tensor) -> bool:
    return out.dtype != torch.bool and all(value.dtype == out.dtype for value in inputs)


def _region(nest: Nest, machine, operands: list[Tensor], domain: Domain, wanted: list[int] | None = None) -> list[Tensor]:
    """The region on whole tensors over the free loops of ``domain``: what it yields, or the slots ``wanted``."""
    loops = domain.loops
    arguments = [align(*loop_view(value, forms, domain), loops) for value, forms in zip(operands, nest.maps, strict=True)]
    outer, machine.domain = machine.domain, domain
    try:
        if wanted is None:
            return machine.run(nest.body, arguments)
        return machine.run_part(nest.body, arguments, nest.needed(wanted), wanted)
    finally:
        machine.domain = outer


def _write(nest: Nest, results: list[Tensor], values: list[Tensor], domain: Domain) -> None:
    for result, forms, value in zip(results, nest.maps[nest.ins :], values, strict=True):
        loop_view(result, forms, domain)[0].copy_(value)


def _elementwise(nest: Nest, machine, inputs: list[Tensor], results: list[Tensor], whole: Domain) -> None:
    for domain in whole.cut(nest.parallel, STRIPE):
        _write(nest, results, _region(nest, machine, [*inputs, *results], domain), domain)


def _reduce(nest: Nest, machine, inputs: list[Tensor], results: list[Tensor], whole: Domain) -> None:
    wanted = [contribution for _, contribution in nest.combiners]
    for domain in whole.cut(nest.parallel, STRIPE):
        values = _region(nest, machine, [*inputs, *results], domain, wanted)
        for result, forms, value, (combiner, _) in zip(results, nest.maps[nest.ins :], values, nest.combiners, strict=True):
            reduce, join = _COMBINERS[combiner.name]
            target, _ = loop_view(result, forms, domain)
            reduced = reduce(value.expand(domain.sizes), dim=nest.reductions).to(result.dtype)
            target.copy_(join(target, reduced))


def _loop(nest: Nest, machine, inputs: list[Tensor], results: list[Tensor], whole: Domain) -> None:
    """Any region: one step per point of the reduction loops, in order, vectorised over the parallel ones."""
    for point in product(*(range(whole.sizes[loop]) for loop in nest.reductions)):
        domain = whole.at(dict(zip(nest.reductions, point, strict=True)))
        values = [value.clone() for value in _region(nest, machine, [*inputs, *results], domain)]
        _write(nest, results, values, domain)


@evaluates("linalg.index")
def index(op: Op, machine) -> Tensor:
    """The value of a loop, as a tensor along that loop."""
    domain: Domain = machine.domain
    loop = op.int("dim")
    if loop in domain.fixed:
        return torch.tensor(domain.fixed[loop], dtype=torch.int64)
    values = torch.arange(domain.sizes[loop], dtype=torch.int64) + domain.start.get(loop, 0)
    return values.reshape([-1 if d == loop else 1 for d in domain.loops])
