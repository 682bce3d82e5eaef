"""Which source op a pass changed the meaning of, from the programs before and after it."""

from __future__ import annotations

from collections.abc import Mapping

from numtrace.attribute.changes import changed_stamps, fingerprints
from numtrace.attribute.sums import Sums, alike, function_stamps, only_stamp
from numtrace.evaluate.op import Op, reads
from numtrace.evaluate.program import Program


def changed_ops(before: Program, after: Program) -> list[int]:
    """The stamps of the source ops whose IR the pass changed, in the order of the source."""
    return changed_stamps(fingerprints(before), fingerprints(after))


def suspects(
    before: Program, function: Op, changed: list[int], sums: Mapping[int, Sums], now: Mapping[int, Sums]
) -> list[int]:
    """Of the ``changed`` source ops those that the difference at the outputs can have come from.

    They made another value than before, and there is a way from them to the outputs of ``function`` on which every
    source op's value is another: a value that is right again ends it. Where the sums cannot tell, all that changed
    are returned.

    Args:
        before: the program before the pass.
        function: its entry function.
        changed: stamps, see :func:`changed_ops`.
        sums: what each source op came to before the pass, see :mod:`numtrace.attribute.sums`.
        now: the same after it.
    """
    told = sums.keys() & now.keys()
    same = {stamp for stamp in told if alike(now[stamp], sums[stamp])}
    reached = _reached(function, same, function_stamps(before))
    on_the_way = [stamp for stamp in changed if stamp in reached and stamp not in same]
    # An op without a value to compare (it is gone, or fused with another) comes second.
    return [stamp for stamp in on_the_way if stamp in told] or on_the_way or changed


def _reached(function: Op, same: set[int], functions: frozenset[int]) -> set[int]:
    """The stamps met on the way up from what ``function`` returns, stopping at values of the source ops ``same``."""
    ops = function.regions[0].ops
    makers = {slot: op for op in ops for slot in op.results}
    last = {only_stamp(op, functions): op for op in ops if op.results}
    reached: set[int] = set()
    seen: set[int] = set()
    waiting = [*reads(ops[-1])]
    while waiting:
        slot = waiting.pop()
        op = makers.get(slot)
        if op is None or slot in seen:
            continue
        seen.add(slot)
        stamp = only_stamp(op, functions)
        if stamp in same and last[stamp] is op:
            continue
        reached.update(op.stamps)
        waiting.extend(reads(op))
    return reached
