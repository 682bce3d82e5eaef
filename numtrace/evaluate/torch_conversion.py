"""``torch_c``: where a program is partly torch dialect and partly below it, as between two lowering passes.

Torch's scalars are Python numbers and its unsigned tensors unsigned; below, a scalar is a tensor without
dimensions, and integers have no sign of their own: the ops say how they read the bits.
"""

from __future__ import annotations

import re

import torch
from iree.compiler import ir
from torch import Tensor

from numtrace.evaluate.op import Op
from numtrace.evaluate.registry import evaluates

#: What the bits of an unsigned tensor are called below the torch dialect.
SIGNLESS = {
    torch.uint8: torch.int8,
    torch.uint16: torch.int16,
    torch.uint32: torch.int32,
    torch.uint64: torch.int64,
}
_UNSIGNED = {f"ui{signed.itemsize * 8}": unsigned for unsigned, signed in SIGNLESS.items()}


def signless(value: Tensor) -> Tensor:
    """Unsigned integers by their bits."""
    return value.view(SIGNLESS[value.dtype]) if value.dtype in SIGNLESS else value


def with_sign(value: Tensor, element: str) -> Tensor:
    """Bits as the unsigned integers that ``element`` says they are (``ui8``); any other value as it is."""
    unsigned = _UNSIGNED.get(element)
    return value.view(unsigned) if unsigned is not None and value.dtype == SIGNLESS[unsigned] else value


def torch_element(type_: ir.Type) -> str:
    """The element name of a tensor of the torch dialect: ``si64`` of ``!torch.vtensor<[2,3],si64>``."""
    return str(type_).rpartition(",")[2].removesuffix(">")


def torch_shape(type_: ir.Type) -> list[int | None] | None:
    """The sizes in a tensor type of the torch dialect, None for a dynamic one; None where it has no sizes."""
    found = re.search(r"vtensor<\[([0-9?,]*)\]", str(type_))
    if found is None:
        return None
    return [None if size == "?" else int(size) for size in found[1].split(",") if size]


@evaluates("torch_c.to_builtin_tensor")
def to_builtin_tensor(op: Op, machine, value: Tensor) -> Tensor:
    return signless(value)


@evaluates("torch_c.from_builtin_tensor")
def from_builtin_tensor(op: Op, machine, value: Tensor) -> Tensor:
    return with_sign(value, torch_element(op.result_types[0]))


@evaluates("torch_c.to_i1", "torch_c.to_i64", "torch_c.to_f64")
def to_scalar(op: Op, machine, value: bool | int | float) -> Tensor:
    return torch.tensor(value, dtype=op.dtype)


@evaluates("torch_c.from_i1", "torch_c.from_i64", "torch_c.from_f64")
def from_scalar(op: Op, machine, value: Tensor) -> bool | int | float:
    return value.item()
