"""``arith``: floats in float64 (casts between float types are the identity), integers wrap at their width."""

from __future__ import annotations

import torch
from torch import Tensor

from numtrace.errors import UncoveredOp, UndefinedResult
from numtrace.evaluate.constants import constant_value
from numtrace.evaluate.extremes import maximum, minimum
from numtrace.evaluate.op import Op
from numtrace.evaluate.registry import evaluates
from numtrace.evaluate.types import NATIVE, tensor_type


@evaluates("arith.constant")
def constant(op: Op, machine) -> Tensor:
    value = op.cache.get("value")
    if value is None:
        value = op.cache["value"] = constant_value(op.attributes["value"], op.dtype)
    return value


@evaluates("arith.addf", "arith.addi")
def add(op: Op, machine, a: Tensor, b: Tensor) -> Tensor:
    return a ^ b if a.dtype == torch.bool else a + b  # i1 wraps at 2


@evaluates("arith.subf", "arith.subi")
def sub(op: Op, machine, a: Tensor, b: Tensor) -> Tensor:
    return a ^ b if a.dtype == torch.bool else a - b


@evaluates("arith.mulf", "arith.muli")
def mul(op: Op, machine, a: Tensor, b: Tensor) -> Tensor:
    return a * b


@evaluates("arith.divf")
def divf(op: Op, machine, a: Tensor, b: Tensor) -> Tensor:
    return a / b


@evaluates("arith.negf")
def negf(op: Op, machine, a: Tensor) -> Tensor:
    return -a


@evaluates("arith.remf")
def remf(op: Op, machine, a: Tensor, b: Tensor) -> Tensor:
    return torch.fmod(a, b)


@evaluates("arith.maximumf")
def maximumf(op: Op, machine, a: Tensor, b: Tensor) -> Tensor:
    return maximum(a, b)


@evaluates("arith.minimumf")
def minimumf(op: Op, machine, a: Tensor, b: Tensor) -> Tensor:
    return minimum(a, b)


@evaluates("arith.maxnumf")
def maxnumf(op: Op, machine, a: Tensor, b: Tensor) -> Tensor:
    return torch.fmax(a, b)


@evaluates("arith.minnumf")
def minnumf(op: Op, machine, a: Tensor, b: Tensor) -> Tensor:
    return torch.fmin(a, b)


@evaluates("arith.maxsi")
def maxsi(op: Op, machine, a: Tensor, b: Tensor) -> Tensor:
    return a & b if a.dtype == torch.bool else torch.maximum(a, b)  # a signed i1 is 0 or -1


@evaluates("arith.minsi")
def minsi(op: Op, machine, a: Tensor, b: Tensor) -> Tensor:
    return a | b if a.dtype == torch.bool else torch.minimum(a, b)


@evaluates("arith.maxui")
def maxui(op: Op, machine, a: Tensor, b: Tensor) -> Tensor:
    return torch.where(_sortable(a) >= _sortable(b), a, b)


@evaluates("arith.minui")
def minui(op: Op, machine, a: Tensor, b: Tensor) -> Tensor:
    return torch.where(_sortable(a) <= _sortable(b), a, b)


@evaluates("arith.andi")
def andi(op: Op, machine, a: Tensor, b: Tensor) -> Tensor:
    return a & b


@evaluates("arith.ori")
def ori(op: Op, machine, a: Tensor, b: Tensor) -> Tensor:
    return a | b


@evaluates("arith.xori")
def xori(op: Op, machine, a: Tensor, b: Tensor) -> Tensor:
    return a ^ b


@evaluates("arith.divsi")
def divsi(op: Op, machine, a: Tensor, b: Tensor) -> Tensor:
    return torch.div(*divisible(op.name, a, b), rounding_mode="trunc")


@evaluates("arith.floordivsi")
def floordivsi(op: Op, machine, a: Tensor, b: Tensor) -> Tensor:
    return torch.div(*divisible(op.name, a, b), rounding_mode="floor")


@evaluates("arith.ceildivsi")
def ceildivsi(op: Op, machine, a: Tensor, b: Tensor) -> Tensor:
    a, b = divisible(op.name, a, b)
    return torch.div(a, b, rounding_mode="trunc") + ((torch.fmod(a, b) != 0) & ((a < 0) == (b < 0)))


@evaluates("arith.remsi")
def remsi(op: Op, machine, a: Tensor, b: Tensor) -> Tensor:
    return torch.fmod(*divisible(op.name, a, b))


