"""A trace after each dispatch of a module at ``flow``, and which tensor it holds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from iree.compiler import ir

_ENCODED = re.compile(r"^tensor<((?:[0-9?]+x)*)([A-Za-z0-9]+), .*>$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Site:
    """One dispatch: its id without the result (``main/12``), and the key of its trace."""

    id: str
    key: str


def insert_traces(module: ir.Module) -> list[Site]:
    """Adds ``flow.tensor.trace`` after every ``flow.dispatch`` in functions and initializers, in place.

    Encoded results (data tiling) are traced in their plain type. The key of a trace is its site's id.
    """
    sites: list[Site] = []
    with module.context:
        for name, dispatch in list(dispatches(module)):
            site = Site(name, name)
            sites.append(site)
            _insert(dispatch, site.key)
    return sites


def printed(module: ir.Module) -> str:
    """A module with traces as text that IREE reads again: it does not read its own short form of a trace of several
    tensors with dynamic dims.
    """
    unreadable: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "flow.tensor.trace":
            values, dims = ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])
            if values > 1 and dims:
                unreadable.append(op)
                return ir.WalkResult.INTERRUPT
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return module.operation.get_asm(enable_debug_info=True, print_generic_op_form=bool(unreadable))


def dispatches(module: ir.Module) -> Iterator[tuple[str, ir.Operation]]:
    """Every ``flow.dispatch`` with its site's id (without the result), in the order of the module."""
    initializers = 0
    for op in module.body.operations:
        operation = op.operation
        if operation.name == "util.initializer":
            name = f"init{initializers}"
            initializers += 1
        elif operation.name in ("util.func", "func.func") and len(operation.regions[0].blocks):
            name = ir.StringAttr(operation.attributes["sym_name"]).value.removesuffix("$async")
        else:
            continue
        for ordinal, dispatch in enumerate(_dispatches_in(operation)):
            yield f"{name}/{ordinal}", dispatch


def _dispatches_in(function: ir.Operation) -> list[ir.Operation]:
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "flow.dispatch":
            found.append(op)
        return ir.WalkResult.ADVANCE

    function.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def _insert(dispatch: ir.Operation, key: str) -> None:
    block = dispatch.block
    operations = list(block.operations)
    position = next(i for i, op in enumerate(operations) if op.operation == dispatch)
    with ir.InsertionPoint(operations[position + 1]), dispatch.location:
        values, dims = [], []
        for result, sizes in zip(dispatch.results, result_dims(dispatch), strict=True):
            plain = plain_type(result.type)
            if plain != result.type:
                result = encode(result, plain, sizes)
            values.append(result)
            dims += sizes
        ir.Operation.create(
            "flow.tensor.trace",
            operands=[*values, *dims],
            attributes={
                "key": ir.StringAttr.get(key),
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(values), len(dims)]),
            },
        )


def plain_type(type_: ir.Type) -> ir.Type:
    """A tensor type without its encoding; any other type as it is."""
    encoded = _ENCODED.match(str(type_))
    return ir.Type.parse(f"tensor<{encoded[1]}{encoded[2]}>", type_.context) if encoded else type_


def encode(value: ir.Value, type_: ir.Type, sizes: Sequence[ir.Value]) -> ir.Value:
    """``value`` in another encoding, or in none; ``sizes`` are its dynamic dims. Inserted where the caller is."""
    segments = ir.DenseI32ArrayAttr.get([1, len(sizes), len(sizes)])
    return ir.Operation.create(
        "flow.tensor.encode",
        results=[type_],
        operands=[value, *sizes, *sizes],
        attributes={"operandSegmentSizes": segments},
    ).result


def result_dims(dispatch: ir.Operation) -> list[list[ir.Value]]:
    """The dynamic sizes of each result of a ``flow.dispatch``, from its last operand segment."""
    segments = list(ir.DenseI32ArrayAttr(dispatch.attributes["operandSegmentSizes"]))
    dims = list(dispatch.operands)[sum(segments[:-1]) :]
    return by_dims([result.type for result in dispatch.results], dims)


def by_dims(types: Iterable[ir.Type], dims: Sequence[ir.Value]) -> list[list[ir.Value]]:
    """``dims``, the dynamic sizes of values of ``types`` in order, by value."""
    split, at = [], 0
    for type_ in types:
        count = str(type_).split(",")[0].count("?")
        split.append(list(dims[at : at + count]))
        at += count
    return split
