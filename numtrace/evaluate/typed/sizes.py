"""|A|·|B|, the sum of absolute products that the bound of a contraction is made of, or a little more for less work."""

from __future__ import annotations

import math
from math import prod

import torch
from torch import Tensor

from numtrace.evaluate.affine import Domain, Linear, loops_of
from numtrace.evaluate.contraction import contract

Operand = tuple[Tensor, tuple[Linear, ...]]

#: Terms that are bounded together, for an eighth of the work. Of normally distributed ones the bound grows by 1.5 (by
#: π/2 in the limit of many), whatever the scales of their channels.
GROUP = 8

#: Products per element from which on the norms cost less than they save.
_USES = 32


def sizes(a: Operand, b: Operand, out: Operand, domain: Domain, *, sharp: bool) -> tuple[Tensor, bool]:
    """At least |out| + |A|·|B| (float32, but for the rounding of the sum), and whether it is just that.

    Not ``sharp``: of every eight terms along one inner loop, Σ|a·b| is at most ‖d·a‖₂·‖b/d‖₂ (Cauchy-Schwarz), for any
    d > 0. Where d makes a and b equally large on average, it is a typical term that counts and not the largest
    channel of each.
    """
    (left, left_map), (right, right_map) = ((value.float(), forms) for value, forms in (a, b))
    start = out[0].float().abs()
    worth = prod(domain.sizes) >= _USES * (left.numel() + right.numel())
    loop = _inner_loop(left_map, right_map, out[1], domain) if worth and not sharp else None
    if loop is None:
        return contract((left.abs(), left_map), (right.abs(), right_map), (start, out[1]), domain), True
    fewer = [*domain.sizes]
    fewer[loop] = -(-fewer[loop] // GROUP)
    first, second = _norms((left, _dimension(left_map, loop)), (right, _dimension(right_map, loop)))
    return contract((first, left_map), (second, right_map), (start, out[1]), Domain.whole(fewer)), False


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


def _norms(left: tuple[Tensor, int], right: tuple[Tensor, int]) -> list[Tensor]:
    """The 2-norms of groups of ``GROUP`` elements along the dimension of each, scaled to each other; float32.

    Where a channel's squares leave the range of float32 on the small side, the bound is too small there: it is asked
    for the sharp one then.
    """
    means = [_mean_sizes(*value) for value in (left, right)]
    balance = (means[1] / means[0]).sqrt_()
    balance = torch.where(torch.isfinite(balance) & (balance > 0), balance, 1.0)
    return [_grouped(*left, balance), _grouped(*right, 1 / balance)]


def _mean_sizes(value: Tensor, dim: int) -> Tensor:
    """The mean of |element| of every channel, one dimension."""
    others = [d for d in range(value.dim()) if d != dim]
    total = torch.linalg.vector_norm(value, ord=1, dim=others) if others else value.abs()
    return total / (value.numel() // value.shape[dim])


def _grouped(value: Tensor, dim: int, scale: Tensor) -> Tensor:
    """The 2-norms of groups along ``dim``; what is missing of the last group is zero."""
    scaled = value * scale.reshape([-1 if d == dim else 1 for d in range(value.dim())])
    largest = max(abs(float(end)) for end in torch.aminmax(scaled))
    unit = largest if 0 < largest < math.inf else 1.0  # so that squares do not overflow
    squares = scaled.div_(unit).square_()
    missing = -value.shape[dim] % GROUP
    if missing:
        shape = [*value.shape]
        shape[dim] = missing
        squares = torch.cat([squares, squares.new_zeros(shape)], dim=dim)
    return squares.unflatten(dim, (-1, GROUP)).sum(dim=dim + 1).sqrt_().mul_(unit)
