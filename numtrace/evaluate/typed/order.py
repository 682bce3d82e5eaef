"""Sums in the order of the IR, rounded to the accumulator's type at every step: one evaluation that it allows.

Rounding errors of such a sum need not be independent: the sum of 2^25 ones in f32 stays at 2^24. Where code is
no farther from the typed meaning than this evaluation is, its error is that of the summation, and no fault.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import torch
from torch import Tensor

from numtrace.errors import UncoveredOp
from numtrace.evaluate.affine import Domain, Linear, align, loop_view, loops_of
from numtrace.evaluate.typed.rounding import round_to
from numtrace.instrument.dtypes import to_numpy, to_torch

Operand = tuple[Tensor, tuple[Linear, ...]]

#: Multiplications beyond which a contraction is not summed in order: minutes on one core.
LIMIT = 1 << 34


def sum_in_order(terms: Tensor, dims: list[int], start: Tensor, element: str) -> Tensor:
    """``start`` plus the sum of ``terms`` over ``dims``, one by one in row-major order, in ``element``.

    ``terms``: in any float dtype, all dimensions; ``start``: the dimensions that are not summed.
    """
    kept = [dim for dim in range(terms.dim()) if dim not in dims]
    rows = terms.permute([*kept, *dims]).reshape([*(terms.shape[dim] for dim in kept), -1])
    rows = torch.cat([start.reshape([*rows.shape[:-1], 1]).to(rows.dtype), rows], dim=-1)
    if element in ("f32", "f64"):
        numbers = to_numpy(rows.to(torch.float32 if element == "f32" else torch.float64))
        # numpy's cumulative sum takes one term after the other, its sum does not.
        total = to_torch(np.ascontiguousarray(np.cumsum(numbers, axis=-1, dtype=numbers.dtype)[..., -1]))
        return total.reshape(start.shape)
    total = rows[..., 0].float()
    for index in range(1, rows.shape[-1]):
        total = round_to(total + rows[..., index].float(), element).float()
    return round_to(total, element).reshape(start.shape)


def contract_in_order(a: Operand, b: Operand, out: Operand, domain: Domain, element: str) -> Tensor:
    """``out`` plus A·B, term by term in the order of the loops, in ``element``; of the shape of ``out``.

    Raises:
        UncoveredOp: it would take minutes.
    """
    size = 1
    for extent in domain.sizes:
        size *= extent
    if size > LIMIT:
        raise UncoveredOp("a contraction", f"{size} multiplications are too many to sum in order")
    reductions = [loop for loop in domain.loops if loop not in loops_of(out[1])]
    total = out[0].clone(memory_format=torch.contiguous_format)
    total = total if element == "f64" else total.float()
    for point in product(*(range(domain.sizes[loop]) for loop in reductions)):
        at = domain.at(dict(zip(reductions, point, strict=True)))
        left, right = (align(*loop_view(value, forms, at), at.loops) for value, forms in (a, b))
        view = loop_view(total, out[1], at)[0]
        view.add_(left.to(total.dtype) * right.to(total.dtype))
        if element not in ("f32", "f64"):
            view.copy_(round_to(view, element))
    return round_to(total, element)
