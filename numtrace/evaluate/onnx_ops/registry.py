"""Which function evaluates which ONNX op, and what an op says of itself.

A function gets the op and its operands, None for one that is left out, and returns the result or a tuple of results:
float64 where the op has floats, integers of the op's own type. What it does is the operator's text in ONNX's
``Operators.md``; ``tests/evaluate/test_onnx_ops.py`` and the suite of ``bench/onnx_suite.py`` hold it against that.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from iree.compiler import ir

from numtrace.errors import UncoveredOp
from numtrace.evaluate.op import Op

_PREFIX = "torch.onnx."
_FUNCTIONS: dict[str, Callable] = {}
_UNREAD: dict[str, tuple[str, ...]] = {}
_ELEMENT = re.compile(r",\s*([A-Za-z0-9]+)>$")


def evaluates_onnx(*names: str, unless: tuple[str, ...] = ()) -> Callable[[Callable], Callable]:
    """Registers ``fn(op, *operands)``; an op with one of the attributes ``unless`` it does not evaluate."""

    def register(fn: Callable) -> Callable:
        for name in names:
            if name in _FUNCTIONS:
                raise ValueError(f"two evaluations of onnx.{name}")
            _FUNCTIONS[name], _UNREAD[name] = fn, unless
        return fn

    return register


def covers(name: str, attributes: set[str]) -> bool:
    """Whether ``onnx.<name>`` with these attributes (``torch.onnx.axis``) can be evaluated."""
    return name in _FUNCTIONS and not any(_PREFIX + one in attributes for one in _UNREAD[name])


def onnx_function(name: str) -> Callable:
    """The function for ``onnx.<name>``.

    Raises:
        UncoveredOp: there is none.
    """
    fn = _FUNCTIONS.get(name)
    if fn is None:
        raise UncoveredOp(f"onnx.{name}")
    return fn


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
    match = _ELEMENT.search(str(type_))
    if match is None:
        raise UncoveredOp(f"type {type_}")
    return match[1]
