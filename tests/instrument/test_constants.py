"""Integers in a resource of the torch dialect: read where the bindings give no access to it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from iree.compiler import ir

from numtrace.errors import ModelError
from numtrace.evaluate.machine import Machine
from numtrace.evaluate.program import Program
from numtrace.instrument.constants import externalise

#: Four bytes of alignment, then the elements, little endian.
RESOURCES = """
{-#
  dialect_resources: { builtin: {
    "a b": "0x0800000007000000000000000500000000000000FFFFFFFFFFFFFFFF0000000000000000",
    bits: "0x0100000001000001000000010001",
    none: "0x010000000000",
    all: "0x010000000101",
    bytes: "0x01000000FF7F80"
  } }
#-}
"""


def values(*types: tuple[str, str, str]) -> list[torch.Tensor]:
    """What literals of (resource, shape, element type) are evaluated to."""
    lines, results = [], []
    for n, (name, shape, element) in enumerate(types):
        kind = f"!torch.vtensor<[{shape}],{element}>"
        tensor = f"tensor<{shape.replace(',', 'x')}x{element}>"
        lines.append(f"%{n} = torch.vtensor.literal(dense_resource<{name}> : {tensor}) : {kind}")
        results.append(kind)
    names = ", ".join(f"%{n}" for n in range(len(types)))
    text = f"func.func @main() -> ({', '.join(results)}) {{\n{chr(10).join(lines)}\n"
    text += f"return {names} : {', '.join(results)}\n}}\n{RESOURCES}"
    module = ir.Module.parse(text, ir.Context())
    assert not externalise(module, Path("nothing.irpa"))
    program = Program.parse(module.operation.get_asm())
    return Machine(program).run(program.functions["main"].regions[0], [])


def test_integers_in_resources_are_their_elements() -> None:
    found = values(('"a b"', "2,2", "si64"), ("bytes", "3", "si8"), ("bytes", "3", "ui8"))
    assert [value.tolist() for value in found] == [[[7, 5], [-1, 0]], [-1, 127, -128], [255, 127, 128]]


def test_booleans_in_resources_are_a_byte_each() -> None:
    found = values(("bits", "10", "i1"), ("none", "2", "i1"), ("all", "2", "i1"))
    assert [value.int().tolist() for value in found] == [[1, 0, 0, 1, 0, 0, 0, 1, 0, 1], [0, 0], [1, 1]]


def test_a_resource_that_is_not_there_is_named() -> None:
    with pytest.raises(ModelError, match="resource gone of a"):
        values(("gone", "3", "si8"))
