"""``arith``: floats in float64 (casts between float types are the identity), integers wrap at their width."""

from __future__ import annotations

import torch
from torch import Tensor

from numtrace.errors import UncoveredOp
from numtrace.evaluate.constants import constant_value
from numtrace.evaluate.program import Op
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
    return a + b


@evaluates("arith.subf", "arith.subi")
def sub(op: Op, machine, a: Tensor, b: Tensor) -> Tensor:
    return a - b


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
    return torch.maximum(a, b)


@evaluates("arith.minimumf")
def minimumf(op: Op, machine, a: Tensor, b: Tensor) -> Tensor:
    return torch.minimum(a, b)


@evaluates("arith.maxnumf")
def maxnumf(op: Op, machine, a: Tensor, b: Tensor) -> Tensor:
    return torch.fmax(a, b)


@evaluates("arith.minnumf")
def minnumf(op: Op, machine, a: Tensor, b: Tensor) -> Tensor:
    return torch.fmin(a, b)


@evaluates("arith.maxsi")
def maxsi(op: Op, machine, a: Tensor, b: Tensor) -> Tensor:
    return torch.maximum(a, b)


@evaluates("arith.minsi")
def minsi(op: Op, machine, a: Tensor, b: Tensor) -> Tensor:
    return torch.minimum(a, b)


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
    return torch.div(a, b, rounding_mode="trunc")


@evaluates("arith.floordivsi")
def floordivsi(op: Op, machine, a: Tensor, b: Tensor) -> Tensor:
    return torch.div(a, b, rounding_mode="floor")


@evaluates("arith.ceildivsi")
def ceildivsi(op: Op, machine, a: Tensor, b: Tensor) -> Tensor:
    return -torch.div(-a, b, rounding_mode="floor")


@evaluates("arith.remsi")
def remsi(op: Op, machine, a: Tensor, b: Tensor) -> Tensor:
    return torch.fmod(a, b)


@evaluates("arith.select")
def select(op: Op, machine, condition: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return torch.where(condition, a, b)


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
    if a.dtype == torch.int64:
        if op.dtype.is_floating_point:
            high = torch.where(a < 0, 2.0**64, 0.0).double()
            return (a.double() + high).to(op.dtype)
        return a
    width = {torch.bool: 1, torch.int8: 8, torch.int16: 16, torch.int32: 32}[a.dtype]
    return (a.to(torch.int64) & ((1 << width) - 1)).to(op.dtype)


@evaluates("arith.trunci")
def trunci(op: Op, machine, a: Tensor) -> Tensor:
    if op.dtype == torch.bool:
        return (a & 1).bool()
    return a.to(op.dtype)


@evaluates("arith.fptosi")
def fptosi(op: Op, machine, a: Tensor) -> Tensor:
    return torch.trunc(a).to(op.dtype)


@evaluates("arith.bitcast")
def bitcast(op: Op, machine, a: Tensor) -> Tensor:
    source = NATIVE[tensor_type(op.operand_types[0])[1]]
    target = NATIVE[tensor_type(op.result_types[0])[1]]
    return a.to(source).view(target).to(op.dtype)


_ORDERED = {
    1: torch.eq,
    2: torch.gt,
    3: torch.ge,
    4: torch.lt,
    5: torch.le,
}


@evaluates("arith.cmpf")
def cmpf(op: Op, machine, a: Tensor, b: Tensor) -> Tensor:
    # Predicates as numbered by arith::CmpFPredicate: 1-7 ordered, 8-14 the unordered ones.
    predicate = op.int("predicate")
    nan = torch.isnan(a) | torch.isnan(b)
    if predicate in (0, 15):
        return torch.full(nan.shape, predicate == 15)
    if predicate in (7, 14):
        return ~nan if predicate == 7 else nan
    ordered = predicate if predicate < 8 else predicate - 7
    result = torch.ne(a, b) & ~nan if ordered == 6 else _ORDERED[ordered](a, b)
    return result if predicate < 8 else result | nan


@evaluates("arith.cmpi")
def cmpi(op: Op, machine, a: Tensor, b: Tensor) -> Tensor:
    predicate = op.int("predicate")
    if predicate >= 6:  # unsigned: flip the sign bit, compare signed
        if a.dtype == torch.bool:
            a, b = a.to(torch.int8), b.to(torch.int8)
        else:
            lowest = torch.iinfo(a.dtype).min
            a, b = a ^ lowest, b ^ lowest
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


@evaluates("arith.divui", "arith.remui", "arith.ceildivui")
def unsigned_division(op: Op, machine, a: Tensor, b: Tensor) -> Tensor:
    if bool((a < 0).any()) or bool((b <= 0).any()):
        raise UncoveredOp(op.name, "operands that are negative when read as signed")
    if op.name == "arith.remui":
        return torch.fmod(a, b)
    if op.name == "arith.ceildivui":
        return torch.div(a + b - 1, b, rounding_mode="floor")
    return torch.div(a, b, rounding_mode="floor")
