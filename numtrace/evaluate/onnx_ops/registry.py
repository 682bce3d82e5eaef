"""Which function evaluates which ONNX op, and what an op says of itself.

A function gets the op and its operands, None for one that is left out, and returns the result or a tuple of results:
float64 where the op has floats, integers of the op's own type. What it does is the operator's text in ONNX's
``Operators.md``; ``tests/evaluate/test_onnx_ops.py`` and the suite of ``bench/onnx_suite.py`` hold it against that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from iree.compiler import ir

from numtrace.errors import UncoveredOp
from numtrace.evaluate.op import Op

_PREFIX = "torch.onnx."
_ELEMENT = re.compile(r",\s*([A-Za-z0-9]+)>$")

FLOATS = frozenset(("f64", "f32", "f16", "bf16"))
#: Element types that torch has arithmetic of, as MLIR writes them.
ARITHMETIC = FLOATS | {"i1", "si8", "si16", "si32", "si64", "ui8"}
FLOATS_OF_A_BYTE = frozenset(("f8E4M3FN", "f8E5M2", "f8E4M3FNUZ", "f8E5M2FNUZ"))
#: With those that it can only hold, and cast.
ALL = ARITHMETIC | FLOATS_OF_A_BYTE | {"ui16", "ui32", "ui64"}


@dataclass(frozen=True, slots=True)
class _Evaluation:
    function: Callable
    reads: frozenset[str]
    since: int
    types: frozenset[str]


_EVALUATIONS: dict[str, _Evaluation] = {}


def evaluates_onnx(
    *names: str, reads: Iterable[str] = (), since: int, types: Collection[str] = ARITHMETIC
) -> Callable[[Callable], Callable]:
    """Registers ``fn(op, *operands)``.

    It is for operators of opset ``since`` or later, with no attributes but those that it ``reads`` and no element types
    but ``types``.
    """

    def register(fn: Callable) -> Callable:
        for name in names:
            if name in _EVALUATIONS:
                raise ValueError(f"two evaluations of onnx.{name}")
            _EVALUATIONS[name] = _Evaluation(fn, frozenset(reads), since, frozenset(types))
        return fn

    return register


def covers(name: str, attributes: Iterable[str], types: Iterable[str], version: int | None) -> bool:
    """Whether ``onnx.<name>`` can be evaluated.

    Args:
        attributes: its own, such as ``torch.onnx.axis``.
        types: those of its operands and results, as MLIR writes them.
        version: the opset that its function is of, None where that is not known.
    """
    found = _EVALUATIONS.get(name)
    if found is None or version is None or version < found.since:
        return False
    read = {_PREFIX + one for one in found.reads}
    if not all(one in read for one in attributes if one.startswith(_PREFIX)):
        return False
    return all(type_ == "!torch.none" or _element(type_) in found.types for type_ in types)


def names() -> set[str]:
    """The operators that have an evaluation."""
    return {*_EVALUATIONS}


def onnx_function(name: str) -> Callable:
    """The function for ``onnx.<name>``.

    Raises:
        UncoveredOp: there is none.
    """
    found = _EVALUATIONS.get(name)
    if found is None:
        raise UncoveredOp(f"onnx.{name}")
    return found.function


def given(op: Op, name: str, default: Any = None) -> Any:
    """An attribute: an int, a float, a text, or a list of them. Floats are of 32 bits, the defaults too."""
    key = _PREFIX + name
    if key not in op.attributes:
        return float(np.float32(default)) if isinstance(default, float) else default
    attribute = op.attributes[key].maybe_downcast()
    if isinstance(attribute, ir.ArrayAttr):
        return [part.maybe_downcast().value for part in attribute]
    return attribute.value


def element(type_: ir.Type) -> str:
    """The element type of a ``!torch.vtensor``, such as ``f32`` or ``ui8``."""
    found = _element(str(type_))
    if not found:
        raise UncoveredOp(f"type {type_}")
    return found


def _element(type_: str) -> str:
    match = _ELEMENT.search(type_)
    return match[1] if match else ""
