"""Where a program jumps with its data: comparisons, roundings to whole numbers, edges of a function's domain."""

from __future__ import annotations

from collections.abc import Iterator

from numtrace.evaluate.dispatch import entry_point
from numtrace.evaluate.op import Block, Op, reads, walk
from numtrace.evaluate.program import Program

#: Ops that jump at a threshold, or have an edge there: of a zero that is -1e-17 the root is no number, of one that is
#: 1e-17 it is 3e-9.
_JUMPS = frozenset(
    (
        "math.floor", "math.ceil", "math.trunc", "math.round", "math.roundeven", "math.copysign", "math.sqrt",
        "math.log", "math.log2", "math.log10", "math.acos", "math.asin", "math.acosh", "math.atanh",
        "arith.fptosi", "arith.fptoui", "arith.remf", "arith.bitcast",
        "iree_linalg_ext.arg_compare", "iree_linalg_ext.sort", "iree_linalg_ext.topk", "iree_linalg_ext.topk_v2",
    )
)  # fmt: skip


def decides(blocks: list[Block]) -> bool:
    """Whether something in ``blocks`` jumps with the data; a maximum written as a choice does not."""
    return next(deciding(blocks), None) is not None


def deciding(blocks: list[Block]) -> Iterator[Op]:
    """The ops in ``blocks`` that jump with the data."""
    for block in blocks:
        for op in block.ops:
            if not op.typed and (op.name in _JUMPS or (op.name == "arith.cmpf" and not op.chooses)):
                yield op
            yield from deciding(op.regions)


def decided_on(program: Program) -> frozenset[int]:
    """The values that reach a dispatch that decides as they are: moved between dispatches, or by them, at most."""
    makers = {slot: op for op in walk([program.body]) for slot in op.results}
    found: set[int] = set()
    left = [
        slot for op in makers.values() if decides_itself(program, op)
        for slot in op.operands
    ]  # fmt: skip
    while left:
        slot = left.pop()
        maker = makers.get(slot)
        if slot in found:
            continue
        found.add(slot)
        if maker is not None and (maker.name != "flow.dispatch" or _only_moves(_body(program, maker))):
            left += reads(maker)
    return frozenset(found)


def decides_itself(program: Program, op: Op) -> bool:
    """Whether ``op`` of a flow program jumps with the data: a dispatch by its body."""
    found = op.cache.get("decides")
    if found is None:
        found = op.cache["decides"] = op.name == "flow.dispatch" and decides(_body(program, op))
    return found


def _body(program: Program, op: Op) -> list[Block]:
    return program.executables[entry_point(op)].regions


def _only_moves(blocks: list[Block]) -> bool:
    return not any(
        op.name.startswith(("arith.", "math.")) and (op.whole or not op.typed) for op in walk(blocks)
    )
