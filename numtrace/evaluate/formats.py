"""Binary floating-point formats by their MLIR names, and the unit in the last place.

A format is given by its precision p (the hidden bit counts) and the exponents of its normal numbers,
emin to emax. Sources: IEEE 754-2019 table 3.5 (f16, f32, f64); OCP OFP8 revision 1.0 (f8E4M3FN, f8E5M2) and
OCP MX 1.0 (f6, f4); the LLVM ``APFloat`` semantics for the rest. The tests hold the table against the
``finfo`` of torch and ml_dtypes.

The ulp is Goldberg's, extended to real x, for |x| in [2^e, 2^(e+1)): ulp(x) = 2^(max(e, emin) − p + 1)
(J.-M. Muller, "On the definition of ulp(x)", INRIA RR-5504, 2005). x is the exact value, not its rounding:
so a correctly rounded result is never off by more than half an ulp.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class FloatFormat:
    """A binary floating-point format: precision in bits, exponent range, largest finite value."""

    precision: int
    emin: int
    emax: int
    max_finite: float

    @property
    def _binade(x: Tensor, fmt: FloatFormat) -> Tensor:
    """2^e per element, with e the exponent of x held within emin and emax.

    Positive float64 numbers are ordered as their bits are, so the exponent field alone, held between those of
    2^emin and 2^emax, is the answer: no logarithm, and zero and float64 subnormals need no special case.
    """
    low, high = (struct.unpack("<q", struct.pack("<d", 2.0**e))[0] for e in (fmt.emin, fmt.emax))
    return (x.view(torch.int64) & _EXPONENT_BITS).clamp_(low, high).view(torch.float64)


def ulp(x: Tensor, dtype: str) -> Tensor:
    """The unit in the last place of finite float64 values in ``dtype``; same shape.

    Values beyond the largest finite number get the ulp of that number's binade.
    """
    fmt = float_format(dtype)
    # eps · 2^e may be subnormal in float64, but it is a power of two no smaller than 2^−1074: exact
    return _binade(x, fmt) * fmt.eps


def in_ulps(error: Tensor, at: Tensor, dtype: str) -> Tensor:
    """|error| ≥ 0 in ulps of ``at``, both float64 and of one shape; infinite where float64 cannot hold it."""
    fmt = float_format(dtype)
    # divide by the binade first: an ulp may be as small as 2^−1074, whose inverse overflows
    return (error / _binade(at, fmt)).mul_(2.0 ** (fmt.precision - 1))
