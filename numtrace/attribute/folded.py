"""Tensors that the compiler computed: what the source makes of scalars alone, such as a table of sines.

IREE evaluates them at compile time, in the program's types, and stores the result in a global that carries the
location of the source op. That it is rounded is no change of the mathematics, as long as it is not further from the
exact value than torch's own in the same type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from iree.compiler import ir
from torch import Tensor

from numtrace.attribute.layout import layouts
from numtrace.attribute.magnitude import largest
from numtrace.attribute.worth import MARGIN
from numtrace.errors import UncoveredOp
from numtrace.evaluate.complex_numbers import as_parts, part_type
from numtrace.evaluate.formats import float_format, ulp
from numtrace.evaluate.machine import TERMINATORS, Machine
from numtrace.evaluate.op import Op, captures
from numtrace.evaluate.program import Printed, Program
from numtrace.evaluate.types import is_float, tensor_type

#: Units in the last place of the largest element that are always rounding: a scalar truncated, a product rounded.
_ALWAYS = 4.0


@dataclass(frozen=True, slots=True)
class Folded:
    """A global of the compiled program: the source op it was computed from, its exact value, how far it is off."""

    stamp: int
    exact: Tensor
    max_abs: float


def folded_constants(
    flow: Program, source: Program, function: Op, stored: Mapping[str, Tensor]
) -> dict[str, Folded]:
    """The globals of ``flow`` that were folded from ``function`` of ``source``, and are rounded but right.

    ``stored`` are the values of the globals by symbol. One that is further off than rounding explains is left out.
    """
    symbols = {
        name: (op.stamps, tensor_type(op.attributes["type"].value)[1])
        for name, op in flow.globals.items()
        if name in stored
        and op.stamps
        and isinstance(op.attributes.get("initial_value"), (ir.DenseElementsAttr, Printed))
    }
    found = {
        name: table
        for name, (stamps, element) in symbols.items()
        if element.startswith("complex") and (table := _roots_of_unity(stamps[0], stored[name], element))
    }
    symbols = {name: (stamps, element) for name, (stamps, element) in symbols.items() if is_float(element)}
    wanted = {stamp for stamps, _ in symbols.values() for stamp in stamps}
    if not wanted:
        return found
    exact = data_free_values(source, function, wanted, torch.float64)
    own = data_free_values(source, function, wanted, torch.float32)
    for name, (stamps, element) in symbols.items():
        for stamp in stamps:
            pairs = zip(exact.get(stamp, ()), own.get(stamp, ()), strict=True)
            if folded := next(
                filter(None, (_folded(stamp, stored[name], element, *pair) for pair in pairs)), None
            ):
                found[name] = folded
                break
    return found


def _folded(stamp: int, stored: Tensor, element: str, exact: Tensor, own: Tensor) -> Folded | None:
    if not exact.is_floating_point() or not exact.numel():
        return None
    exact = exact.double()
    stored = stored.double()
    size = torch.tensor(largest(exact), dtype=torch.float64)
    allowed = MARGIN * float((own.double() - exact).abs().max()) + _ALWAYS * float(ulp(size, element))
    for layout in layouts(tuple(exact.shape), tuple(stored.shape), None):
        placed = layout.place(exact, stored)
        gap = float((placed - stored).abs().max())
        if gap <= allowed:
            return Folded(stamp, placed, gap)
    return None


def _roots_of_unity(stamp: int, stored: Tensor, element: str) -> Folded | None:
    """The table of a Fourier transform, which a lowering computes by itself: of e^(2πi·m/n) for whole m, with n the
    larger of its dimensions. None for any other table."""
    turn = 2 * torch.pi / max(stored.shape, default=1)
    angles = torch.round(stored.to(torch.complex128).angle() / turn) * turn
    exact = torch.polar(torch.ones_like(angles), angles)
    gap = float(as_parts(exact - stored).abs().max()) if stored.numel() else 0.0
    allowed = _ALWAYS * float_format(part_type(element)).eps
    return Folded(stamp, exact, gap) if 0 < gap <= allowed else None


def data_free_values(
    program: Program, function: Op, stamps: set[int], dtype: torch.dtype
) -> dict[int, list[Tensor]]:
    """What the ops with ``stamps`` make, floats evaluated in ``dtype``, of those that no argument flows into."""
    machine = Machine(program)
    machine.float_dtype = dtype
    found: dict[int, list[Tensor]] = {}
    for op in function.regions[0].ops:
        if op.name in TERMINATORS or not machine.env.keys() >= captures(op):
            continue
        if op.name.startswith("util.global"):
            continue  # a parameter: nothing is folded from it
        dead, op.dead = op.dead, []
        try:
            machine.step(op)
        except UncoveredOp:
            continue
        finally:
            op.dead = dead
        made = [machine.env[slot] for slot in op.results if isinstance(machine.env.get(slot), Tensor)]
        if op.stamps and op.stamps[0] in stamps and made:
            found.setdefault(op.stamps[0], []).extend(made)
    return found
