"""How accurate IREE's code for a function is: measured on compiled programs, not taken from any source.

The table is the output of ``python bench/ulps.py --write``: llvm-cpu for the host's CPU and for a generic one without
vectorisation, exhaustive for f16 and bf16, sampled for f32 and a quarter added.
Measured with IREE 3.13.0rc20261016, torch 2.13.0+cpu, x86_64 (AMD EPYC, AVX-512).

**What a row says.** Where x is in one of the ``accurate`` intervals, the result is within ``ulps`` units in the last
place (of the result's type, at the exact value), and what ``argument`` relative error of x makes to first order:

    |compiled(x) - f(x)|  <=  ulps · ulp(f(x))  +  argument · |x · f'(x)|

The second term is zero for most functions. sin, cos and tan need it because they reduce their argument by multiples
of pi with few digits, in f32 for every type; exp2 and powf because they are exp of a product that was rounded first.
Being relative to x it excuses nothing near 0. And of sin, cos and tan it is accepted only as far as it leaves half of
the digits of a value of size 1, up to |x| of some 4000 in f32: they go on to lose their digits from there (about
0.5·2^-24·|x| with FMA, 1.5·2^-24·|x| without), down to none.

**What it does not excuse.** In the ``inaccurate`` intervals IREE's code is off by more than ``LIMIT`` ulps, some
of it by everything: asinh(-5000) is -inf, sin of 1e5 has lost most digits. The bound to hold the compiler to is the
accurate one there too. What was measured there is kept, to tell a function that is known to be so from other faults.

x stands for the argument; for powf for its base, for atan2 and remf for the quotient of their arguments (powf's
``argument`` is a relative change of its exponent). tan was measured up to 8192, and not where a pole is within the
error of the argument. f32 arguments below the normal range are flushed to zero by IREE, f16 ones by some functions:
the intervals do not speak of them. ``below`` is the greatest error of results below the normal range, which are
flushed as well. Comments give an example of each mismatch in NaN and infinities, and of what is flushed.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

#: Beyond this many ulps an interval counts as inaccurate. cbrt in f32 is off by 12 everywhere, without a bad
#: spot: the worst of the functions that are as good as they get.
LIMIT = 16.0


@dataclass(frozen=True, slots=True)
class Interval:
    """From ``low`` to ``high``, both included: what was measured there, in ulps; inf for no digit right or NaN."""

    low: float
    high: float
    ulps: float


@dataclass(frozen=True, slots=True)
class Accuracy:
    """One function in one element type; see the module's text for the meaning of the figures."""

    accurate: tuple[Interval, ...]
    inaccurate: tuple[Interval, ...] = ()
    argument: float = 0.0
    below: float = 0.0

    @property
    def ulps(self) -> float:
        """The bound that holds in every accurate interval."""
        return max(interval.ulps for interval in self.accurate)

    def ulps_at(self, x: Tensor) -> Tensor | float:
        """The bound for each x, float32 of the same shape, or the one that holds for all of ``x``; in no accurate
        interval, the bound that holds in all."""
        if (all_of_them := self._ulps_of_all(x)) is not None:
            return all_of_them
        bound = torch.full(x.shape, -1.0, dtype=torch.float32, device=x.device)
        for interval in self.accurate:
            inside = (x >= interval.low) & (x <= interval.high)
            bound = torch.where(inside, bound.clamp(min=interval.ulps), bound)
        return torch.where(bound < 0, self.ulps, bound)

    def _ulps_of_all(self, x: Tensor) -> float | None:
        """The one bound, where all of ``x`` lies in an interval that no other one shares a point of."""
        if len(self.accurate) == 1 or not x.numel():
            return self.ulps
        low, high = (float(end) for end in torch.aminmax(x))
        met = [interval for interval in self.accurate if interval.low <= high and low <= interval.high]
        inside = len(met) == 1 and met[0].low <= low and high <= met[0].high
        return met[0].ulps if inside else None

    def known_at(self, x: Tensor) -> Tensor:
        """Where the function is known to be inaccurate: a mask of the same shape."""
        known = torch.zeros(x.shape, dtype=torch.bool, device=x.device)
        for interval in self.inaccurate:
            known |= (x >= interval.low) & (x <= interval.high)
        return known


