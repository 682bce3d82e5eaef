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
from functools import partial
from typing import Any

import torch
from torch import Tensor

from numtrace.attribute.agreement import alike
from numtrace.attribute.magnitude import largest, sizes
from numtrace.attribute.near_ties import SAMPLES, Moment, Snapping, Ties, Values
from numtrace.evaluate.complex_numbers import as_parts
from numtrace.evaluate.machine import COMPUTING, Machine
from numtrace.evaluate.nest import Nest
from numtrace.evaluate.op import Op
from numtrace.evaluate.program import Program

#: What two evaluations in float64 are apart, of the largest element: winograd transforms and forty layers leave up to
#: 2^-45. A changed eps or threshold of a network is larger than this, or lost in rounding.
DRIFT = 2.0**-43
#: The noise of one op, 2^5 roundings of float64: what it becomes is measured.
NOISE = 2.0**-48

#: What rounds nothing: it hands on, chooses, changes a sign, or makes a whole number.
EXACT_OPS = frozenset(
    (
        "arith.negf", "arith.maximumf", "arith.minimumf", "arith.maxnumf", "arith.minnumf", "arith.extf",
        "arith.truncf", "arith.sitofp", "arith.uitofp", "arith.select", "arith.constant", "arith.bitcast",
        "arith.remf", "math.absf", "math.floor", "math.ceil", "math.trunc", "math.round", "math.roundeven",
        "math.copysign", "linalg.fill", "linalg.copy", "linalg.transpose", "linalg.broadcast", "linalg.pack",
        "linalg.unpack", "linalg.yield", "linalg.index", "iree_linalg_ext.yield", "iree_linalg_ext.gather",
        "iree_linalg_ext.sort", "iree_linalg_ext.topk", "iree_linalg_ext.topk_v2", "iree_linalg_ext.im2col",
    )
)  # fmt: skip

_SCALAR = ("arith.", "math.")

#: Rounds in which no element moved before what is left counts as sure. A decision goes the other way in every second
#: one: it escapes with a probability of 2^-24. Of :data:`_MANY` elements it takes no more rounds than would let one
#: decision escape with 2^-6 that all of them hang on. Without any decision, noise that matters is seen in each round.
_IDLE, _IDLE_OF_MANY, _IDLE_SMOOTH = 24, 6, 2
_MANY = 24
#: Rounds at most.
_ROUNDS = 64
#: The seeds of the evaluations that ties are measured by: none of a round's.
SAMPLING = range(_ROUNDS, _ROUNDS + SAMPLES)


class Noisy(Snapping):
    """A machine that adds noise to what it rounds, but for the source's own values.

    Args:
        program, ties, globals_: as of :class:`~numtrace.attribute.near_ties.Snapping`.
        seed: of the noise.
        stream: which of the noises of one seed.
    """

    def __init__(
        self,
        program: Program,
        ties: Ties,
        seed: int,
        globals_: dict[Any, Any] | None = None,
        *,
        stream: int = 0,
    ):
        super().__init__(program, ties, globals_)
        self.seed, self._generator = seed, _generator(seed, stream)

    def _settled(self, op: Op, moment: Moment, value: Tensor) -> Tensor:
        placed, near = self._ties.settled(op, moment, value)
        if not _rounds(op):
            return placed
        off = placed + self._noise(op, value)
        return off if near is None else torch.where(near, placed, off)

    def _noise(self, op: Op, value: Tensor) -> Tensor:
        size = _rounded(op, self.program, [self.env[slot] for slot in op.operands], value)
        # A scalar op makes the same of the same bits, in whatever program: so does its noise, and ties stay ties.
        scalar = op.name.startswith(_SCALAR)
        draw = _hashed(value, self.seed) if scalar else _signed(value, self._generator)
        return draw.mul_(size * NOISE)


class Sampling(Noisy):
    """An evaluation with noise alone, that notes in ``ties`` what becomes of the source's values."""

    #: The largest number so far.
    _scale = 0.0

    def _settled(self, op: Op, moment: Moment, value: Tensor) -> Tensor:
        noise = self._noise(op, value) if _rounds(op) else 0.0
        off = value if isinstance(noise, float) else value + noise
        self._scale = max(self._scale, largest(off))
        self._ties.note(op, moment, off, noise.abs() if isinstance(noise, Tensor) else noise, self._scale)
        return off


