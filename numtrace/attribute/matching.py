"""Which source value a site holds, read from the IR where dispatches are formed.

Every op carries the stamp of the source op it came from. The tensor that a dispatch stores was made by an op
with some stamp ``s``; it holds the *result* of source op ``s`` when something of another source op reads it
(it flows out of ``s``), and is an intermediate of ``s`` otherwise. A dispatch that only moves values (copies,
transposes, pads, casts between floats) holds what it was given. Whether the value is the right one is then a
matter of comparing it, see :mod:`numtrace.attribute.trajectory`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from iree.compiler import ir

from numtrace.attribute.decisions import decides
from numtrace.evaluate.dispatch import tied_operands
from numtrace.evaluate.op import Block, Op, walk
from numtrace.evaluate.program import Program

#: Ops that hand a tensor on, in another shape or place.
_MOVES = frozenset(
    (
        "flow.tensor.reshape", "flow.tensor.bitcast", "flow.tensor.slice", "flow.tensor.update", "flow.tensor.encode",
        "flow.tensor.clone", "flow.tensor.barrier", "flow.tensor.transfer", "tensor.collapse_shape",
        "tensor.expand_shape", "tensor.extract_slice", "tensor.insert_slice", "tensor.pad", "tensor.cast",
        "iree_tensor_ext.dispatch.tensor.load", "iree_encoding.set_encoding", "iree_encoding.unset_encoding",
        "util.optimization_barrier", "iree_tensor_ext.compute_barrier.start", "iree_tensor_ext.compute_barrier.end",
        "linalg.transpose", "linalg.copy", "linalg.broadcast",
        "torch_c.to_builtin_tensor", "torch_c.from_builtin_tensor",
    )
)  # fmt: skip
_FLOAT_CASTS = ("arith.extf", "arith.truncf")
_STORE = "iree_tensor_ext.dispatch.tensor.store"
_LOAD = "iree_tensor_ext.dispatch.tensor.load"
_REGIONS = ("flow.dispatch.workgroups", "flow.dispatch.region")

#: Stands for whatever is not a source op: the function's result, an export.
OUTSIDE = -1


@dataclass(slots=True)
class Holding:
    """What one result of a dispatch holds.

    ``stamp`` is the source op that made it, ``final`` whether it is that op's result (not an intermediate),
    ``moved`` whether the dispatch only moves it. ``window`` is the part of the tensor that was written (offsets
    and sizes), None for all of it.
    """

    stamp: int | None
    final: bool
    moved: bool
    window: tuple[list[int], list[int]] | None = None

    def of_parts(self) -> Holding:
        """The same of complex numbers, whose parts are a last dimension of two."""
        if self.window is None:
            return self
        offsets, sizes = self.window
        return replace(self, window=([*offsets, 0], [*sizes, 2]))


@dataclass(slots=True)
class Formed:
    """A dispatch where it was formed: its source ops in order (root first), and what it stores.

    ``decided_on``: where it decides, the source ops whose values that may hang on: its own and those it reads.
    """

    stamps: tuple[int, ...]
    root: int | None
    holdings: list[Holding] = field(default_factory=list)
    decided_on: tuple[int, ...] = ()

    def wanted(self) -> list[int]:
        """The stamps that values of the source are asked for by, once for each time."""
        final = [held.stamp for held in self.holdings if held.final and held.stamp is not None]
        return [*final, *self.decided_on]


class Uses:
    """Who reads a value, across moves, dispatch boundaries, regions and globals."""

    def __init__(self, program: Program):
        self._readers: dict[int, list[tuple[Op, int]]] = defaultdict(list)
        self._loads: dict[str, list[Op]] = defaultdict(list)
        self.producer: dict[int, Op] = {}
        self._known: dict[int, frozenset[int]] = {}
        self._stored: dict[int, int] = {}  # what a dispatch's region stores to → the dispatch's result
        self._collect([program.body])

    def _collect(self, blocks: list[Block]) -> None:
        for block in blocks:
            for op in block.ops:
                for position, slot in enumerate(op.operands):
                    self._readers[slot].append((op, position))
                if op.name in _REGIONS:
                    self._stored.update(zip(_targets(op), op.results, strict=True))
                for slot in op.results:
                    self.producer[slot] = op
                if op.name == "util.global.load":
                    self._loads[_symbol(op)].append(op)
                self._collect(op.regions)

    def stamps(self, slot: int) -> frozenset[int]:
        """The stamps of the ops that compute with ``slot``; :data:`OUTSIDE` for results of the function."""
        if slot not in self._known:
            self._known[slot] = frozenset()  # a cycle through a loop adds nothing
            self._known[slot] = frozenset(s for reader in self._readers[slot] for s in self._of(*reader))
        return self._known[slot]

    def _of(self, op: Op, position: int) -> Iterator[int]:
        if op.name in _MOVES:
            for result in op.results:
                yield from self.stamps(result)
        elif op.name in _REGIONS:
            block = op.regions[0]
            if position < len(block.arguments):
                yield from self.stamps(block.arguments[position])
        elif op.name == _STORE:
            if position == 0 and op.operands[1] in self._stored:
                yield from self.stamps(self._stored[op.operands[1]])
        elif op.maps:
            yield from self._in_region(op, op.regions[0].arguments[position])
        elif op.name == "util.global.store":
            for load in self._loads[_symbol(op)]:
                yield from self.stamps(load.results[0])
        elif op.stamps and not op.name.startswith(("hal.", "util.return", "func.return", "flow.return")):
            yield from op.stamps
        else:
            yield OUTSIDE

    def _in_region(self, op: Op, argument: int) -> Iterator[int]:
        """Who computes with a region's argument: its scalar ops, seen through casts and plain yields."""
        for reader, position in self._readers[argument]:
            if reader.name == "linalg.yield":
                yield from self.stamps(op.results[position])
            elif reader.name in _FLOAT_CASTS:
                yield from self._in_region(op, reader.results[0])
            else:
                yield from reader.stamps or op.stamps


