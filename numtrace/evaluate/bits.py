"""``math`` on the bits of an integer: how many are set, how many are none before the first and after the last."""

from __future__ import annotations

import torch
from torch import Tensor

from numtrace.evaluate.arith import unsigned
from numtrace.evaluate.op import Op
from numtrace.evaluate.registry import evaluates


@evaluates("math.ctpop")
def population(op: Op, machine, a: Tensor) -> Tensor:
    return _count(unsigned(a)).to(a.dtype)


@evaluates("math.ctlz")
def leading_zeros(op: Op, machine, a: Tensor) -> Tensor:
    """The width where no bit is set: MLIR leaves nothing open. As an i1 that is true, 1."""
    filled = unsigned(a)
    for distance in (1, 2, 4, 8, 16, 32):  # every bit below the first; a sign, which is one, comes along
        filled = filled | (filled >> distance)
    return (_width(a) - _count(filled)).to(a.dtype)


@evaluates("math.cttz")
def trailing_zeros(op: Op, machine, a: Tensor) -> Tensor:
    """The width where no bit is set, as for the leading ones."""
    bits = unsigned(a)
    below = ~bits & (bits - 1)
    return _count(below).clamp(max=_width(a)).to(a.dtype)


def _width(a: Tensor) -> int:
    return 1 if a.dtype == torch.bool else torch.iinfo(a.dtype).bits


def _count(bits: Tensor) -> Tensor:
    """The bits of an int64 that are set: counted in pairs, in fours, in bytes, and the bytes summed in the top one.

    The shifts may bring in copies of the sign: the masks take these out again.
    """
    pairs = bits - ((bits >> 1) & 0x5555555555555555)
    fours = (pairs & 0x3333333333333333) + ((pairs >> 2) & 0x3333333333333333)
    octets = (fours + (fours >> 4)) & 0x0F0F0F0F0F0F0F0F
    return (octets * 0x0101010101010101) >> 56