def measured(
    source: Values,
    program: Program,
    evaluate: Callable[[Callable[[dict[Any, Any]], Noisy]], object],
) -> Ties:
    """The ties of a program with ``source``; ``evaluate`` is given how to make a machine from globals."""
    ties = Ties(source)
    for seed in SAMPLING if source else ():
        evaluate(partial(Sampling, program, ties, seed))
    return ties


def signed_draw(value: Tensor, seed: int, stream: int) -> Tensor:
    """From -1 to -1/2 or from 1/2 to 1 for each element; of one seed there are many streams."""
    return _signed(value, _generator(seed, stream))


def _signed(value: Tensor, generator: torch.Generator) -> Tensor:
    # On the CPU wherever the value is: the same draw for the same seed.
    draw = (
        torch.rand(value.shape, dtype=torch.float64, generator=generator, device="cpu")
        .to(value.device)
        .sub_(0.5)
    )
    return draw.add_(0.5 * torch.sign(draw))


def _generator(seed: int, stream: int) -> torch.Generator:
    return torch.Generator("cpu").manual_seed((stream << 8) + seed)


def _hashed(value: Tensor, seed: int) -> Tensor:
    """From -1 to -1/2 or from 1/2 to 1, the same for the same bits. The mixing is that of splitmix64 (G. L. Steele et
    al., "Fast splittable pseudorandom number generators", OOPSLA 2014), in int64 that wraps."""
    step = (seed + 1) * 0x9E3779B97F4A7C15 % 2**64
    bits = value.contiguous().view(torch.int64) + (step - 2**64 if step >= 2**63 else step)
    for shift, factor in ((30, -0x40A7B892E31B1A47), (27, -0x6B2FB644ECCEEE15)):
        bits = (bits ^ ((bits >> shift) & ((1 << (64 - shift)) - 1))) * factor
    bits = bits ^ ((bits >> 31) & ((1 << 33) - 1))
    size = ((bits >> 11) & ((1 << 52) - 1)).double() * 2.0**-53 + 0.5
    return torch.where(bits < 0, -size, size)


def element_sizes(value: Tensor) -> Tensor:
    """The size of the elements, by which a sum of many is off."""
    top, rest, edge = sizes(value)
    return torch.where(value.abs() > edge, value.new_tensor(top), value.new_tensor(rest))


def _rounded(op: Op, program: Program, operands: Sequence[Any], value: Tensor) -> Tensor:
    """What the rounding errors of an op are in proportion to, per element; zero where it rounds nothing."""
    size = _size(op, program, [each for each in operands if isinstance(each, Tensor)], value)
    return torch.where(torch.isfinite(value) & torch.isfinite(size), size, 0.0)


def _size(op: Op, program: Program, operands: Sequence[Tensor], value: Tensor) -> Tensor:
    if op.name in ("arith.addf", "arith.subf"):
        a, b = (each.double() for each in operands)
        b = b if op.name == "arith.addf" else -b
        return torch.where(_sum_error(a, b, value) == 0, 0.0, torch.maximum(a.abs(), b.abs()))
    if op.name == "arith.mulf":
        return torch.where(_product_error(operands[0], operands[1], value) == 0, 0.0, value.abs())
    if op.name == "arith.divf":
        return torch.where(_product_error(value, operands[1], operands[0]) == 0, 0.0, value.abs())
    if op.name.startswith("complex."):
        # Complex numbers have no noise themselves: what is made of them has it, of the size of both parts.
        return torch.broadcast_to(operands[0].abs(), value.shape)
    if op.name.startswith(_SCALAR) or op.name == "linalg.softmax":
        return value.abs()
    nest: Nest | None = op.cache.get("nest")  # of its evaluation, where it is a structured op
    if nest is not None and not nest.reductions:
        return torch.zeros_like(value)  # the ops of its region had theirs
    if all(_whole(each) for each in (*operands, value)):
        return torch.zeros_like(value)  # as quantized programs do
    if nest is not None and nest.joins == ["arith.addf"] and (nest.factors or not nest.contributing):
        # What is left where all cancels says nothing of how far a sum may be off, nor does another sum's size.
        return _in_absolute_terms(op, program, operands)
    return element_sizes(value)


def _in_absolute_terms(op: Op, program: Program, operands: Sequence[Tensor]) -> Tensor:
    """A sum of products, or of elements, with all that goes into it made positive."""
    assert op.fn is not None
    made = op.fn(op, Machine(program), *(each.double().abs() for each in operands))
    return made[0] if isinstance(made, tuple) else made