def divisible(name: str, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """The operands of a division, unless it is undefined: torch would raise, or take the process down."""
    if bool((b == 0).any()):
        raise UndefinedResult(name, "divides by zero")
    least = torch.iinfo(a.dtype).min
    if least < 0 and bool(((b == -1) & (a == least)).any()):
        raise UndefinedResult(name, "overflows: the quotient does not fit its type")
    return a, b


@evaluates("arith.extf", "arith.truncf")
def cast_float(op: Op, machine, a: Tensor) -> Tensor:
    # The exact meaning erases roundings between float types; index arithmetic keeps its types.
    return a.to(op.dtype)


@evaluates("arith.sitofp", "arith.extsi", "arith.index_cast")
def cast_signed(op: Op, machine, a: Tensor) -> Tensor:
    if a.dtype == torch.bool:  # i1 read as signed is 0 or -1
        a = -a.to(torch.int64)
    return a.to(op.dtype)


@evaluates("arith.uitofp", "arith.extui", "arith.index_castui")
def cast_unsigned(op: Op, machine, a: Tensor) -> Tensor:
    if a.dtype == torch.int64 and op.dtype.is_floating_point:
        # Halved (its lowest bit kept for the rounding) where it does not fit the signed range.
        half = ((a >> 1) & torch.iinfo(torch.int64).max) | (a & 1)
        return torch.where(a < 0, half.to(op.dtype) * 2, a.to(op.dtype))
    return unsigned(a).to(op.dtype)


def unsigned(a: Tensor) -> Tensor:
    """The unsigned value in int64; of an int64 its bits."""
    if a.dtype in (torch.int64, torch.bool):
        return a.to(torch.int64)
    return a.to(torch.int64) & ((1 << torch.iinfo(a.dtype).bits) - 1)


def _sortable(a: Tensor) -> Tensor:
    """Values whose signed order is the unsigned order of ``a``."""
    return a.to(torch.int8) if a.dtype == torch.bool else a ^ torch.iinfo(a.dtype).min


@evaluates("arith.trunci")
def trunci(op: Op, machine, a: Tensor) -> Tensor:
    if op.dtype == torch.bool:
        return (a & 1).bool()
    return a.to(op.dtype)


@evaluates("arith.fptosi")
def fptosi(op: Op, machine, a: Tensor) -> Tensor:
    return torch.trunc(a).to(op.dtype)


@evaluates("arith.fptoui")
def fptoui(op: Op, machine, a: Tensor) -> Tensor:
    whole = torch.trunc(a).double()
    if op.dtype == torch.int64:  # the upper half of the unsigned range wraps to the negative numbers
        whole = torch.where(whole >= 2.0**63, whole - 2.0**64, whole)
    return whole.to(torch.int64).to(op.dtype)


@evaluates("arith.bitcast")
def bitcast(op: Op, machine, a: Tensor) -> Tensor:
    source = NATIVE[tensor_type(op.operand_types[0])[1]]
    target = NATIVE[tensor_type(op.result_types[0])[1]]
    return a.to(source).view(target).to(op.dtype)


@evaluates("arith.cmpi")
def cmpi(op: Op, machine, a: Tensor, b: Tensor) -> Tensor:
    # Predicates as numbered by arith::CmpIPredicate: eq, ne, then lt, le, gt, ge signed and unsigned.
    predicate = op.integer("predicate")
    if predicate >= 6:
        a, b = _sortable(a), _sortable(b)
        predicate -= 4
    elif a.dtype == torch.bool and predicate > 1:
        a, b = -a.to(torch.int8), -b.to(torch.int8)
    return [torch.eq, torch.ne, torch.lt, torch.le, torch.gt, torch.ge][predicate](a, b)


@evaluates("arith.shli")
def shli(op: Op, machine, a: Tensor, b: Tensor) -> Tensor:
    return torch.bitwise_left_shift(a, b)


@evaluates("arith.shrsi")
def shrsi(op: Op, machine, a: Tensor, b: Tensor) -> Tensor:
    return torch.bitwise_right_shift(a, b)


@evaluates("arith.shrui")
def shrui(op: Op, machine, a: Tensor, b: Tensor) -> Tensor:
    if a.dtype != torch.int64:
        return torch.bitwise_right_shift(unsigned(a), b.to(torch.int64)).to(a.dtype)
    kept = torch.where(b == 0, -1, torch.bitwise_left_shift(torch.ones_like(a), 64 - b) - 1)
    return torch.bitwise_right_shift(a, b) & kept


@evaluates("arith.divui", "arith.remui", "arith.ceildivui")
def unsigned_division(op: Op, machine, a: Tensor, b: Tensor) -> Tensor:
    dividend, divisor = unsigned(a), unsigned(b)
    if bool((divisor == 0).any()):
        raise UndefinedResult(op.name, "divides by zero")
    if bool((dividend < 0).any()) or bool((divisor < 0).any()):
        raise UncoveredOp(op.name, "operands beyond the signed range of 64 bits")
    if op.name == "arith.remui":
        return torch.fmod(dividend, divisor).to(op.dtype)
    quotient = torch.div(dividend, divisor, rounding_mode="floor")
    if op.name == "arith.ceildivui":
        quotient = quotient + (torch.fmod(dividend, divisor) != 0)
    return quotient.to(op.dtype)
