"""An affine map is a strided view: operands of structured ops as tensors over the loops they depend on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import torch
from iree.compiler import ir
from torch import Tensor

from numtrace.errors import UncoveredOp, UndefinedResult


@dataclass(frozen=True, slots=True)
class Linear:
    """One result of an affine map: ``Σ coefficients[d]·d + offset``."""

    coefficients: tuple[tuple[int, int], ...]  # (loop, coefficient), by loop
    offset: int = 0

    @property
    def is_loop(self) -> bool:
        """Whether it is one loop and nothing else."""
        return len(self.coefficients) == 1 and self.coefficients[0][1] == 1 and self.offset == 0


def linear_map(affine_map: ir.AffineMap) -> tuple[Linear, ...]:
    """The results of ``affine_map`` as linear forms of the loops.

    Raises:
        UncoveredOp: a result is not linear (``mod``, ``floordiv``) or uses a symbol.
    """
    forms = []
    for result in affine_map.results:
        form = linear(result)
        if form is None:
            raise UncoveredOp("affine map", f"{result} is not linear")
        forms.append(form)
    return tuple(forms)


def loops_of(forms: Iterable[Linear]) -> set[int]:
    """The loops that any of ``forms`` depends on."""
    return {loop for form in forms for loop, _ in form.coefficients}


def linear(expression: ir.AffineExpr) -> Linear | None:
    """The linear form of ``expression``; None where it has none, or uses a symbol."""
    terms: dict[int, int] = {}

    def add(node: ir.AffineExpr, factor: int) -> int | None:
        if isinstance(node, ir.AffineDimExpr):
            terms[node.position] = terms.get(node.position, 0) + factor
            return 0
        if isinstance(node, ir.AffineConstantExpr):
            return node.value * factor
        if isinstance(node, ir.AffineAddExpr):
            left, right = add(node.lhs, factor), add(node.rhs, factor)
            return None if left is None or right is None else left + right
        if isinstance(node, ir.AffineMulExpr):
            for constant, other in ((node.rhs, node.lhs), (node.lhs, node.rhs)):
                if isinstance(constant, ir.AffineConstantExpr):
                    return add(other, factor * constant.value)
        return None

    offset = add(expression, 1)
    if offset is None:
        return None
    return Linear(tuple(sorted((loop, factor) for loop, factor in terms.items() if factor)), offset)


def value_at(
    expression: ir.AffineExpr, dims: Mapping[int, Tensor] | Sequence[Tensor], symbols: Sequence[Tensor]
) -> Tensor:
    """``expression`` at integer values of its dimensions and symbols, broadcast."""
    if isinstance(expression, ir.AffineDimExpr):
        return dims[expression.position]
    if isinstance(expression, ir.AffineSymbolExpr):
        return symbols[expression.position]
    if isinstance(expression, ir.AffineConstantExpr):
        return torch.tensor(expression.value, dtype=torch.int64)
    a, b = (value_at(side, dims, symbols) for side in (expression.lhs, expression.rhs))
    if isinstance(expression, ir.AffineAddExpr):
        return a + b
    if isinstance(expression, ir.AffineMulExpr):
        return a * b
    # The divisor of the others is positive, or the result is undefined: see the affine dialect's semantics.
    if isinstance(expression, ir.AffineModExpr):
        return torch.remainder(a, b)
    if isinstance(expression, ir.AffineFloorDivExpr):
        return torch.div(a, b, rounding_mode="floor")
    return -torch.div(-a, b, rounding_mode="floor")


def loop_sizes(
    maps: Sequence[tuple[Linear | None, ...]], shapes: Sequence[tuple[int, ...]], loops: int
) -> list[int]:
    """The trip count of every loop, from the operand dimensions that are one loop alone; None is not one.

    Raises:
        UncoveredOp: a loop appears in no operand dimension by itself.
    """
    sizes: list[int | None] = [None] * loops
    for forms, shape in zip(maps, shapes, strict=True):
        for form, size in zip(forms, shape, strict=True):
            if form is not None and form.is_loop:
                sizes[form.coefficients[0][0]] = size
    if None in sizes:
        raise UncoveredOp("structured op", f"the size of loop d{sizes.index(None)} follows from no operand")
    return sizes  # type: ignore[return-value]


@dataclass(frozen=True, slots=True)
class Domain:
    """A box of the loop nest: ``sizes`` points per loop from ``start`` on; those in ``fixed`` have one."""

    sizes: list[int]
    start: dict[int, int]
    fixed: dict[int, int]

    @classmethod
    def whole(cls, sizes: list[int]) -> Domain:
        return cls(sizes, {}, {})

    @property
    def loops(self) -> list[int]:
        return [loop for loop in range(len(self.sizes)) if loop not in self.fixed]

    def at(self, point: dict[int, int]) -> Domain:
        return Domain(self.sizes, self.start, {**self.fixed, **point})

    def stripes(self, loop: int, step: int) -> Iterator[Domain]:
        for start in range(0, self.sizes[loop], step):
            sizes = [*self.sizes]
            sizes[loop] = min(step, self.sizes[loop] - start)
            yield Domain(sizes, {**self.start, loop: start}, self.fixed)

    def cut(self, loops: list[int], budget: int) -> Iterator[Domain]:
        """Stripes along ``loops`` (outermost first), of at most ``budget`` points each where possible.

        An outer loop is cut rather than an inner one: its stripes are contiguous.
        """
        total = prod(self.sizes[loop] for loop in self.loops)
        if total <= budget or not loops:
            yield self
            return
        pieces = -(-total // budget)
        fitting = [loop for loop in loops if self.sizes[loop] >= pieces]
        loop = fitting[0] if fitting else max(loops, key=lambda loop: self.sizes[loop])
        rest = [other for other in loops if other != loop]
        for stripe in self.stripes(loop, max(1, self.sizes[loop] // pieces)):
            yield from stripe.cut(rest, budget)


def loop_view(value: Tensor, forms: tuple[Linear, ...], domain: Domain) -> tuple[Tensor, list[int]]:
    """``value`` as a view with one dimension per free loop that its map uses, and those loops in order.

    Nothing is copied.

    Raises:
        UndefinedResult: the map reads outside of the tensor.
        UncoveredOp: it walks it backwards.
    """
    offset = value.storage_offset()
    strides: dict[int, int] = {}
    for form, stride, extent in zip(forms, value.stride(), value.shape, strict=True):
        low = high = form.offset
        for loop, factor in form.coefficients:
            first = factor * domain.fixed.get(loop, domain.start.get(loop, 0))
            low, high, offset = low + first, high + first, offset + first * stride
            if loop not in domain.fixed:
                strides[loop] = strides.get(loop, 0) + factor * stride
                reach = factor * (domain.sizes[loop] - 1)
                low, high = low + min(reach, 0), high + max(reach, 0)
        offset += form.offset * stride
        if low < 0 or high >= extent:
            why = f"reads elements {low} to {high} of a dimension of size {extent}"
            raise UndefinedResult("a structured op", why)
    if min(strides.values(), default=0) < 0:
        raise UncoveredOp("structured op", "its map walks a dimension backwards")
    loops = sorted(strides)
    return value.as_strided([domain.sizes[d] for d in loops], [strides[d] for d in loops], offset), loops


def align(view: Tensor, loops: list[int], onto: list[int]) -> Tensor:
    """``view`` (with dimensions ``loops``, sorted) broadcastable over the loops ``onto`` (sorted)."""
    if loops == onto:
        return view
    for position, loop in enumerate(onto):
        if loop not in loops:
            view = view.unsqueeze(position)
    return view
