"""``out += A·B`` over affine maps, as matrix products.

Loops that make an operand's map more than a permutation (the window of a convolution) are walked one by one:
for each of their points the operands are strided views with one dimension per loop, and the product is a
batched matrix product. In float64 this is faster than torch's own convolution, and takes no im2col buffer.
"""

from __future__ import annotations

from itertools import product
from math import prod

import torch
from torch import Tensor

from numtrace.evaluate.affine import Domain, Linear, loop_view

Operand = tuple[Tensor, tuple[Linear, ...]]

#: Elements of one stripe of the output, chosen so that its accumulator and packed operands stay in the caches.
STRIPE = 1 << 21


def contract(factors: list[Operand], out: Operand, domain: Domain) -> None:
    """Adds the product of the two ``factors``, summed over the loops that ``out`` lacks, to ``out`` in place."""
    windows = _window_loops([*factors, out], domain.sizes)
    used = [{loop for form in forms for loop, _ in form.coefficients} - set(windows) for _, forms in (*factors, out)]
    roles = _Roles(*(sorted(loops) for loops in used))
    if not roles.inner_last(*(value for value, _ in factors), *(forms for _, forms in factors)):
        factors, roles = factors[::-1], roles.swapped()
    volume = prod(domain.sizes[loop] for loop in range(len(domain.sizes)) if loop not in windows)
    outputs = prod(domain.sizes[loop] for loop in roles.out)
    share = max(outputs, volume // max(1, prod(domain.sizes[loop] for loop in roles.rows)))
    longest = max(roles.out, key=lambda loop: domain.sizes[loop], default=None)
    step = domain.sizes[longest] if longest is not None else 1
    if share > STRIPE and longest is not None:
        step = max(1, STRIPE * step // share)
    stripes = [domain] if longest is None else domain.stripes(longest, step)
    for stripe in stripes:
        _stripe(factors, out, stripe, roles, windows)


class _Roles:
    """What each loop is in the matrix product: batch, rows (of A), columns (of B) or inner."""

    def __init__(self, a: list[int], b: list[int], out: list[int]):
        self.a, self.b, self.out = a, b, out
        self.batch = [loop for loop in out if loop in a and loop in b]
        self.rows = [loop for loop in out if loop in a and loop not in b]
        self.columns = [loop for loop in out if loop in b and loop not in a]
        self.inner = [loop for loop in a if loop in b and loop not in out]

    def swapped(self) -> _Roles:
        return _Roles(self.b, self.a, self.out)

    def inner_last(self, a: Tensor, b: Tensor, a_forms: tuple[Linear, ...], b_forms: tuple[Linear, ...]) -> bool:
        """Whether A as the left factor is packed along its fastest dimension, rather than across it."""
        fastest = a_forms[-1].coefficients if a_forms and a.dim() and a.stride(-1) == 1 else ()
        return not any(loop in self.rows for loop, _ in fastest) or any(
            loop in self.columns for form in b_forms[-1:] for loop, _ in form.coefficients
        )


def _stripe(factors: list[Operand], out: Operand, domain: Domain, roles: _Roles, windows: list[int]) -> None:
    size = domain.sizes
    n, m, k, p = (prod(size[d] for d in loops) for loops in (roles.batch, roles.rows, roles.inner, roles.columns))
    order = (*roles.batch, *roles.rows, *roles.columns)
    moving = [loop for _, forms in [out] for form in forms for loop, _ in form.coefficients if loop in windows]
    accumulator: Tensor | None = None
    target = out[0]
    for point in product(*(range(size[loop]) for loop in windows)):
        at = domain.at(dict(zip(windows, point, strict=True)))
        if accumulator is None or moving:
            target, out_loops = loop_view(*out, at)
            target = target.permute([out_loops.index(loop) for loop in order])
            accumulator = target.reshape(n, m, p).clone()
        left, right = (_operand(*factor, at, roles) for factor in factors)
        left = left.permute([_at(loop, roles.a, roles) for loop in (*roles.batch, *roles.rows, *roles.inner)])
        right = right.permute([_at(loop, roles.b, roles) for loop in (*roles.batch, *roles.inner, *roles.columns)])
        left, right = left.reshape(n, m, k), right.reshape(n, k, p)
        if accumulator.dtype.is_floating_point:
            accumulator.baddbmm_(left, right)
        else:
            accumulator.add_(torch.bmm(left, right))
        if moving:
            target.copy_(accumulator.reshape(target.shape))
    if accumulator is not None and not moving:
        target.copy_(accumulator.reshape(target.shape))


def _operand(value: Tensor, forms: tuple[Linear, ...], domain: Domain, roles: _Roles) -> Tensor:
    """The strided view of an operand, summed over the loops that only it has."""
    view, loops = loop_view(value, forms, domain)
    other = roles.b if loops == roles.a else roles.a
    private = [i for i, loop in enumerate(loops) if loop not in other and loop not in roles.out]
    return view.sum(dim=private) if private else view


def _at(loop: int, loops: list[int], roles: _Roles) -> int:
    """The position of ``loop`` in an operand once its private loops are summed."""
    other = roles.b if loops is roles.a else roles.a
    return [d for d in loops if d in other or d in roles.out].index(loop)


def _window_loops(operands: list[Operand], sizes: list[int]) -> list[int]:
    """The loops to walk: of every dimension that mixes several loops, all but the longest."""
    walked: set[int] = set()
    for _, forms in operands:
        for form in forms:
            loops = [loop for loop, _ in form.coefficients if loop not in walked]
            if len(loops) > 1:
                loops.remove(max(loops, key=lambda loop: sizes[loop]))
                walked.update(loops)
    return sorted(walked)
