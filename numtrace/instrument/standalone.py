"""One dispatch of a program at ``flow`` as a program of its own, with one public function.

The function takes the tensors that the dispatch takes and returns what it returns, in their plain types:
encodings (data tiling) are put on and taken off inside, and complex numbers are pairs of floats. Scalars are
constants of the program. The target is left out, so that the flags of the compilation choose it; so are
locations, so that a compiler's message speaks of a line of the text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from iree.compiler import ir

from numtrace.errors import CompileError, UsageError
from numtrace.instrument.tensor_type import TensorType
from numtrace.instrument.traces import by_dims, dispatches, encode, plain_type, result_dims

#: The public function of a standalone program.
FUNCTION = "dispatch"


@dataclass(frozen=True, slots=True)
class Standalone:
    """The program, the symbols of its executable and of the function in it, and what it takes and returns.

    ``fed`` are the indices, among the operands of the ``flow.dispatch``, of the tensors that the function takes;
    ``arguments`` are their types. ``encoded``: whether the dispatch takes or makes encoded tensors.
    """

    text: str
    executable: str
    entry: str
    fed: tuple[int, ...]
    arguments: tuple[TensorType, ...]
    results: tuple[TensorType, ...]
    encoded: bool


def standalone(module: ir.Module, site: str, scalars: Mapping[int, int | float] | None = None) -> Standalone:
    """The dispatch ``site`` (an id without the result) of ``module``, alone.

    ``scalars``: the values of operands that are no tensors and no constants of ``module``, by operand index.
    They are kept from the compiler's sight by a barrier, and so are constants in which the dispatches of one
    executable differ: it would fold them into code that is another than the program's.

    Raises:
        UsageError: there is no such dispatch.
        CompileError: it has no executable in the module, or an operand is neither a tensor nor known.
    """
    found = dict(dispatches(module))
    if site not in found:
        raise UsageError(f"the program has no dispatch {site}; it has {_ends(list(found))}")
    with module.context, ir.Location.unknown():
        return _Builder(module, found, site, scalars or {}).build()


class _Builder:
    def __init__(
        self,
        module: ir.Module,
        found: Mapping[str, ir.Operation],
        site: str,
        scalars: Mapping[int, int | float],
    ):
        self._site, self._scalars = site, scalars
        self._dispatch = dispatch = found[site]
        points = dispatch.attributes["entry_points"]
        (point,) = ir.ArrayAttr(points)
        self._executable, self._entry = ir.SymbolRefAttr(point).value
        self._callers = [op for op in found.values() if op.attributes["entry_points"] == points]
        self._body = _executable(module, self._executable)

    def build(self) -> Standalone:
        dispatch = self._dispatch
        tensors = [i for i, v in enumerate(dispatch.operands) if _is_tensor(v.type)]
        view = ir.Type.parse("!hal.buffer_view")
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            self._body.clone()
            function = ir.Operation.create(
                "util.func",
                attributes={
                    "sym_name": ir.StringAttr.get(FUNCTION),
                    "sym_visibility": ir.StringAttr.get("public"),
                    "function_type": ir.TypeAttr.get(
                        ir.FunctionType.get([view] * len(tensors), [view] * len(dispatch.results))
                    ),
                    "iree.abi.stub": ir.UnitAttr.get(),
                },
                regions=1,
            )
        block = function.regions[0].blocks.append(*[view] * len(tensors))
        with ir.InsertionPoint(block):
            arguments, results = self._function(dict(zip(tensors, block.arguments, strict=True)), view)
        try:
            module.operation.verify()
        except ir.MLIRError as error:
            raise CompileError(
                f"dispatch {self._site} cannot be written as a program of its own: {error}"
            ) from None
        return Standalone(
            text=module.operation.get_asm(enable_debug_info=False),
            executable=self._executable,
            entry=self._entry,
            fed=tuple(tensors),
            arguments=tuple(arguments),
            results=tuple(results),
            encoded=any(
                plain_type(v.type) != v.type for v in [*dispatch.operands, *dispatch.results]
            ),
        )  # fmt: skip

    def _function(
        self, given: Mapping[int, ir.Value], view: ir.Type
    ) -> tuple[list[TensorType], list[TensorType]]:
        """The body of the function; returns the plain types of what it takes and returns."""
        dispatch = self._dispatch
        operands = list(dispatch.operands)
        sizes: dict[ir.Value, ir.Value] = {}  # one constant for a value, however often it is an operand
        numbers: dict[ir.Value, int | float] = {}
        for index in range(len(operands)):
            if index not in given and operands[index] not in sizes:
                sizes[operands[index]], numbers[operands[index]] = self._scalar(index)
        values = {i: sizes[operands[i]] for i in range(len(operands)) if i not in given}
        segments = list(ir.DenseI32ArrayAttr(dispatch.attributes["operandSegmentSizes"]))
        first = segments[0]  # the workload stands before the arguments
        dims = operands[first + segments[1] : first + segments[1] + segments[2]]
        arguments = range(first, first + segments[1])
        types = []
        for index, known in zip(arguments, by_dims([operands[i].type for i in arguments], dims), strict=True):
            if index not in given:
                continue
            type_ = plain_type(operands[index].type)
            fed, found = _fed(type_), [sizes[dim] for dim in known]
            value = _import(given[index], fed, found)
            if fed != type_:
                value = _bitcast(value, type_, found)
            if type_ != operands[index].type:
                value = encode(value, operands[index].type, found)
            values[index] = value
            types.append(_sized(fed, [numbers[dim] for dim in known]))
        call = ir.Operation.create(
            "flow.dispatch",
            results=[result.type for result in dispatch.results],
            operands=[values[i] for i in range(len(operands))],
            # An affinity names a device of the program that it was taken from.
            attributes={
                name: dispatch.attributes[name]
                for name in dispatch.attributes
                if not name.startswith("stream.")
            },
        )
        made, outputs = [], []
        for result, known in zip(call.results, result_dims(dispatch), strict=True):
            type_, found = plain_type(result.type), [sizes[dim] for dim in known]
            value = result if type_ == result.type else encode(result, type_, found)
            fed = _fed(type_)
            if fed != type_:
                value = _bitcast(value, fed, found)
            made.append(_sized(fed, [numbers[dim] for dim in known]))
            outputs.append(_export(value, fed, found, view))
        ir.Operation.create("util.return", operands=outputs)
        return types, made

    def _scalar(self, index: int) -> tuple[ir.Value, int | float]:
        """An operand that is no tensor, as a constant, and its number."""
        value = self._dispatch.operands[index]
        attribute = _constant(value)
        folds = attribute is not None and all(
            _constant(other.operands[index]) == attribute for other in self._callers
        )
        if attribute is None:
            if index not in self._scalars:
                raise CompileError(
                    f"operand {index} of dispatch {self._site} is computed while the program runs: "
                    "its real inputs are needed"
                )
            attribute = _attribute(value.type, self._scalars[index])
        constant = ir.Operation.create(
            "arith.constant", results=[value.type], attributes={"value": attribute}
        )
        if folds:
            return constant.result, attribute.value
        barrier = "util.optimization_barrier"
        hidden = ir.Operation.create(barrier, results=[value.type], operands=[constant.result])
        return hidden.result, attribute.value


def _executable(module: ir.Module, symbol: str) -> ir.Operation:
    for op in module.body.operations:
        if (
            op.operation.name == "flow.executable"
            and ir.StringAttr(op.operation.attributes["sym_name"]).value == symbol
        ):
            return op.operation
    raise CompileError(f"the executable {symbol} is not in the program as IR, so it cannot be compiled alone")


def _import(buffer: ir.Value, type_: ir.Type, dims: list[ir.Value]) -> ir.Value:
    return ir.Operation.create(
        "hal.tensor.import",
        results=[type_],
        operands=[buffer, *dims],
        attributes={
            "target_encoding": ir.TypeAttr.get(type_),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, len(dims), 0, 0]),
        },
    ).result


def _fed(type_: ir.Type) -> ir.Type:
    """The type that a tensor is given and returned in: of complex numbers that of their parts, since
    ``iree-run-module`` takes the x in their name for one between two sizes."""
    return ir.Type.parse(re.sub(r"complex<(f[0-9]+)>", r"2x\1", str(type_)), type_.context)


def _bitcast(value: ir.Value, type_: ir.Type, dims: list[ir.Value]) -> ir.Value:
    return ir.Operation.create(
        "flow.tensor.bitcast",
        results=[type_],
        operands=[value, *dims, *dims],
        attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, len(dims), len(dims)])},
    ).result


def _export(value: ir.Value, type_: ir.Type, dims: list[ir.Value], view: ir.Type) -> ir.Value:
    return ir.Operation.create(
        "hal.tensor.export",
        results=[view],
        operands=[value, *dims],
        attributes={"source_encoding": ir.TypeAttr.get(type_)},
    ).result


def _is_tensor(type_: ir.Type) -> bool:
    return isinstance(type_, ir.RankedTensorType)


def _constant(value: ir.Value) -> ir.Attribute | None:
    owner = value.owner
    if not isinstance(owner, ir.Operation | ir.OpView) or owner.name != "arith.constant":
        return None
    return owner.attributes["value"].maybe_downcast()


def _attribute(type_: ir.Type, value: int | float) -> ir.Attribute:
    if isinstance(type_, ir.FloatType):
        return ir.FloatAttr.get(type_, float(value))
    return ir.IntegerAttr.get(type_, int(value))


def _sized(type_: ir.Type, dims: list[int | float]) -> TensorType:
    """The plain tensor type with its dynamic sizes filled in."""
    text = str(type_).removeprefix("tensor<").removesuffix(">")
    given = TensorType.parse(text)
    sizes = iter(dims)
    return TensorType(tuple(int(next(sizes)) if size is None else size for size in given.shape), given.dtype)


def _ends(ids: list[str]) -> str:
    return ", ".join(ids) if len(ids) <= 6 else f"{len(ids)}, from {ids[0]} to {ids[-1]}"


def with_pipeline(text: str, entry: str, pipeline: str) -> str:
    """``text`` with ``pipeline`` set as the way to translate the function ``entry`` of an executable.

    Raises:
        CompileError: this IREE has no such pipeline.
    """
    module = ir.Module.parse(text, ir.Context())

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "func.func" and ir.StringAttr(op.attributes["sym_name"]).value == entry:
            op.attributes["translation_info"] = translation
        return ir.WalkResult.ADVANCE

    try:
        translation = ir.Attribute.parse(
            f"#iree_codegen.translation_info<pipeline = {pipeline}>", module.context
        )
    except ir.MLIRError as error:
        raise CompileError(f"this IREE has no pipeline {pipeline}: {error}") from None
    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return module.operation.get_asm(enable_debug_info=False)
