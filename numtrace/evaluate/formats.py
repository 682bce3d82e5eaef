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
    def eps(self) -> float:
        """2^(1−p): the distance from 1 to the next number up, an ulp of 1."""
        return 2.0 ** (1 - self.precision)

    @property
    def unit_roundoff(self) -> float:
        """u = 2^−p: the greatest relative error of rounding a value in the normal range to nearest."""
        return 2.0**-self.precision

    @property
    def min_normal(self) -> float:
        """2^emin: what is smaller is subnormal, or zero where denormals are flushed."""
        return 2.0**self.emin

    @property
    def min_subnormal(self) -> float:
        """2^(emin−p+1): the smallest positive number, and the smallest ulp."""
        return 2.0 ** (self.emin - self.precision + 1)


FORMATS: dict[str, FloatFormat] = {
    "f64": FloatFormat(53, -1022, 1023, (2 - 2.0**-52) * 2.0**1023),
    "f32": FloatFormat(24, -126, 127, (2 - 2.0**-23) * 2.0**127),
    "tf32": FloatFormat(11, -126, 127, (2 - 2.0**-10) * 2.0**127),
    "bf16": FloatFormat(8, -126, 127, (2 - 2.0**-7) * 2.0**127),
    "f16": FloatFormat(11, -14, 15, 65504.0),
    "f8E5M2": FloatFormat(3, -14, 15, 57344.0),
    "f8E5M2FNUZ": FloatFormat(3, -15, 15, 57344.0),
    "f8E4M3": FloatFormat(4, -6, 7, 240.0),
    "f8E4M3FN": FloatFormat(4, -6, 8, 448.0),  # the top code is NaN: 480 is not a number of it
    "f8E4M3FNUZ": FloatFormat(4, -7, 7, 240.0),
    "f8E4M3B11FNUZ": FloatFormat(4, -10, 4, 30.0),
    "f8E3M4": FloatFormat(5, -2, 3, 15.5),
    "f6E3M2FN": FloatFormat(3, -2, 4, 28.0),
    "f6E2M3FN": FloatFormat(4, 0, 2, 7.5),
    "f4E2M1FN": FloatFormat(2, 0, 2, 6.0),
}

_NOT_FLOAT = re.compile(r"[su]?i\d+|index")
_EXPONENT_BITS = 0x7FF0_0000_0000_0000  # of a float64


def is_float_type(dtype: str) -> bool:
    """True for a format of the table, False for an MLIR integer type; ValueError for any other name."""
    if dtype in FORMATS:
        return True
    if _NOT_FLOAT.fullmatch(dtype):
        return False
    raise ValueError(
        f"unknown element type {dtype!r}; give an MLIR integer type or one of {', '.join(FORMATS)}"
    )


def float_format(dtype: str) -> FloatFormat:
    """The format with an MLIR type name such as ``bf16``; ValueError if it is not a float type."""
    if not is_float_type(dtype):
        raise ValueError(f"{dtype} is an integer type; give a float type, one of {', '.join(FORMATS)}")
    return FORMATS[dtype]


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
