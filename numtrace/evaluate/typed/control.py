"""Loops in a dispatch, whose way no rounding decides: values go through with their bounds."""

from __future__ import annotations

from typing import Any

from numtrace.evaluate.control import in_parallel
from numtrace.evaluate.op import Op
from numtrace.evaluate.typed.moves import insert_slice
from numtrace.evaluate.typed.registry import carries


@carries("scf.forall")
def forall(op: Op, machine, *operands: Any) -> tuple[Any, ...]:
    return in_parallel(op, machine, operands, insert_slice)