def _symbol(op: Op) -> str:
    return ir.FlatSymbolRefAttr(op.attributes["global"]).value


def formed_dispatches(program: Program) -> dict[str, list[Formed]]:
    """The dispatches of a module at ``dispatch-creation``, by function (``init<k>`` for initializers), in order."""
    uses = Uses(program)
    found: dict[str, list[Formed]] = {}
    initializers = 0
    for op in program.body.ops:
        if op.name == "util.initializer":
            name, initializers = f"init{initializers}", initializers + 1
        elif op.name in ("util.func", "func.func"):
            name = op.symbol.removesuffix("$async")
        else:
            continue
        dispatches = [inner for inner in walk(op.regions) if inner.name in _REGIONS]
        if dispatches:
            found[name] = []
            makers: dict[int, int | None] = {}
            for dispatch in dispatches:
                formed = _formed(dispatch, uses, makers)
                makers.update(
                    (slot, held.stamp) for slot, held in zip(dispatch.results, formed.holdings, strict=True)
                )
                found[name].append(formed)
    return found


def _formed(dispatch: Op, uses: Uses, makers: dict[int, int | None]) -> Formed:
    """``makers``: the source ops of what the dispatches before it store."""
    root = dispatch.stamps[0] if dispatch.stamps else None
    computing = [op for op in walk(dispatch.regions) if op.name not in _MOVES and _counts(op)]
    stamps = dict.fromkeys(([root] if root is not None else []) + [s for op in computing for s in op.stamps])
    formed = Formed(tuple(stamps), root)
    if decides(dispatch.regions):
        read = (makers.get(_unmoved(slot, uses)) for slot in dispatch.operands)
        formed.decided_on = tuple(dict.fromkeys((*stamps, *(stamp for stamp in read if stamp is not None))))
    for index, slot in enumerate(dispatch.results):
        formed.holdings.append(_holding(dispatch, index, slot, uses, root))
    return formed


def _counts(op: Op) -> bool:
    return op.name not in (
        "linalg.fill", "linalg.yield", "arith.constant", "tensor.empty", "flow.return", "linalg.index", _STORE,
        "iree_tensor_ext.dispatch.workgroup_count_from_slice", "util.assume.int",
    )  # fmt: skip


def _targets(dispatch: Op) -> list[int]:
    """The region's argument that each result of ``dispatch`` is written to."""
    arguments, tied = dispatch.regions[0].arguments, tied_operands(dispatch)
    fresh = iter(arguments[len(arguments) - tied.count(-1) :])
    return [arguments[operand] if operand >= 0 else next(fresh) for operand in tied]


