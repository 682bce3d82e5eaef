"""|A|·|B|, the sum of absolute products that the bound of a contraction is made of, or a little more for less work."""

from __future__ import annotations

import torch
from torch import Tensor

from numtrace.evaluate.affine import Domain, Linear, loops_of
from numtrace.evaluate.contraction import contract

Operand = tuple[Tensor, tuple[Linear, ...]]

#: Terms that are bounded together. Of normally distributed ones the bound grows by 1.39 on average, for a quarter
#: of the work; at most by 2, but for one that is zero.
GROUP = 4


def sizes(a: Operand, b: Operand, out: Operand, domain: Domain, *, sharp: bool) -> tuple[Tensor, bool]:
    """At least |out| + |A|·|B| (float32, but for the rounding of the sum), and whether it is just that.

    Not ``sharp``: of every four terms along one inner loop, |a·b| summed is at most ‖a‖₂·‖b‖₂ (Cauchy-Schwarz).
    """
    (left, left_map), (right, right_map) = ((value.float().abs(), forms) for value, forms in (a, b))
    start = out[0].float().abs()
    loop = None if sharp else _inner_loop(left_map, right_map, out[1], domain)
    if loop is None:
        return contract((left, left_map), (right, right_map), (start, out[1]), domain), True
    fewer = [*domain.sizes]
    fewer[loop] = -(-fewer[loop] // GROUP)
    first, second = (
        (_norms(value, _dimension(forms, loop)), forms)
        for value, forms in ((left, left_map), (right, right_map))
    )
    return contract(first, second, (start, out[1]), Domain.whole(fewer)), False


def _dimension(forms: tuple[Linear, ...], loop: int) -> int:
    return next(i for i, form in enumerate(forms) if loop in loops_of((form,)))


def _inner_loop(
    left: tuple[Linear, ...], right: tuple[Linear, ...], out: tuple[Linear, ...], domain: Domain
) -> int | None:
    """The longest summed loop that is a dimension of its own in both factors; None when there is none worth it."""
    alone = [
        {form.coefficients[0][0] for form in forms if form.is_loop}
        - loops_of(form for form in forms if not form.is_loop)
        for forms in (left, right)
    ]
    inner = (alone[0] & alone[1]) - loops_of(out)
    loop = max(inner, key=lambda loop: domain.sizes[loop], default=None)
    return loop if loop is not None and domain.sizes[loop] >= 2 * GROUP else None


def _norms(value: Tensor, dim: int) -> Tensor:
    """The 2-norms of groups of ``GROUP`` elements along ``dim``; what is missing of the last group is zero."""
    # Squares leave the range of float32 where the numbers do not: those of the largest must not.
    largest = float(value.amax())
    scale = largest if 0 < largest < float("inf") else 1.0
    squares = (value / scale).square_()
    missing = -value.shape[dim] % GROUP
    if missing:
        shape = [*value.shape]
        shape[dim] = missing
        squares = torch.cat([squares, squares.new_zeros(shape)], dim=dim)
    return squares.unflatten(dim, (-1, GROUP)).sum(dim=dim + 1).sqrt_().mul_(scale)
