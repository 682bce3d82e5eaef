"""``iree_linalg_ext.fft``: one stage of a Fourier transform, on real and imaginary parts in tensors of their own.

A stage s of the radix-2 transform (J. W. Cooley and J. W. Tukey, "An algorithm for the machine calculation of complex
Fourier series", Mathematics of Computation 19, 1965) takes blocks of m = 2^s along the last dimension, each of two
halves a and b, to a + w·b and a - w·b with w_j = e^(-2πij/m). The order of the elements is the program's own business.
"""

from __future__ import annotations

import torch
from torch import Tensor

from numtrace.errors import UndefinedResult
from numtrace.evaluate.complex_numbers import as_parts
from numtrace.evaluate.formats import float_format
from numtrace.evaluate.op import Op
from numtrace.evaluate.registry import evaluates
from numtrace.evaluate.types import tensor_type


def halves(value: Tensor, stage: int) -> tuple[Tensor, Tensor]:
    """The first and the second halves of the blocks of a stage: (..., blocks, m/2) each, views."""
    blocks = value.reshape(*value.shape[:-1], -1, 2, 2 ** (stage - 1))
    return blocks[..., 0, :], blocks[..., 1, :]


def joined(first: Tensor, second: Tensor) -> Tensor:
    """What :func:`halves` took apart."""
    return torch.stack([first, second], dim=-2).flatten(-3)


def checked_stage(op: Op, stage: Tensor, value: Tensor) -> int:
    """The stage as a number.

    Raises:
        UndefinedResult: its blocks do not fill the last dimension.
    """
    number = int(stage)
    if number < 1 or value.shape[-1] % 2**number:
        raise UndefinedResult(op.name, f"stage {number} of {value.shape[-1]} elements")
    return number


@evaluates("iree_linalg_ext.fft")
def fft(op: Op, machine, stage: Tensor, *operands: Tensor) -> tuple[Tensor, Tensor]:
    """Coefficients that are the w_j but for the rounding to their type are these; others are taken as they are."""
    *coefficients, re, im = operands
    number = checked_stage(op, stage, re)
    angles = torch.arange(2 ** (number - 1), dtype=torch.float64) * (-2 * torch.pi / 2**number)
    w = torch.polar(torch.ones_like(angles), angles)
    if coefficients:
        stored = torch.complex(*coefficients)
        # That they are stored in a narrow type is rounding, as it is of anything else that is.
        if bool((as_parts(stored - w).abs() > float_format(tensor_type(op.operand_types[1])[1]).eps).any()):
            w = stored
    a, b = halves(torch.complex(re, im), number)
    made = as_parts(joined(a + w * b, a - w * b))
    return made[..., 0], made[..., 1]
