"""numtrace's own location on every source op, so that mapping does not depend on what an exporter wrote."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass

from iree.compiler import ir

_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_FILE = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):(\d+)')


#: Ops whose regions hold ops in their own right; what is inside any other op belongs to it.
_CONTAINERS = (
    "builtin.module", "func.func", "util.func", "util.initializer", "scf.", "cf.", "torch.prim.", "torch.operator",
    "stablehlo.case", "stablehlo.if", "stablehlo.while", "tosa.cond_if", "tosa.while_loop",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SourceOp:
    """A stamped op: its number, the op's MLIR name, a display name, module path and original location."""

    number: int
    kind: str
    name: str
    module: str
    location: str

    def as_dict(self) -> dict:
        return asdict(self)


def stamp_module(module: ir.Module, file: str = "") -> list[SourceOp]:
    """Gives every op of ``module`` the location ``loc("numtrace.<n>")``; returns what each number stands for.

    What is in the body of a structured op has its op's, with a name below: ``loc("numtrace.<n>"("body"))``.

    The name shown is the innermost name location (``loc("convolution_2"("decoder.conv1"))`` is op
    ``convolution_2`` of module ``decoder.conv1``); without one, the op's kind and how many of it came before.
    ``file`` is shown where a location is a line of the model itself.
    """
    table: list[SourceOp] = []
    counts: dict[str, int] = {}
    body = ir.Location.name("body", context=module.context)

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.parent is not None and not op.parent.name.startswith(_CONTAINERS):
            # Part of the op that was stamped last; its types are what the source spells out.
            op.location = ir.Location.name(f"numtrace.{table[-1].number}", body, context=module.context)
            return ir.WalkResult.ADVANCE
        number = len(table)
        kind = _kind(op)
        original = str(op.location)
        name, path = _name(original)
        if not name and kind == "util.global.load":
            name = ir.FlatSymbolRefAttr(op.attributes["global"]).value
        if not name:
            # torch.aten.add.Tensor is an add, of the overload Tensor.
            short = (
                kind.split(".")[2]
                if kind.startswith(("torch.aten.", "torch.prims."))
                else kind.rsplit(".", 1)[-1]
            )
            counts[short] = counts.get(short, -1) + 1
            name = f"{short}_{counts[short]}" if counts[short] else short
        table.append(SourceOp(number, kind, name, path, _shown(original, file)))
        op.location = ir.Location.name(f"numtrace.{number}", context=module.context)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return table


def _kind(op: ir.OpView | ir.Operation) -> str:
    """The op's name; of an operator that the torch dialect only carries, as ONNX's, that operator's."""
    if op.name == "torch.operator":
        return ir.StringAttr(op.attributes["name"]).value
    return op.name


def _name(location: str) -> tuple[str, str]:
    """Display name and module path of a location's text; empty where it has no name."""
    if _FILE.search(location) and not re.match(r'loc\("(?:[^"\\]|\\.)*"\(', location):
        return "", ""
    names = _QUOTED.findall(_FILE.sub("", location))
    if not names:
        return "", ""
    return names[0], names[1] if len(names) > 1 else ""


def _shown(location: str, parsed: str) -> str:
    """``file:line:column`` or the names, without what surrounds them; ``parsed`` is the model's own file."""
    file = _FILE.search(location)
    if file:
        # What was parsed from memory is "-" to the parser.
        return f"{parsed if file[1] == '-' and parsed else file[1]}:{file[2]}:{file[3]}"
    text = location.removeprefix("loc(").removesuffix(")")
    return "" if text == "unknown" else text
