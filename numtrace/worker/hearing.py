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

from numtrace.attribute.agreement import agrees, alike
from numtrace.attribute.amendments import UNDECIDED
from numtrace.attribute.decisions import decides
from numtrace.attribute.noise import Noisy, undecided, visible
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
    wrong = {i for i, want in enumerate(wanted) if not agrees(made[i], want)}
    # What no site accounts for came about between dispatches: a branch, a loop, the indices of a sort.
    nobodys = {i for i in wrong if not summary.differing[i]}
    errors = {i: compiled[i].double().reshape(made[i].shape) - made[i].double() for i in wrong}
    heard = [i for i in sorted(wrong) if i in nobodys or _invisible(made[i], wanted[i], errors[i])]
    if not heard:
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

        jumps = decides([flow.body])
        for index in heard:
            value, want = made[index], wanted[index]
            tied = undecided(value, value, want, with_noise, index, jumps)
            if index in nobodys:
                # Of a loop's rounds each may have to go its way: one that is in doubt puts the others in doubt.
                differing = ~alike(value, want)
                if int(tied.sum()) < int(differing.sum()) / 2:
                    continue
                tied = differing
            summary.near_ties += int(tied.sum())
            summary.unsure += int((tied & visible(value, want, errors[index])).sum())
            made[index] = torch.where(tied, want, value)
    except UncoveredOp:
        return  # then there is nothing to tell it by
    right = {i for i in heard if agrees(made[i], wanted[i])}
    sites = {site for index in right for site in summary.differing[index]}
    sites -= {site for index in wrong - right for site in summary.differing[index]}
    summary.amended.update(dict.fromkeys(sites, UNDECIDED))


def _invisible(value: Tensor, want: Tensor, error: Tensor) -> bool:
    """Whether a semantic difference is a rounding error even to a 32-bit program."""
    return value.is_floating_point() and not bool(visible(value, want, error).any())
