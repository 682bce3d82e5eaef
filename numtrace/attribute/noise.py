"""Elements that no float64 evaluation knows: the least noise on the way moves them as far as they differ.

1/x of an x that is zero but for the order of a sum, a root there, what is left where equal numbers cancel and what
divides by it. No list of such places is kept. Where an element differs from the source's, its program is evaluated
again and again with noise of the size of float64's roundings on every value that was computed; an element that the
noise moves by as much as it differs, or by half of itself, has no digits to judge it by. What differs for a reason
stays where it is.

The idea, many evaluations with random roundings to count the digits that are sure, is that of discrete stochastic
arithmetic: J. Vignes, "Discrete stochastic arithmetic for validating results of numerical software", Numerical
Algorithms 37, 2004.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from numtrace.attribute.agreement import alike
from numtrace.attribute.magnitude import largest, sizes
from numtrace.attribute.near_ties import NOISE, Snapping
from numtrace.evaluate.machine import COMPUTING
from numtrace.evaluate.program import Op, Program

#: What rounds nothing: it hands on, chooses, changes a sign, or makes a whole number.
_EXACT = frozenset(
    (
        "arith.negf", "arith.maximumf", "arith.minimumf", "arith.maxnumf", "arith.minnumf", "arith.extf",
        "arith.truncf", "arith.sitofp", "arith.uitofp", "arith.select", "arith.constant", "arith.bitcast",
        "arith.remf", "math.absf", "math.floor", "math.ceil", "math.trunc", "math.round", "math.roundeven",
        "math.copysign", "linalg.fill", "linalg.copy", "linalg.transpose", "linalg.broadcast", "linalg.pack",
        "linalg.unpack", "linalg.yield", "linalg.index", "iree_linalg_ext.yield", "iree_linalg_ext.gather",
        "iree_linalg_ext.sort", "iree_linalg_ext.topk", "iree_linalg_ext.topk_v2", "iree_linalg_ext.im2col",
    )
)  # fmt: skip

#: Rounds in which no element moved before what is left counts as sure, of so many elements; of fewer, as many times
#: more. A decision goes the other way in every second one: it escapes with a probability of 2^-24.
_IDLE = 24
#: Rounds at most.
_ROUNDS = 64


class Noisy(Snapping):
    """A machine that adds noise to what it computes, but for the source's own values.

    Args:
        program, source, globals_: as of :class:`~numtrace.attribute.near_ties.Snapping`.
        seed: of the noise.
    """

    def __init__(
        self, program: Program, source: Sequence[Tensor], seed: int, globals_: dict[Any, Any] | None = None
    ):
        super().__init__(program, source, globals_)
        self._generator = torch.Generator().manual_seed(seed)

    def noisy(self, value: Any) -> Any:
        """``value`` with every float off by between half of and all of :data:`NOISE` of the elements' size."""
        if not isinstance(value, Tensor) or value.dtype != torch.float64:
            return value
        top, rest, edge = sizes(value)
        large, small = (value.new_tensor(NOISE * size) for size in (top, rest))
        draw = torch.rand(value.shape, dtype=torch.float64, generator=self._generator).sub_(0.5)
        return value + draw.add_(0.5 * torch.sign(draw)).mul_(torch.where(value.abs() > edge, large, small))

    def _settled(self, op: Op, value: Tensor) -> Tensor:
        placed = super()._settled(op, value)
        if placed is not value or not _rounds(op) or self._of_whole_numbers(op, value):
            return placed
        return self.noisy(value)

    def _of_whole_numbers(self, op: Op, made: Tensor) -> bool:
        """Whether an op rounds nothing because it computes whole numbers of whole numbers, as quantized programs do."""
        if op.name not in ("arith.addf", "arith.subf", "arith.mulf", "arith.divf"):
            return False
        return all(_whole(value) for value in (made, *(self.env[slot] for slot in op.operands)))


def _whole(value: Tensor) -> bool:
    """Whether all are whole numbers whose products float64 still holds."""
    return bool(((value == torch.round(value)) & (value.abs() < 2.0**26)).all())


def undecided(
    value: Tensor, snapped: Tensor, source: Tensor, evaluate: Callable[[int], Sequence[Tensor]], index: int
) -> Tensor:
    """A mask of the elements that differ from the source's by nothing but what float64 rounds; all of one shape.

    Args:
        value: as evaluated.
        snapped: as evaluated with the source's bits, as far as they are known.
        source: what it should be.
        evaluate: evaluates the results with the noise of a seed.
        index: which of them this is.
    """
    differing = ~alike(value, source)
    found = differing & alike(snapped, source)
    idle = 0
    for seed in range(_ROUNDS):
        left = int(differing.sum()) - int(found.sum())
        if not left or idle * min(left, _IDLE) >= _IDLE:
            break
        more = differing & ~found & _moved(evaluate(seed)[index], value, source)
        found |= more
        idle = 0 if bool(more.any()) else idle + 1
    return found


def _moved(sample: Tensor, value: Tensor, source: Tensor) -> Tensor:
    sample, value, source = (tensor.double() for tensor in (sample, value, source))
    still = (sample == value) | (torch.isnan(sample) & torch.isnan(value))
    way = (sample - value).abs()
    gap = (value - source).abs()
    half = torch.maximum(value.abs(), source.abs()).nan_to_num(nan=torch.inf) / 2
    # Beside a source that is no number a value is measured by itself, if it is more than noise.
    alone = torch.where(value.abs() > NOISE * largest(value), value.abs() / 2, torch.inf)
    enough = torch.where(torch.isfinite(source), torch.minimum(gap, half), alone)
    unlike = torch.isfinite(sample) != torch.isfinite(value)
    wild = ~torch.isfinite(sample) & ~torch.isfinite(value)  # one infinity for another, or NaN
    return ~still & (unlike | wild | (way >= enough))


def _rounds(op: Op) -> bool:
    found = op.cache.get("rounds")
    if found is None:
        found = op.cache["rounds"] = not op.typed and op.name.startswith(COMPUTING) and op.name not in _EXACT
        if found and op.regions and op.name.startswith("linalg."):
            inner = [inner for block in op.regions for inner in block.ops]
            found = op.cache["rounds"] = any(map(_rounds, inner))
    return found
