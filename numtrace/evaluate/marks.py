"""What ops are among others: what dies after them, index arithmetic, stand-ins for integers, mere choices."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import chain

from iree.compiler import ir

from numtrace.evaluate.op import Block, Op, reads

#: Scalars that no tensor data flows into: what is computed from them alone is index arithmetic.
_DATA_FREE_SOURCES = {"arith.constant", "linalg.index", "tensor.dim", "util.assume.int"}
_SCALAR_DIALECTS = ("arith.", "math.", "affine.", "index.")


def mark(block: Block) -> None:
    """Sets the marks of every op in ``block``, see :class:`~numtrace.evaluate.op.Op`."""
    _mark_blocks(block)
    _mark_index_arithmetic(block, {})
    _mark_whole(block, set())


def _mark_blocks(block: Block) -> None:
    for op in block.ops:
        for region in op.regions:
            _mark_blocks(region)
    _mark_last_uses(block.ops)
    _mark_choices(block.ops)


def _mark_last_uses(ops: list[Op]) -> None:
    seen: set[int] = set()
    for op in reversed(ops):
        for slot in {*reads(op), *op.results}:
            if slot not in seen:
                seen.add(slot)
                op.dead.append(slot)
    # What the block did not make itself may be read again (a body runs once per element tile or call).
    made = {slot for op in ops for slot in op.results}
    for op in ops:
        op.dead = [slot for slot in op.dead if slot in made]


def _mark_choices(ops: list[Op]) -> None:
    """Sets ``chooses``."""
    for compare in ops:
        if compare.name == "arith.cmpf":
            readers = [op for op in ops if compare.results[0] in reads(op)]
            compare.chooses = bool(readers) and all(
                op.name == "arith.select" and {*op.operands[1:]} == {*compare.operands} for op in readers
            )


def _mark_index_arithmetic(block: Block, free: dict[int, bool]) -> None:
    """Sets ``typed``.

    ``free`` are the scalars so far that no tensor data flows into, of outer blocks too, and whether each is made
    of float constants alone. Those are no index arithmetic: a cast of such a one is a constant that was rounded.
    """
    for op in block.ops:
        if op.name in _DATA_FREE_SOURCES:
            op.typed = op.name != "arith.constant" or not _is_shaped(op.result_types[0])
            constant = op.name == "arith.constant" and isinstance(op.result_types[0], ir.FloatType)
            if op.typed:
                free.update(dict.fromkeys(op.results, constant))
        elif op.name.startswith(_SCALAR_DIALECTS) and op.operands and free.keys() >= set(op.operands):
            constant = all(free[slot] for slot in op.operands)
            op.typed = not constant
            free.update(dict.fromkeys(op.results, constant))
        for region in op.regions:
            _mark_index_arithmetic(region, free)


def _mark_whole(block: Block, constants: set[int]) -> None:
    """Sets ``whole``, and ``typed`` with it.

    A source op that takes integers and makes integers asks for no rounding. Where it was lowered to floats, as a
    division is, what these round is no rounding that the types of the source ask for: it has another meaning. What the
    body of a source op does is asked for.

    ``constants`` are the scalars so far, of outer blocks too, that are constant whole floats.
    """
    parts: dict[int, list[Op]] = defaultdict(list)
    for op in block.ops:
        if op.name == "arith.constant" and isinstance(value := op.attributes["value"], ir.FloatAttr):
            constants.update(op.results if value.value.is_integer() else ())
        elif op.name.startswith(("arith.", "math.")) and len(op.stamps) == 1 and not (op.typed or op.in_body):
            parts[op.stamps[0]].append(op)
        for region in op.regions:
            _mark_whole(region, constants)
    candidates = [ops for ops in parts.values() if _from_and_to_integers(ops)]
    # Where two of them share a cast, it is the one's and the other takes a float: they are closed together or not.
    while len(closed := [ops for ops in candidates if _closed(ops, candidates, block, constants)]) < len(
        candidates
    ):
        candidates = closed
    for op in chain.from_iterable(candidates):
        op.typed = op.whole = True


def _from_and_to_integers(ops: list[Op]) -> bool:
    names = {op.name for op in ops}
    return not names.isdisjoint(_FROM_INTEGERS) and not names.isdisjoint(_TO_INTEGERS)


def _closed(ops: list[Op], candidates: list[list[Op]], block: Block, constants: set[int]) -> bool:
    """Whether the floats that ``ops`` take and make are constants, or those of candidates."""
    inside = [*chain.from_iterable(candidates)]
    given = {slot for op in inside for slot in _floats(op.results, op.result_types)} | constants
    made = {slot for op in ops for slot in _floats(op.results, op.result_types)}
    taken = {slot for op in ops for slot in _floats(op.operands, op.operand_types)}
    known = {id(op) for op in inside}
    return taken <= given and not any(made.intersection(reads(op)) for op in block.ops if id(op) not in known)


_FROM_INTEGERS = {"arith.sitofp", "arith.uitofp"}
_TO_INTEGERS = {"arith.fptosi", "arith.fptoui"}


def _floats(slots: list[int], types: list[ir.Type]) -> Iterator[int]:
    for slot, type_ in zip(slots, types, strict=True):
        if isinstance(ir.ShapedType(type_).element_type if _is_shaped(type_) else type_, ir.FloatType):
            yield slot


def _is_shaped(type_: ir.Type) -> bool:
    return isinstance(type_, ir.ShapedType)
