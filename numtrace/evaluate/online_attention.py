"""``iree_linalg_ext.online_attention``: attention over some of the keys, added to what the keys before made."""

from __future__ import annotations

import torch
from torch import Tensor

from numtrace.evaluate.affine import Linear, align, linear_map, loop_view
from numtrace.evaluate.contraction import contract
from numtrace.evaluate.linalg_ext import Attention
from numtrace.evaluate.op import Op
from numtrace.evaluate.registry import evaluates


@evaluates("iree_linalg_ext.online_attention")
def online_attention(op: Op, machine, *operands: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The weighted sum so far, the largest score and the sum of weights of each row: each with the new keys in it.

    Milakov and Gimelshein, "Online normalizer calculation for softmax" (2018): with m the new maximum, what was
    summed before is multiplied by exp(m_before - m), and the new weights are exp(score - m).
    """
    query, key, value, scale, *mask, joined, most, total = operands
    shapes = [tuple(tensor.shape) for tensor in (query, key, value, *mask, joined)]
    at = Attention(op, shapes, -2)
    of_most, of_total = (
        linear_map(attribute.value) for attribute in list(op.attributes["indexing_maps"])[-2:]
    )
    scores = at.masked_scores(op, machine, query, key, scale, mask)
    before = align(*loop_view(most, of_most, at.whole), at.loops)
    largest = torch.maximum(before, scores.amax(dim=at.keys, keepdim=True))
    factor, weights = torch.exp(before - largest), torch.exp(scores - largest)
    summed = align(*loop_view(total, of_total, at.whole), at.loops) * factor
    summed = summed + weights.sum(dim=at.keys, keepdim=True)
    rows = [loop for position, loop in enumerate(at.loops) if position not in at.keys]
    factor, largest, summed = (tensor.squeeze(at.keys) for tensor in (factor, largest, summed))
    outer = sorted(form.coefficients[0][0] for form in at.out)
    start = joined * _laid_out(align(factor, rows, outer), outer, at.out)
    new = contract((weights, at.scores), (value, at.value), (start, at.out), at.whole)
    return new, _laid_out(largest, rows, of_most), _laid_out(summed, rows, of_total)


def _laid_out(value: Tensor, loops: list[int], forms: tuple[Linear, ...]) -> Tensor:
    """``value`` over ``loops`` as the map ``forms``, which names each of them once, has it."""
    return value.permute([loops.index(form.coefficients[0][0]) for form in forms])
