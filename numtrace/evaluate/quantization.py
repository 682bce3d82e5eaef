"""``iree_linalg_ext.quantize_affine`` and ``dequantize_affine``, as IREE takes them apart before dispatches are formed.

Source: IREE 3.13, the IR after ``DecomposeAggregatedOpPass``; tests/evaluate/test_quantization.py runs its code.
"""

from __future__ import annotations

import torch
from torch import Tensor

from numtrace.errors import UncoveredOp
from numtrace.evaluate.affine import Domain, align, linear_map, loop_sizes, loop_view
from numtrace.evaluate.op import Op
from numtrace.evaluate.registry import evaluates
from numtrace.evaluate.types import integer_width, tensor_type


@evaluates("iree_linalg_ext.quantize_affine")
def quantize(op: Op, machine, *operands: Tensor) -> Tensor:
    """``x / scale`` to the nearest whole number, halves to even, plus the zero point, clamped; of NaN the minimum."""
    (value, scale, *zero_point), order = _by_loops(op, operands)
    codes = torch.round(value / scale)
    if zero_point:
        codes = codes + _code(op, zero_point[0], 2, "zp_unsigned")
    low, high = (torch.tensor(float(op.integer(f"quant_{end}")), dtype=codes.dtype) for end in ("min", "max"))
    # The upper half of an unsigned range is stored as negative numbers.
    codes = torch.fmin(torch.fmax(codes, low), high).to(torch.int64).to(op.dtype)
    return codes.permute(order)


@evaluates("iree_linalg_ext.dequantize_affine")
def dequantize(op: Op, machine, *operands: Tensor) -> Tensor:
    """``(code - zero point) · scale``; each of the two is signed unless the op says otherwise."""
    (codes, scale, *zero_point), order = _by_loops(op, operands)
    codes = _code(op, codes, 0, "input_unsigned")
    if zero_point:
        codes = codes - _code(op, zero_point[0], 2, "zp_unsigned")
    return (codes.double() * scale).permute(order)


def _code(op: Op, value: Tensor, operand: int, unsigned: str) -> Tensor:
    """Integers as the op reads their bits: with the attribute ``unsigned`` as unsigned ones."""
    value = value.to(torch.int64)
    if unsigned in op.attributes:
        value = value & ((1 << integer_width(tensor_type(op.operand_types[operand])[1])) - 1)
    return value


def _by_loops(op: Op, operands: tuple[Tensor, ...]) -> tuple[list[Tensor], list[int]]:
    """The inputs with a dimension for each loop, so that they broadcast; and the loop of each of the result's."""
    attributes = list(op.attributes["indexing_maps"])
    maps = [linear_map(attribute.value) for attribute in attributes]
    shapes = [tuple(value.shape) for value in operands]
    domain = Domain.whole(loop_sizes(maps, shapes, attributes[0].value.n_dims))
    order = [form.coefficients[0][0] if form.is_loop else -1 for form in maps[-1]]
    if sorted(order) != list(domain.loops):
        raise UncoveredOp(op.name, "a result whose map is no permutation of the loops")
    inputs = zip(operands[:-1], maps[:-1], strict=True)
    return [align(*loop_view(value, forms, domain), domain.loops) for value, forms in inputs], order