def accuracy(name: str, element: str) -> Accuracy | None:
    """The row for an op such as ``math.exp`` and an element type such as ``bf16``; None: not measured."""
    return MEASURED.get(name, {}).get(element)


def _row(accurate: list, inaccurate: list, argument: float = 0.0, below: float = 0.0) -> Accuracy:
    intervals = [tuple(Interval(*figures) for figures in part) for part in (accurate, inaccurate)]
    return Accuracy(intervals[0], intervals[1], argument, below)


_INF = float("inf")

# fmt: off
MEASURED: dict[str, dict[str, Accuracy]] = {
    "math.exp": {
        "f32": _row([(-88, 88, 1.3), (88, 96, 6.9)], [], below=1.2e-38),
        # a result below the normal range is flushed: f(-103.277) = 0, exact 1.40342e-45
        "f16": _row([(-10, 12, 0.51)], [], below=6.1e-05),
        # a result below the normal range is flushed: f(-16.625) = 0, exact 6.02357e-08
        "bf16": _row([(-88, 96, 0.5)], [], below=1e-38),
        # a result below the normal range is flushed: f(-92) = 0, exact 1.10894e-40
    },
    "math.expm1": {
        "f32": _row([(-_INF, 88, 3), (88, 96, 6.9)], []),
        "f16": _row([(-_INF, 12, 0.51)], [], below=6.2e-05),
        # a denormal argument is flushed: f(-6.09756e-05) = -0, exact -6.09737e-05
        # a result below the normal range is flushed: f(-6.10352e-05) = -0, exact -6.10333e-05
        "bf16": _row([(-_INF, 96, 0.5)], []),
    },
    "math.log": {
        "f32": _row([(1.17549435e-38, _INF, 1.1)], []),
        # a denormal argument is flushed: f(1.17547e-38) = -inf, exact -87.3366
        "f16": _row([(6.10351562e-05, _INF, 0.51)], []),
        "bf16": _row([(1.17549435e-38, _INF, 0.5)], []),
        # a denormal argument is flushed: f(-1.16631e-38) = -inf, exact nan
    },
    "math.log1p": {
        "f32": _row([(-1, _INF, 3.1)], []),
        "f16": _row([(-1, _INF, 0.51)], [], below=6.2e-05),
        # a denormal argument is flushed: f(-6.09756e-05) = -0, exact -6.09774e-05
        # a result below the normal range is flushed: f(6.10352e-05) = 0, exact 6.10333e-05
        "bf16": _row([(-1, _INF, 0.5)], []),
    },
    "math.sqrt": {
        "f32": _row([(1.17549435e-38, _INF, 0.63)], []),
        # a denormal argument is flushed: f(1.17547e-38) = 0, exact 1.08419e-19
        "f16": _row([(6.10351562e-05, _INF, 0.5)], []),
        "bf16": _row([(1.17549435e-38, _INF, 0.5)], []),
        # a denormal argument is flushed: f(-1.16631e-38) = -0, exact nan
    },
    "math.tanh": {
        "f32": _row([(-_INF, -9, 0.64), (-9, -0.000396728516, 5.7), (-0.000396728516,
            0.000396728516, 0.9), (0.000396728516, 9, 5.4), (9, _INF, 0.64)], []),
        # a denormal argument is flushed: f(1.17547e-38) = 0, exact 1.17547e-38
        "f16": _row([(-_INF, _INF, 0.5)], [], below=8e-14),
        # a denormal argument is flushed: f(-6.09756e-05) = -0, exact -6.09756e-05
        "bf16": _row([(-_INF, _INF, 0.5)], []),
        # a denormal argument is flushed: f(-1.16631e-38) = -0, exact -1.16631e-38
    },
    "math.sinh": {
        "f32": _row([(-88, -0.25, 2.9), (-0.25, -0.03125, 16), (0.03125, 0.25, 16), (0.25, 88,
            2.8)], [(-96, -88, 1.1e+07), (-0.03125, 0.03125, 2.1e+07), (88, 96, 1.1e+07)],
            below=1.2e-38),
        # a denormal argument is flushed: f(1.17547e-38) = 0, exact 1.17547e-38
        "f16": _row([(-11, -1, 1.5), (-1, -0.03125, 12), (0.03125, 1, 12), (1, 11, 1.5)], [(-12,
            -11, 1.1e+03), (-0.03125, 0.03125, 2.1e+03), (11, 12, 1.1e+03)], below=6.2e-05),
        # a denormal argument is flushed: f(-6.09756e-05) = 0, exact -6.09756e-05
        "bf16": _row([(-88, -7.62939453e-06, 1), (-7.62939453e-06, -4.17232513e-07, 16),
            (4.17232513e-07, 7.62939453e-06, 16), (7.62939453e-06, 88, 1)], [(-96, -88, 88),
            (-4.17232513e-07, 4.17232513e-07, 2.6e+02), (88, 96, 88)], below=1.4e-38),
        # a denormal argument is flushed: f(-1.16631e-38) = 0, exact -1.16631e-38
    },
    "math.cosh": {
        "f32": _row([(-88, 88, 1.9)], [(-96, -88, 1.1e+07), (88, 96, 1.1e+07)]),
        "f16": _row([(-11, 11, 1.1)], [(-12, -11, 1.1e+03), (11, 12, 1.1e+03)]),
        "bf16": _row([(-88, 88, 0.5)], [(-96, -88, 88), (88, 96, 88)]),
    },
    "math.sin": {
        "f32": _row([(-4096, -0.5625, 3.4), (-0.5625, -0.140625, 15), (-1.76324153e-38, 4096, 3)],
            [(-_INF, -4096, _INF), (-0.140625, -1.76324153e-38, 5.6e+37), (4096, _INF, _INF)],
            argument=1.1e-07),
        # a denormal argument is flushed: f(1.17547e-38) = 0, exact 1.17547e-38
        "f16": _row([(-61440, -0.000122070312, 1), (-0.000122070312, -6.10351562e-05, 3),
            (6.10351562e-05, 61440, 0.55)], [(-_INF, -61440, _INF), (61440, _INF, _INF)],
            argument=8.5e-08, below=6.2e-05),
        # a denormal argument is flushed: f(-6.09756e-05) = -0, exact -6.09756e-05
        # a result below the normal range is flushed: f(-710) = -0, exact -6.02887e-05
        "bf16": _row([(-1048576, -1.52587891e-05, 1), (-1.52587891e-05, -1.43051147e-06, 14),
            (-1.76324153e-38, 983040, 0.55)], [(-_INF, -1048576, _INF), (-1.43051147e-06,
            -1.76324153e-38, 6.8e+32), (983040, _INF, _INF)], argument=7.5e-08),
        # a denormal argument is flushed: f(-1.16631e-38) = 0, exact -1.16631e-38
    },
    "math.cos": {
        "f32": _row([(-4096, 4096, 3.6)], [(-_INF, -4096, _INF), (4096, _INF, _INF)],
            argument=1.3e-07),
        "f16": _row([(-61440, 61440, 0.55)], [(-_INF, -61440, _INF), (61440, _INF, _INF)],
            argument=8.1e-08, below=4.6e-05),
        # a result below the normal range is flushed: f(-532.5) = -0, exact 4.52165e-05
        "bf16": _row([(-1048576, 1048576, 0.55)], [(-_INF, -1048576, _INF), (1048576, _INF, _INF)],
            argument=8e-08),
    },
    "math.tan": {
        "f32": _row([(-4096, -0.46875, 5.1), (-1.76324153e-38, 3840, 2.5)], [(-8192, -4096, _INF),
            (-0.46875, -1.76324153e-38, _INF), (3840, 8192, _INF)], argument=1.3e-07),
        # a denormal argument is flushed: f(1.17547e-38) = 0, exact 1.17547e-38
        "f16": _row([(-9216, 9216, 3.1)], [], argument=8.5e-08, below=6.2e-05),
        # a denormal argument is flushed: f(-6.09756e-05) = -0, exact -6.09756e-05
        # a result below the normal range is flushed: f(-710) = -0, exact -6.02887e-05
        "bf16": _row([(-9216, -3.05175781e-05, 0.55), (-3.05175781e-05, -1.43051147e-06, 14),
            (-1.76324153e-38, 9216, 0.55)], [(-1.43051147e-06, -1.76324153e-38, 6.8e+32)],
            argument=3.6e-08),
        # a denormal argument is flushed: f(-1.16631e-38) = 0, exact -1.16631e-38
    },
    "math.asin": {
        "f32": _row([(-1.125, -0.9375, 9.5), (-0.9375, 0.9375, 2.9), (0.9375, 1.125, 9.5)], []),
        # a denormal argument is flushed: f(1.17547e-38) = 0, exact 1.17547e-38
        "f16": _row([(-1.125, -0.6875, 2.3), (-0.6875, 0.6875, 0.56), (0.6875, 1.125, 2.3)], [],
            below=4e-14),
        # a denormal argument is flushed: f(-6.09756e-05) = -0, exact -6.09756e-05
        "bf16": _row([(-1.125, 1.125, 0.5)], []),
        # a denormal argument is flushed: f(-1.16631e-38) = -0, exact -1.16631e-38
    },
    "math.acos": {
        "f32": _row([(-1.125, 1, 1.4)], []),
        "f16": _row([(-1.125, 1, 1.6)], []),
        "bf16": _row([(-1.125, 1, 0.5)], []),
    },
    "math.atan": {
        "f32": _row([(-_INF, -0.6875, 1.6), (-0.5625, -0.46875, 13), (-0.46875, 0.46875, 2.8),
            (0.46875, 0.5625, 13), (0.6875, _INF, 1.6)], [(-0.6875, -0.5625, 51), (0.5625, 0.6875,
            51)]),
        # a denormal argument is flushed: f(1.17547e-38) = 0, exact 1.17547e-38
        "f16": _row([(-_INF, _INF, 0.51)], [], below=8e-14),
        # a denormal argument is flushed: f(-6.09756e-05) = -0, exact -6.09756e-05
        "bf16": _row([(-_INF, _INF, 0.5)], []),
        # a denormal argument is flushed: f(-1.16631e-38) = -0, exact -1.16631e-38
    },
    "math.asinh": {
        "f32": _row([(-5.5, -0.125, 20), (0.125, 0.5625, 19), (0.5625, 1.84467441e+19, 2.7)],
            [(-_INF, -5.5, 4.5e+44), (-0.125, 0.125, 2.1e+07), (1.84467441e+19, _INF, 1.2e+44)],
            below=1.2e-38),
        # a denormal argument is flushed: f(1.17547e-38) = 0, exact 1.17547e-38
        "f16": _row([(-5.5, -0.125, 14), (0.125, 1.25, 7.9), (1.25, 256, 1.1)], [(-_INF, -5.5,
            1.7e+07), (-0.125, 0.125, 2.1e+03), (256, _INF, 1.7e+07)], below=6.2e-05),
        # a denormal argument is flushed: f(-6.09756e-05) = 0, exact -6.09756e-05
        # a result below the normal range is flushed: f(-6.10352e-05) = 0, exact -6.10352e-05
        # wrong at infinity or NaN: f(-inf) = nan, exact -inf
        "bf16": _row([(-4096, -576, 12), (-576, -7.62939453e-06, 0.97), (-7.62939453e-06,
            -4.76837158e-07, 8), (9.53674316e-07, 1.52587891e-05, 8.1), (1.52587891e-05,
            1.84467441e+19, 0.5)], [(-_INF, -4096, 5.5e+39), (-4.76837158e-07, 9.53674316e-07,
            2.6e+02), (1.84467441e+19, _INF, 1.4e+39)], below=1.4e-38),
        # a denormal argument is flushed: f(-1.16631e-38) = 0, exact -1.16631e-38
        # wrong at infinity or NaN: f(-inf) = nan, exact -inf
    },
    "math.acosh": {
        "f32": _row([(1.125, 1.84467441e+19, 2.9)], [(1, 1.125, 1.3e+03), (1.84467441e+19, _INF,
            1.2e+44)]),
        # not NaN outside of the domain: f(-6.64604e+35) = inf, exact nan
        "f16": _row([(1, 1.625, 8.1), (1.625, 256, 1.1)], [(256, _INF, 1.7e+07)]),
        # not NaN outside of the domain: f(-65504) = inf, exact nan
        "bf16": _row([(1, 1.84467441e+19, 0.5)], [(1.84467441e+19, _INF, 1.4e+39)]),
        # not NaN outside of the domain: f(-3.38953e+38) = inf, exact nan
    },
    "math.atanh": {
        "f32": _row([(-1, -0.03125, 17), (0.03125, 1, 20)], [(-0.03125, 0.03125, 2.1e+07)],
            below=1.2e-38),
        # a denormal argument is flushed: f(1.17547e-38) = 0, exact 1.17547e-38
        "f16": _row([(-1, -0.03125, 13), (0.03125, 1, 16)], [(-0.03125, 0.03125, 2.1e+03)],
            below=6.2e-05),
        # a denormal argument is flushed: f(-6.09756e-05) = 0, exact -6.09756e-05
        "bf16": _row([(-1, -7.62939453e-06, 1), (-7.62939453e-06, -4.17232513e-07, 16),
            (4.47034836e-07, 7.62939453e-06, 16), (7.62939453e-06, 1, 1)], [(-4.17232513e-07,
            4.47034836e-07, 2.6e+02)], below=1.4e-38),
        # a denormal argument is flushed: f(-1.16631e-38) = 0, exact -1.16631e-38
    },
    "math.erf": {
        "f32": _row([(-_INF, _INF, 5.3)], []),
        # a denormal argument is flushed: f(1.17547e-38) = 0, exact 1.32637e-38
        "f16": _row([(-_INF, _INF, 0.51)], []),
        # a denormal argument is flushed: f(-5.40614e-05) = -0, exact -6.10018e-05
        "bf16": _row([(-_INF, _INF, 0.5)], []),
        # a denormal argument is flushed: f(-1.16631e-38) = 0, exact -1.31604e-38
    },
    "math.exp2": {
        "f32": _row([(-128, 128, 2.5)], [], argument=7.6e-08, below=1.2e-38),
        # a result below the normal range is flushed: f(-148.999) = 0, exact 1.40205e-45
        "f16": _row([(-14, 16, 1.7)], [], argument=0.00078, below=6.1e-05),
        # a result below the normal range is flushed: f(-23.9844) = 0, exact 6.02537e-08
        "bf16": _row([(-128, 128, 0.5)], [], below=1.2e-38),
        # a result below the normal range is flushed: f(-132) = 0, exact 1.83671e-40
    },
    "math.log2": {
        "f32": _row([(1.17549435e-38, _INF, 2)], []),
        # a denormal argument is flushed: f(1.17547e-38) = -inf, exact -126
        "f16": _row([(6.10351562e-05, _INF, 0.5)], []),
        "bf16": _row([(1.17549435e-38, _INF, 0.5)], []),
        # a denormal argument is flushed: f(-1.16631e-38) = -inf, exact nan
    },
    "math.rsqrt": {
        "f32": _row([(1.17549435e-38, _INF, 1.9)], []),
        # a denormal argument is flushed: f(1.17547e-38) = inf, exact 9.22348e+18
        "f16": _row([(6.10351562e-05, _INF, 1.4)], []),
        "bf16": _row([(1.17549435e-38, _INF, 0.5)], []),
        # a denormal argument is flushed: f(-1.16631e-38) = -inf, exact nan
    },
    "math.cbrt": {
        "f32": _row([(-_INF, _INF, 16)], []),
        # a denormal argument is flushed: f(1.17547e-38) = 0, exact 2.27372e-13
        "f16": _row([(-_INF, _INF, 0.5)], []),
        # wrong at infinity or NaN: f(-inf) = nan, exact -inf
        "bf16": _row([(-_INF, _INF, 0.5)], []),
        # a denormal argument is flushed: f(-1.16631e-38) = -0, exact -2.2678e-13
        # wrong at infinity or NaN: f(-inf) = nan, exact -inf
    },
    "math.powf": {
        "f32": _row([(1.17549435e-38, 8.50705917e+37, 2.8)], [(-8.50705917e+37, -1.17549435e-38,
            _INF)], argument=1.7e-07, below=1.2e-38),
        # a result below the normal range is flushed: f(1.47656, -227.172) = 0, exact 3.55389e-39
        # wrong where the exact value is infinite: f(-7.65167e-27, -2) = nan, exact 1.708e+52
        "f16": _row([(6.10351562e-05, 18432, 2.2)], [(-18432, -6.10351562e-05, _INF)],
            argument=0.00095, below=6.2e-05),
        # a result below the normal range is flushed: f(0.516602, 15.9375) = 0, exact 2.68176e-05
        # wrong at infinity or NaN: f(1, -inf) = nan, exact 1
        # wrong where the exact value is infinite: f(-0.281982, -9) = nan, exact -88715.9
        "bf16": _row([(1.17549435e-38, 9.57044157e+37, 0.51)], [(-9.57044157e+37, -1.17549435e-38,
            _INF)], below=1.2e-38),
        # a result below the normal range is flushed: f(1.47656, -227) = 0, exact 3.80044e-39
        # wrong where the exact value is infinite: f(-7.67404e-27, -2) = nan, exact 1.69806e+52
    },
    "math.atan2": {
        "f32": _row([(-_INF, -0.6875, 2), (-0.5625, -0.4375, 14), (-0.4375, -1.17549435e-38, 2.1),
            (1.17549435e-38, 0.46875, 3.2), (0.46875, 0.5625, 14), (0.6875, _INF, 2)], [(-0.6875,
            -0.5625, 52), (-1.17549435e-38, 1.17549435e-38, 3.3e+07), (0.5625, 0.6875, 52)],
            below=1.2e-38),
        # a result below the normal range is flushed: f(7.41406e-21, 1.18925e+20) = 0, exact 6.23423e-41
        "f16": _row([(-_INF, _INF, 0.51)], [], below=6.2e-05),
        # a result below the normal range is flushed: f(-0.0047226, 94.75) = -0, exact -4.98427e-05
        "bf16": _row([(-_INF, -1.17549435e-38, 0.51), (1.17549435e-38, _INF, 0.51)],
            [(-1.17549435e-38, 1.17549435e-38, 4.1e+02)], below=1.2e-38),
        # a result below the normal range is flushed: f(-0.00494385, 1.13192e+36) = -0, exact -4.36766e-39
    },
    "arith.remf": {
        "f32": _row([(-_INF, _INF, 0)], []),
        "f16": _row([(-_INF, _INF, 0)], [], below=6.1e-05),
        # a result below the normal range is flushed: f(-104.125, 0.0076828) = -0, exact -7.62939e-06
        "bf16": _row([(-_INF, _INF, 0)], []),
    },
}
# fmt: on
