"""A trace after each dispatch of a module at ``flow``, and which tensor it holds."""

from __future__ import annotations

import re
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
    initializers = 0
    with module.context:
        for op in list(module.body.operations):
            operation = op.operation
            if operation.name == "util.initializer":
                _trace_function(operation, f"init{initializers}", sites)
                initializers += 1
            elif operation.name in ("util.func", "func.func") and len(operation.regions[0].blocks):
                name = ir.StringAttr(operation.attributes["sym_name"]).value
                _trace_function(operation, name.removesuffix("$async"), sites)
    return sites


def _trace_function(function: ir.Operation, name: str, sites: list[Site]) -> None:
    dispatches: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "flow.dispatch":
            dispatches.append(op)
        return ir.WalkResult.ADVANCE

    function.walk(visit, ir.WalkOrder.PRE_ORDER)
    for ordinal, dispatch in enumerate(dispatches):
        site = Site(f"{name}/{ordinal}", f"{name}/{ordinal}")
        sites.append(site)
        _insert(dispatch, site.key)


def _insert(dispatch: ir.Operation, key: str) -> None:
    block = dispatch.block
    operations = list(block.operations)
    position = next(i for i, op in enumerate(operations) if op.operation == dispatch)
    with ir.InsertionPoint(operations[position + 1]), dispatch.location:
        values, dims = [], []
        for result, sizes in zip(dispatch.results, _result_dims(dispatch), strict=True):
            encoded = _ENCODED.match(str(result.type))
            if encoded:
                plain = ir.Type.parse(f"tensor<{encoded[1]}{encoded[2]}>")
                segments = ir.DenseI32ArrayAttr.get([1, len(sizes), len(sizes)])
                result = ir.Operation.create(
                    "flow.tensor.encode",
                    results=[plain],
                    operands=[result, *sizes, *sizes],
                    attributes={"operandSegmentSizes": segments},
                ).result
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


def _result_dims(dispatch: ir.Operation) -> list[list[ir.Value]]:
    """The dynamic sizes of each result, from the last operand segment."""
    segments = list(ir.DenseI32ArrayAttr(dispatch.attributes["operandSegmentSizes"]))
    dims = list(dispatch.operands)[sum(segments[:-1]) :]
    split, at = [], 0
    for result in dispatch.results:
        count = str(result.type).split(",")[0].count("?")
        split.append(dims[at : at + count])
        at += count
    return split
