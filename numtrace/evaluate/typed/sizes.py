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

#: The bound is about as much too wide as the unevenness of both factors: √n·‖a‖₂/‖a‖₁ of n elements along the loop,
#: 1.25 of normally distributed ones, √n where all but one are zero.
_UNEVEN = 6.0
#: So many terms must count at least, for their number is what makes the width a typical one.
_COUNTING = 16


def sizes(a: Operand, b: Operand, out: Operand, domain: Domain, *, sharp: bool) -> tuple[Tensor, bool]:
    """At least |out| + |A|·|B| (float32, but for the rounding of the sum), and whether it is just that.

    Not ``sharp``: of every eight terms along one inner loop, Σ|a·b| is at most ‖d·a‖₂·‖b/d‖₂ (Cauchy-Schwarz), for any
    d > 0. Where d makes a and b equally large on average, it is a typical term that counts and not the largest
    channel of each. Data that is uneven even so, somewhere along the loop, gets the sharp one.
    """
    (left, left_map), (right, right_map) = ((value.float(), forms) for value, forms in (a, b))
    start = out[0].float().abs()
    worth = prod(domain.sizes) >= _USES * (left.numel() + right.numel())
    loop = _inner_loop(left_map, right_map, out[1], domain) if worth and not sharp else None
    if loop is not None:
        factors = _balanced((left, _dimension(left_map, loop)), (right, _dimension(right_map, loop)))
        uneven = prod(_unevenness(*factor) for factor in factors)
        terms = prod(size for n, size in enumerate(domain.sizes) if n not in loops_of(out[1]))
        if uneven <= _UNEVEN and terms >= _COUNTING * uneven * uneven:
            fewer = [*domain.sizes]
            fewer[loop] = -(-fewer[loop] // GROUP)
            first, second = (_grouped(*factor) for factor in factors)
            return contract(
                (first, left_map), (second, right_map), (start, out[1]), Domain.whole(fewer)
            ), False
    return contract((left.abs(), left_map), (right.abs(), right_map), (start, out[1]), domain), True


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


def _balanced(left: tuple[Tensor, int], right: tuple[Tensor, int]) -> list[tuple[Tensor, int]]:
    """Both, each channel along the loop scaled so that it is as large in one as in the other on average."""
    means = [_mean_sizes(*value) for value in (left, right)]
    scale = means[1].sqrt() / means[0].sqrt()
    scale = torch.where(torch.isfinite(scale) & (scale > 0), scale, 1.0)
    scaled = []
    for (value, dim), factor in ((left, scale), (right, 1 / scale)):
        scaled.append((value * factor.reshape([-1 if d == dim else 1 for d in range(value.dim())]), dim))
    return scaled


def _mean_sizes(value: Tensor, dim: int) -> Tensor:
    """The mean of |element| of every channel, one dimension."""
    others = [d for d in range(value.dim()) if d != dim]
    total = value.abs().sum(dim=others) if others else value.abs()
    return total / (value.numel() // value.shape[dim])


def _unevenness(value: Tensor, dim: int) -> float:
    """The greatest √n·‖x‖₂/‖x‖₁ along ``dim``; infinite where squares leave the range of float32."""
    # torch's own norms are 25 times slower along any dimension but the last.
    ones, twos = value.abs().sum(dim=dim), value.square().sum(dim=dim).sqrt_()
    least = 1 / math.sqrt(value.shape[dim])  # of any vector, if nothing was lost
    ratio = torch.where(ones == 0, least, twos / ones)
    worst = float(ratio.amax())
    return worst / least if math.isfinite(worst) and float(ratio.amin()) > least / 2 else math.inf


def _grouped(value: Tensor, dim: int) -> Tensor:
    """The 2-norms of groups along ``dim``; what is missing of the last group is zero. ``value`` is written over."""
    largest = max(abs(float(end)) for end in torch.aminmax(value))
    unit = largest if 0 < largest < math.inf else 1.0  # so that squares do not overflow
    squares = value.div_(unit).square_()
    missing = -squares.shape[dim] % GROUP
    if missing:
        shape = [*squares.shape]
        shape[dim] = missing
        squares = torch.cat([squares, squares.new_zeros(shape)], dim=dim)
    return squares.unflatten(dim, (-1, GROUP)).sum(dim=dim + 1).sqrt_().mul_(unit)
