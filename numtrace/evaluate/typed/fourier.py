"""A stage of a Fourier transform as its code has it: a product of complex numbers, then a sum and a difference.

Source: IREE, ``FftOp::generateScalarImplWithCoeffBuf``. Without coefficients the code takes sines and cosines of its
own: no bound.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from numtrace.errors import UncoveredOp
from numtrace.evaluate.fourier import checked_stage, halves, joined
from numtrace.evaluate.op import Op
from numtrace.evaluate.registry import lookup
from numtrace.evaluate.typed.arithmetic import correctly_rounded, of_product, of_sum, values_of
from numtrace.evaluate.typed.registry import carries
from numtrace.evaluate.typed.value import Typed, element_of


@carries("iree_linalg_ext.fft")
def fft(op: Op, machine, stage: Any, *operands: Any) -> tuple[Typed, Typed]:
    if len(operands) != 4:
        raise UncoveredOp(op.name, "no error bound is known without coefficients")
    _, w_re, w_im, re, im = values_of(op, [stage, *operands])
    number, element = checked_stage(op, stage, re.exact), element_of(op)
    (a_re, b_re), (a_im, b_im) = (_halves(value, number) for value in (re, im))

    def product(x: Typed, y: Typed) -> Typed:
        return correctly_rounded(torch.mul, of_product, (x, y), element)

    def sum_(x: Typed, y: Typed) -> Typed:
        return correctly_rounded(torch.add, of_sum, (x, y), element)

    def difference(x: Typed, y: Typed) -> Typed:
        return correctly_rounded(torch.sub, of_sum, (x, y), element)

    t_re = difference(product(w_re, b_re), product(w_im, b_im))
    t_im = sum_(product(w_im, b_re), product(w_re, b_im))
    # The exact meaning has its own opinion of the coefficients.
    exact = lookup(op.name)(op, machine, stage, *(value.exact for value in (w_re, w_im, re, im)))
    return (
        replace(_joined(sum_(a_re, t_re), difference(a_re, t_re)), exact=exact[0]),
        replace(_joined(sum_(a_im, t_im), difference(a_im, t_im)), exact=exact[1]),
    )


def _halves(value: Typed, stage: int) -> tuple[Typed, Typed]:
    return value.map(lambda lane: halves(lane, stage)[0]), value.map(lambda lane: halves(lane, stage)[1])


def _joined(first: Typed, second: Typed) -> Typed:
    exact, typed, bound = (
        joined(getattr(first, lane), getattr(second, lane)) for lane in ("exact", "typed", "error")
    )
    return Typed(exact, typed, bound, first.same and second.same)
