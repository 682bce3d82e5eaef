"""Inlined weights into a parameter archive, with IREE's own passes.

Constant evaluation would otherwise fold a precision pass into them: the rounding that was asked for would be
gone from the IR, and look like changed mathematics.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from iree.compiler import ir, passmanager

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
    return archive.exists()


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
