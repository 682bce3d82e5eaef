"""Before mathematics is accused: whether float64 knows the outputs well enough to tell.

A site that differs is set back, and what hangs on rounding within it is settled there. What noise becomes on the way
through several dispatches shows at the outputs only: a group norm of an image that is nearly constant makes 1e-8 of the
1e-16 that its mean is off. That is heard only where the difference is a rounding error even to a 32-bit program: noise
must not acquit what the user can see.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial

import torch
from torch import Tensor

from numtrace.attribute.agreement import agrees
from numtrace.attribute.amendments import UNDECIDED
from numtrace.attribute.magnitude import largest
from numtrace.attribute.noise import Noisy, undecided
from numtrace.attribute.scalars import as_in_source
from numtrace.attribute.trajectory import Trajectory
from numtrace.errors import UncoveredOp
from numtrace.worker.compilation import Variant
from numtrace.worker.exact import exact_outputs, measured_ties


def hear_noise(
    variant: Variant,
    trajectory: Trajectory,
    tables: Mapping[str, Tensor],
    params,
    inputs: list[Tensor],
    expected: list[Tensor],
    compiled: list[Tensor],
) -> None:
    """Takes the source's outputs where the program's differ by no more than float64's noise moves them.

    Where nothing else is left of a difference, the sites that brought it in are amended.
    """
    summary, flow, made = trajectory.summary, trajectory.program, trajectory.summary.exact_outputs
    wanted = [want.reshape(value.shape) for value, want in zip(made, expected, strict=False)]
    wrong = {i for i, want in enumerate(wanted) if summary.differing[i] and not agrees(made[i], want)}
    small = [i for i in sorted(wrong) if _invisible(made[i], wanted[i], compiled[i])]
    if not small:
        return
    variant.channel.stage("evaluate with noise")
    try:
        with as_in_source(trajectory.constants):
            ties = measured_ties(variant, flow, params, inputs, tables)

        @lru_cache(maxsize=1)
        def with_noise(seed: int) -> list[Tensor]:
            with as_in_source(trajectory.constants):
                return exact_outputs(
                    flow, variant.job["function"], params, inputs, exact=tables,
                    make=partial(Noisy, flow, ties, seed),
                )  # fmt: skip

        for index in small:
            tied = undecided(made[index], made[index], wanted[index], with_noise, index)
            summary.near_ties += int(tied.sum())
            made[index] = torch.where(tied, wanted[index], made[index])
    except UncoveredOp:
        return  # then there is nothing to tell it by
    right = {i for i in small if agrees(made[i], wanted[i])}
    sites = {site for index in right for site in summary.differing[index]}
    sites -= {site for index in wrong - right for site in summary.differing[index]}
    summary.amended.update(dict.fromkeys(sites, UNDECIDED))


def _invisible(value: Tensor, want: Tensor, compiled: Tensor) -> bool:
    """Whether a semantic difference is below half a unit of f32: of the largest element, or of the error that the
    compiled program has anyway, where everything cancels."""
    if not value.is_floating_point():
        return False
    gap = (value - want).abs()
    error = largest(compiled.double().reshape(value.shape) - value)
    return bool((gap <= 2.0**-24 * max(largest(want), error)).all())