def _sum_error(a: Tensor, b: Tensor, total: Tensor) -> Tensor:
    """a + b - total, exactly. Source: D. E. Knuth, The Art of Computer Programming, volume 2, 4.2.2, theorem B."""
    other = total - a
    return (a - (total - other)) + (b - other)


def _product_error(a: Tensor, b: Tensor, product: Tensor) -> Tensor:
    """a·b - product, exactly, of a product that is rounded from it. Source: T. J. Dekker, "A floating-point technique
    for extending the available precision", Numerische Mathematik 18, 1971."""
    (high_a, low_a), (high_b, low_b) = _halves(a.double()), _halves(b.double())
    return ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b


def _halves(value: Tensor) -> tuple[Tensor, Tensor]:
    """``value`` as two numbers of half the digits."""
    scaled = value * (2.0**27 + 1)
    high = scaled - (scaled - value)
    return high, value - high


def _whole(value: Tensor) -> bool:
    """Whether all are whole numbers whose products float64 still holds."""
    value = as_parts(value)
    return bool(((value == torch.round(value)) & (value.abs() < 2.0**26)).all())


def undecided(
    value: Tensor,
    snapped: Tensor,
    source: Tensor,
    evaluate: Callable[[int], Sequence[Tensor]],
    index: int,
    decides: bool = True,
) -> Tensor:
    """A mask of the elements that differ from the source's by nothing but what float64 rounds; all of one shape.

    Args:
        value: as evaluated.
        snapped: as evaluated with the source's bits, as far as they are known.
        source: what it should be.
        evaluate: evaluates the results with the noise of a seed.
        index: which of them this is.
        decides: whether decisions are taken on the way.
    """
    differing = ~alike(value, source)
    found = differing & alike(snapped, source)
    idle = 0
    for seed in range(_ROUNDS):
        left = int(differing.sum()) - int(found.sum())
        enough = _IDLE if left < _MANY else _IDLE_OF_MANY
        if not left or idle >= (enough if decides else _IDLE_SMOOTH):
            break
        more = differing & ~found & _moved(evaluate(seed)[index], value, source)
        found |= more
        idle = 0 if bool(more.any()) else idle + 1
    return found


def visible(value: Tensor, source: Tensor, error: Tensor) -> Tensor:
    """A mask of the elements that are further apart than half a unit of f32: of the source's largest, or of the largest
    ``error`` that the compiled program has anyway, where everything cancels.

    Noise must not acquit what the user can see: that the program does not know it does not mean that the source does
    not, which an eps may keep away from what cancels.
    """
    value, source = value.double(), source.double()
    gap = (value - source).abs().nan_to_num(torch.inf, torch.inf)
    return (value != source) & (gap > 2.0**-24 * max(largest(source), largest(error)))


def _moved(sample: Tensor, value: Tensor, source: Tensor) -> Tensor:
    if not value.is_floating_point():
        return sample == source  # where noise takes a decision the other way, it makes what the source has
    sample, value, source = (tensor.double() for tensor in (sample, value, source))
    still = (sample == value) | (torch.isnan(sample) & torch.isnan(value))
    way = (sample - value).abs()
    gap = (value - source).abs()
    half = torch.maximum(value.abs(), source.abs()).nan_to_num(nan=torch.inf) / 2
    # Beside a source that is no number a value is measured by itself, if it is more than noise: near a pole, a
    # logarithm moves little where its argument moves by all of itself. What is sure moves 2^33 times less.
    alone = torch.where(value.abs() > DRIFT * largest(value), value.abs() * 2.0**-10, torch.inf)
    enough = torch.where(torch.isfinite(source), torch.minimum(gap, half), alone)
    # Of two numbers it tells nothing that a sample is none; where one of them is none itself, it does.
    finite = torch.isfinite(value) & torch.isfinite(source)
    unlike = ~finite & (torch.isfinite(sample) != torch.isfinite(value))
    wild = ~torch.isfinite(sample) & ~torch.isfinite(value)  # one infinity for another, or NaN
    return ~still & (unlike | wild | (torch.isfinite(sample) & (way >= enough)))


def _rounds(op: Op) -> bool:
    found = op.cache.get("rounds")
    if found is None:
        found = op.cache["rounds"] = (
            not op.typed and op.name.startswith(COMPUTING) and op.name not in EXACT_OPS
        )
        if found and op.regions and op.name.startswith("linalg."):
            inner = [inner for block in op.regions for inner in block.ops]
            found = op.cache["rounds"] = any(map(_rounds, inner))
    return found
