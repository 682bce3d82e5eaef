"""Rounding to the types of the IR, and what a rounding can cost."""

from __future__ import annotations

import torch
from torch import Tensor

from numtrace.evaluate.formats import float_format
from numtrace.evaluate.types import NATIVE

#: Below these, a result may be zero. IREE's threads flush denormals, of operands and results alike: in f32 arithmetic,
#: and in bf16, which is computed in f32. f16 is computed in f32 too, where its denormals are normal numbers; but
#: where the CPU has no conversion to f16, IREE's own makes zero of them (seen with 5.5e-5 and
#: ``--iree-llvmcpu-target-cpu=generic``). Of f64 it is the smallest number that a bound, in float32, can be.
_FLUSHED = {"f32": 2.0**-126, "bf16": 2.0**-126, "f16": 2.0**-14, "f64": 2.0**-149}


def unit(element: str) -> float:
    """u = 2^-p: the greatest relative error of one rounding to ``element``."""
    return float_format(element).unit_roundoff


def smallest(element: str) -> float:
    """The greatest absolute error of a result below the normal range: all of it where it may be flushed."""
    return _FLUSHED.get(element, float_format(element).min_subnormal / 2)


def flushable(value: Tensor) -> Tensor | None:
    """A mask of the elements that count as zero where denormals are flushed; None when there are none."""
    pattern = _PATTERNS.get(value.dtype)
    if pattern is None:
        return None
    integers, sign, least = pattern
    flat = value.reshape(-1).view(integers)
    for at in range(0, flat.numel(), _BLOCK):
        # Less one, a zero is the greatest of all, and a denormal still less than the least normal number.
        block = (flat[at : at + _BLOCK] & ~sign).sub_(1).bitwise_and_(~sign)
        if int(block.amin()) < least - 1:
            size = value.abs()
            return (size < 2.0**-126) & (size > 0)
    return None


#: Elements that are looked at in one go, so that they stay in the caches.
_BLOCK = 1 << 17

#: Of a type with denormals that are flushed: integers of its size, the bit of the sign, the least normal number.
_PATTERNS = {
    torch.float32: (torch.int32, -(1 << 31), 1 << 23),
    torch.bfloat16: (torch.int16, -(1 << 15), 1 << 7),
}


def round_to(value: Tensor, element: str) -> Tensor:
    """``value`` (float64 or float32) rounded once to nearest-even, in the torch dtype of ``element``."""
    native = NATIVE[element]
    if value.dtype == native:
        return value
    if value.dtype == torch.float64 and native not in (torch.float32, torch.float64):
        value = _to_odd(value)
    if native == torch.float8_e4m3fn:
        # Torch makes the largest number of what is too large, infinity included; MLIR has a NaN for it, which in this
        # type is the code after that number.
        return torch.where(value.abs() > _E4M3FN_TIE, torch.nan, value).to(native)
    return value.to(native)


#: Half-way from the largest number, 448, to the NaN; a tie goes to the even code, which is the number's.
_E4M3FN_TIE = 464.0


def _to_odd(value: Tensor) -> Tensor:
    """float64 to float32 rounding to odd, after which one more rounding (to 22 bits or fewer) is as if direct.

    Source: S. Boldo and G. Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using
    rounding to odd", IEEE Trans. Computers 57(4), 2008.
    """
    nearest = value.float()
    gap = value - nearest.double()
    bits = nearest.view(torch.int32)
    adjust = (gap != 0) & (bits & 1 == 0) & torch.isfinite(nearest)
    if not bool(adjust.any()):
        return nearest
    outward = (gap > 0) == (nearest > 0)
    # At zero (an underflow) the way out follows the sign of what is lost.
    moved = torch.where(
        nearest == 0,
        torch.where(gap > 0, 1, -0x7FFF_FFFF),
        bits + torch.where(outward, 1, -1).to(torch.int32),
    ).to(torch.int32)
    return torch.where(adjust, moved, bits).view(torch.float32)
