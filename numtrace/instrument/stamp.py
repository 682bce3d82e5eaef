"""numtrace's own location on every source op, so that mapping does not depend on what an exporter wrote."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass

from iree.compiler import ir

_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_FILE = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):(\d+)')


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


def stamp_module(module: ir.Module) -> list[SourceOp]:
    """Gives every op of ``module`` the location ``loc("numtrace.<n>")``; returns what each number stands for.

    The name shown is the innermost name location (``loc("convolution_2"("decoder.conv1"))`` is op
    ``convolution_2`` of module ``decoder.conv1``); without one, the op's kind and how many of it came before.
    """
    table: list[SourceOp] = []
    counts: dict[str, int] = {}

    def visit(op: ir.Operation) -> ir.WalkResult:
        number = len(table)
        kind = op.name
        original = str(op.location)
        name, path = _name(original)
        if not name:
            short = kind.rsplit(".", 1)[-1]
            counts[short] = counts.get(short, -1) + 1
            name = f"{short}_{counts[short]}" if counts[short] else short
        table.append(SourceOp(number, kind, name, path, _shown(original)))
        op.location = ir.Location.name(f"numtrace.{number}", context=module.context)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return table


def _name(location: str) -> tuple[str, str]:
    """Display name and module path of a location's text; empty where it has no name."""
    if _FILE.search(location) and not re.match(r'loc\("(?:[^"\\]|\\.)*"\(', location):
        return "", ""
    names = _QUOTED.findall(_FILE.sub("", location))
    if not names:
        return "", ""
    return names[0], names[1] if len(names) > 1 else ""


def _shown(location: str) -> str:
    """``file:line`` or the names, without what surrounds them."""
    file = _FILE.search(location)
    if file:
        return f"{file[1]}:{file[2]}:{file[3]}"
    text = location.removeprefix("loc(").removesuffix(")")
    return "" if text == "unknown" else text