def _holding(dispatch: Op, index: int, result: int, uses: Uses, root: int | None) -> Holding:
    target = _targets(dispatch)[index]
    store = next(
        (op for op in walk(dispatch.regions) if op.name == _STORE and op.operands[1] == target), None
    )
    if store is None:
        return Holding(root, final=False, moved=False)
    maker, moved = _maker(store.operands[0], uses)
    stamp = maker.stamps[0] if maker is not None and maker.stamps else root
    readers = uses.stamps(result)
    final = stamp is not None and any(reader != stamp for reader in readers)
    return Holding(stamp, final, moved, _window(store))


def _window(store: Op) -> tuple[list[int], list[int]] | None:
    offsets, sizes = store.integers("static_offsets"), store.integers("static_sizes")
    if min([*offsets, *sizes], default=0) < 0 or set(store.integers("static_strides")) - {1}:
        return None
    return (offsets, sizes)


def _unmoved(slot: int, uses: Uses) -> int:
    """What ``slot`` is a view or a part of, between dispatches."""
    while (op := uses.producer.get(slot)) is not None and op.name in _MOVES and op.operands:
        slot = op.operands[0]
    return slot


def _maker(slot: int, uses: Uses) -> tuple[Op | None, bool]:
    """The op that computed ``slot``, seen through moves; and whether there is none: the value was only moved."""
    last: Op | None = None
    while True:
        op = uses.producer.get(slot)
        if op is None or op.name == _LOAD:
            return last, True
        if op.maps and (inner := _yielded(op, uses, op.results.index(slot))) is not None:
            if isinstance(inner, Op):
                return inner, False
            last, slot = op, inner
            continue
        if op.name in _MOVES:
            last, slot = op, op.operands[0]
            continue
        return op, False


def _yielded(op: Op, uses: Uses, index: int) -> Op | int | None:
    """What a structured op yields: the scalar op that makes it, or the slot of the operand that it hands on.

    None when it yields its own output's old value.
    """
    block = op.regions[0]
    slot = block.ops[-1].operands[index]
    while (scalar := uses.producer.get(slot)) is not None and scalar.name in _FLOAT_CASTS:
        slot = scalar.operands[0]
    if slot in block.arguments:
        position = block.arguments.index(slot)
        return op.operands[position] if position < len(op.maps) - len(op.results) else None
    return scalar if scalar is not None and scalar.stamps else op


class Pairing:
    """Dispatches of ``flow`` with those of ``dispatch-creation`` that they were formed as, in order.

    A later phase may drop or add one: a pair has the same root and as many results, of the rank that was stored.
    """

    def __init__(self, formed: Sequence[Formed]):
        self._left = list(formed)

    def next(self, dispatch: Op) -> Formed:
        """The formed dispatch of ``dispatch``; without one, what its own location says."""
        for position, formed in enumerate(self._left):
            same = formed.root is None or formed.root in dispatch.stamps
            if same and _holds(formed, dispatch):
                del self._left[: position + 1]
                return formed
        return Formed(dispatch.stamps, dispatch.stamps[0] if dispatch.stamps else None)


def _holds(formed: Formed, dispatch: Op) -> bool:
    windows = [held.window for held in formed.holdings]
    if len(windows) != len(dispatch.results):
        return False
    ranks = (len(dispatch.static_shape(index)) for index in range(len(windows)))
    return all(window is None or len(window[0]) == rank for window, rank in zip(windows, ranks, strict=True))


def permutes(body: Op) -> bool:
    """Whether some structured op in ``body`` lays its output's dimensions in another order than an input's."""
    return any(_order(m) is False for op in walk(body.regions) for m in op.maps)


def _order(indexing_map: ir.AffineMap) -> bool | None:
    """Whether the loops of a map's plain dimensions come in increasing order; None when it has none."""
    loops = [result.position for result in indexing_map.results if isinstance(result, ir.AffineDimExpr)]
    return loops == sorted(loops) if loops else None


def source_finals(program: Program, function: Op, stage: str) -> dict[int, list[int]]:
    """For each stamp of the source the slots that hold its results.

    At the torch dialect a source op's results are its own; at the ``input`` stage one source op may be several,
    and its results are what flows out of them.
    """
    finals: dict[int, list[int]] = defaultdict(list)
    uses = Uses(program) if stage == "input" else None
    for op in function.regions[0].ops:
        for stamp in op.stamps[:1]:
            for slot in op.results:
                if uses is None or any(reader != stamp for reader in uses.stamps(slot)):
                    finals[stamp].append(slot)
    return dict(finals)
