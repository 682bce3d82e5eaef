"""Inlined weights into a parameter archive, with IREE's own passes.

Constant evaluation would otherwise fold a precision pass into them: the rounding that was asked for would be
gone from the IR, and look like changed mathematics.
"""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import numpy as np
from iree.compiler import ir, passmanager

from numtrace.errors import ModelError

#: The parameter scope of what was inlined.
SCOPE = "numtrace.inlined"


def externalise(module: ir.Module, archive: Path) -> bool:
    """Moves every inlined non-splat tensor of ``module`` into ``archive``; False when there is none.

    Works in place, at the source stage, on torch literals and ``arith.constant`` alike.
    """
    _literals_to_constants(module)
    # The pass takes scope and path in one option, whose parser knows no escapes: a plain name, in its folder.
    pipeline = (
        "builtin.module(iree-flow-outline-constants,"
        f"iree-io-export-parameters{{path={SCOPE}={archive.name} minimum-size=0}})"
    )
    with contextlib.chdir(archive.parent), module.context:
        passmanager.PassManager.parse(pipeline).run(module.operation)
    _spell_out(module)
    return archive.exists()


#: A resource as MLIR prints it: four bytes of alignment, then the elements.
_RESOURCE = re.compile(r'([\w.$-]+|"[^"]*"): "0x[0-9A-Fa-f]{8}([0-9A-Fa-f]*)"')

#: Where an op's literal is: of ``torch.operator``, that of ``onnx.Constant``.
_LITERALS = {"torch.vtensor.literal": "value", "torch.operator": "torch.onnx.value"}


def _spell_out(module: ir.Module) -> None:
    """What lies in a resource as elements of the attribute itself, of integers of the torch dialect and constants of
    ONNX: the bindings read no resource, and the outlining pass knows no such literal."""
    literals: list[tuple[ir.Operation, str]] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        key = _LITERALS.get(op.name, "")
        if key in op.attributes and str(op.attributes[key]).startswith("dense_resource<"):
            literals.append((op, key))
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    if not literals:
        return
    _, _, section = module.operation.get_asm().rpartition("{-#")
    blobs = dict(_RESOURCE.findall(section))
    for op, key in literals:
        value = op.attributes[key]
        name = str(value).removeprefix("dense_resource<").rpartition("> : ")[0]
        data = blobs.get(name)
        if data is None:
            raise ModelError(f"the resource {name} of a {op.name} is not in the file")
        with module.context:
            op.attributes[key] = _dense(ir.RankedTensorType(value.type), data)


def _dense(type_: ir.RankedTensorType, data: str) -> ir.Attribute:
    """The elements of ``data``, hexadecimal, as an attribute of a builtin tensor type."""
    if type_.element_type == ir.IntegerType.get_signless(1):  # a byte each
        return ir.DenseElementsAttr.get(np.frombuffer(bytes.fromhex(data), np.bool_).reshape(type_.shape))
    return ir.Attribute.parse(f'dense<"0x{data}"> : {type_}' if data else f"dense<> : {type_}")


def _literals_to_constants(module: ir.Module) -> None:
    """``torch.vtensor.literal`` of floats as a builtin constant, which the outlining pass knows."""
    literals: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "torch.vtensor.literal":
            literals.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    for op in literals:
        value = op.attributes["value"]
        splat = isinstance(value, ir.DenseElementsAttr) and value.is_splat
        if splat or not isinstance(ir.ShapedType(value.type).element_type, ir.FloatType):
            continue
        with ir.InsertionPoint(op), op.location:
            constant = ir.Operation.create(
                "arith.constant", results=[value.type], attributes={"value": value}
            )
            back = ir.Operation.create(
                "torch_c.from_builtin_tensor", results=[op.results[0].type], operands=[constant.result]
            )
        op.results[0].replace_all_uses_with(back.result)
        op.erase()
