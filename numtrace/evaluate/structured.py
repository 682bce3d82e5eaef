"""Every structured op takes one path: indexing maps and a region.

The region is evaluated once, on whole tensors. Parallel loops broadcast; a region of the form
``out ⊕ f(inputs)`` becomes a contraction or a reduction; anything else is a loop over the reduction
dimensions, slow but right.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import torch
from torch import Tensor

from numtrace.evaluate.affine import Domain, align, loop_view
from numtrace.evaluate.contraction import contract
from numtrace.evaluate.extremes import amax, amax_number, amin, amin_number, maximum, minimum
from numtrace.evaluate.nest import Nest
from numtrace.evaluate.op import Op
from numtrace.evaluate.registry import evaluates

#: Points of the loop nest that one temporary may have, so that a region's temporaries stay in the caches.
STRIPE = 1 << 18


#: How outputs are joined with what is new: over whole dimensions, and for two values.
REDUCTIONS: dict[str, tuple[Callable, Callable]] = {
    "arith.addf": (torch.sum, torch.add),
    "arith.addi": (torch.sum, torch.add),
    "complex.add": (torch.sum, torch.add),
    "arith.maximumf": (amax, maximum),
    "arith.maxnumf": (amax_number, torch.fmax),
    "arith.maxsi": (amax, maximum),
    "arith.minimumf": (amin, minimum),
    "arith.minnumf": (amin_number, torch.fmin),
    "arith.minsi": (amin, minimum),
    "arith.ori": (torch.any, torch.logical_or),
    "arith.andi": (torch.all, torch.logical_and),
}


def evaluate_structured(op: Op, machine, operands: list[Tensor]) -> tuple[Tensor, ...]:
    """The results of a structured op on ``operands`` (inputs, then outs), exact.

    Operands are never written to; a result may be a view of one.

    Raises:
        UncoveredOp: an output's map is not linear.
        UndefinedResult: a map reads outside of its operand.
    """
    nest = op.cache.get("nest")
    if nest is None:
        nest = op.cache["nest"] = Nest(op)
    domain = Domain.whole(nest.sizes([tuple(value.shape) for value in operands]))
    inputs, outs = operands[: nest.ins], operands[nest.ins :]
    if 0 in domain.sizes:
        return tuple(outs)
    inputs = nest.over_loops(inputs, domain.sizes, lambda value, move: move(value))
    if nest.joins is None or not (nest.reductions or nest.whole):
        return _loop(nest, machine, inputs, outs, domain)
    if nest.factors is not None and same_dtype(outs[0], *(inputs[i] for i in nest.factors)):
        a, b = ((inputs[i], nest.maps[i]) for i in nest.factors)
        return (contract(a, b, (outs[0], nest.out_maps[0]), domain),)
    return _vectorised(nest, machine, inputs, outs, domain)


def same_dtype(out: Tensor, *inputs: Tensor) -> bool:
    return out.dtype != torch.bool and all(value.dtype == out.dtype for value in inputs)


def _region(nest: Nest, machine, operands: list[Tensor], domain: Domain, part: bool = False) -> list[Tensor]:
    """The region on whole tensors over the free loops of ``domain``: what it yields, or its contributions."""
    loops = domain.loops
    arguments = [
        align(*loop_view(value, forms, domain), loops) if slot in nest.read else None
        for slot, value, forms in zip(nest.body.arguments, operands, nest.maps, strict=True)
    ]
    outer, machine.domain = machine.domain, domain
    try:
        if part:
            return machine.run_part(nest.body, arguments, nest.contributing, nest.contributions)
        return machine.run(nest.body, arguments)
    finally:
        machine.domain = outer


def _vectorised(
    nest: Nest, machine, inputs: list[Tensor], outs: list[Tensor], whole: Domain
) -> tuple[Tensor, ...]:
    """Elementwise regions and reductions, in stripes of the parallel loops."""
    stripes = list(whole.cut(nest.parallel, STRIPE)) if machine.striped else [whole]
    evaluate = _reduced if nest.reductions else _yielded
    sizes = [whole.sizes[loop] for loop in nest.parallel]
    if len(stripes) == 1:
        values = evaluate(nest, machine, inputs, outs, whole)
        return tuple(
            value.to(out.dtype)
            .expand(sizes)
            .permute([nest.parallel.index(loop) for loop in order])
            .reshape(out.shape)
            for value, out, order in zip(values, outs, nest.orders, strict=True)
        )
    results = tuple(torch.empty(out.shape, dtype=out.dtype) for out in outs)
    for domain in stripes:
        _write(nest, results, evaluate(nest, machine, inputs, outs, domain), domain)
    return results


def _yielded(nest: Nest, machine, inputs: list[Tensor], outs: list[Tensor], domain: Domain) -> list[Tensor]:
    return _region(nest, machine, [*inputs, *outs], domain)


def _reduced(nest: Nest, machine, inputs: list[Tensor], outs: list[Tensor], domain: Domain) -> list[Tensor]:
    contributions = _region(nest, machine, [*inputs, *outs], domain, part=True)
    values = []
    for out, forms, name, value in zip(outs, nest.out_maps, nest.joins or (), contributions, strict=True):
        reduce, join = REDUCTIONS[name]
        reduced = reduce(value.to(out.dtype).expand(domain.sizes), dim=nest.reductions).to(out.dtype)
        values.append(join(loop_view(out, forms, domain)[0], reduced))
    return values


def _write(nest: Nest, results: tuple[Tensor, ...], values: list[Tensor], domain: Domain) -> None:
    for result, forms, value in zip(results, nest.out_maps, values, strict=True):
        loop_view(result, forms, domain)[0].copy_(value)


def _loop(nest: Nest, machine, inputs: list[Tensor], outs: list[Tensor], whole: Domain) -> tuple[Tensor, ...]:
    """Any region: one step per point of the reduction loops, in order, vectorised over the parallel ones."""
    results = tuple(out.clone(memory_format=torch.contiguous_format) for out in outs)
    for point in product(*(range(whole.sizes[loop]) for loop in nest.reductions)):
        domain = whole.at(dict(zip(nest.reductions, point, strict=True)))
        # What the region yields may be a view of a result that is about to be written.
        values = [value.clone() for value in _region(nest, machine, [*inputs, *results], domain)]
        _write(nest, results, values, domain)
    return results


@evaluates("linalg.index")
def index(op: Op, machine) -> Tensor:
    """The value of a loop, as a tensor along that loop."""
    domain: Domain = machine.domain
    loop = op.integer("dim")
    if loop in domain.fixed:
        return torch.tensor(domain.fixed[loop], dtype=torch.int64)
    values = torch.arange(domain.sizes[loop], dtype=torch.int64) + domain.start.get(loop, 0)
    return values.reshape([-1 if d == loop else 1 for d in domain.loops])
