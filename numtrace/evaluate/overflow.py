"""Where float64 itself is too narrow: a finite operand whose result has no float64.

``exp(1000)`` is infinite in float64 and ``exp(-1000)`` zero, in exact arithmetic they are neither. What follows from
such a value, such as ``log(1 / (1 + exp(1000)))``, says nothing about the exact meaning of a program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from numtrace.evaluate.op import Op


def _never(*operands: Tensor) -> Tensor:
    return torch.zeros((), dtype=torch.bool)


def _is_zero(value: Tensor) -> Tensor:
    return value == 0


#: By op: of finite operands, where an infinite result is exact (a pole), and where a zero is.
_EXACT: dict[str, tuple[Callable[..., Tensor], Callable[..., Tensor]]] = {
    "math.exp": (_never, _never),
    "math.exp2": (_never, _never),
    "math.expm1": (_never, _is_zero),
    "math.sinh": (_never, _is_zero),
    "math.cosh": (_never, _never),
    "math.powf": (lambda a, b: a == 0, lambda a, b: a == 0),
    "math.fma": (_never, lambda a, b, c: torch.ones((), dtype=torch.bool)),
    "arith.addf": (_never, lambda a, b: torch.ones((), dtype=torch.bool)),
    "arith.subf": (_never, lambda a, b: torch.ones((), dtype=torch.bool)),
    "arith.mulf": (_never, lambda a, b: (a == 0) | (b == 0)),
    "arith.divf": (lambda a, b: b == 0, lambda a, b: a == 0),
}


@dataclass(slots=True)
class Watch:
    """What a machine notes while it evaluates, where one is asked to.

    ``beyond_float64`` are the stamps of ops with results that float64 does not hold. ``misfits`` are reshapes whose
    dynamic sizes do not fit their operand: their stamps, how many elements they read, and of how many.
    """

    beyond_float64: set[int] = field(default_factory=set)
    misfits: dict[tuple[int, ...], tuple[int, int]] = field(default_factory=dict)


def leaves_float64(op: Op, operands: Sequence[Any], result: Any) -> bool:
    """Whether some element of ``result`` overflowed to an infinity or underflowed to zero."""
    if op.name not in _EXACT or not isinstance(result, Tensor) or result.dtype != torch.float64:
        return False
    pole, zero = _EXACT[op.name]
    finite = torch.ones((), dtype=torch.bool)
    for operand in operands:
        finite = finite & torch.isfinite(operand)
    lost = (torch.isinf(result) & ~pole(*operands)) | ((result == 0) & ~zero(*operands))
    return bool((lost & finite).any())
