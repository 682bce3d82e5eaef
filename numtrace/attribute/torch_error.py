"""Torch's own error: the source program run by torch in a lower precision, against float64.

``f32``: every op in float32. ``bf16`` and ``f16``: every op in float32, with the operands of contractions
rounded to that type first: what autocast and IREE's demotion of contraction inputs both ask for. Torch's own
half-precision CPU kernels are not used: they accumulate as they like.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from numtrace.evaluate.machine import Machine
from numtrace.evaluate.op import Op
from numtrace.evaluate.program import Program
from numtrace.evaluate.types import NATIVE

#: Which operands of a torch op are contracted.
CONTRACTED = {
    "convolution": (0, 1),
    "mm": (0, 1),
    "bmm": (0, 1),
    "matmul": (0, 1),
    "linear": (0, 1),
    "addmm": (1, 2),
    "baddbmm": (1, 2),
    "_scaled_dot_product_flash_attention_for_cpu": (0, 1, 2),
    "scaled_dot_product_attention": (0, 1, 2),
}


def torch_outputs(
    program: Program, function: Op, arguments: Sequence[Any], globals_: Mapping[Any, Any], dtype: str
) -> list[Tensor]:
    """The outputs of a torch-dialect function, evaluated in ``dtype`` (``f32``, ``bf16`` or ``f16``)."""
    machine = Machine(program, dict(globals_))
    machine.float_dtype = torch.float32
    if dtype != "f32":
        machine.contracted = (NATIVE[dtype], CONTRACTED)
    return machine.run(function.regions[0], arguments)
