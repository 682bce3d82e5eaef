"""The functions of a source module and what they take and return."""

from __future__ import annotations

import re
from dataclasses import dataclass

from iree.compiler import ir

from numtrace.errors import ModelError
from numtrace.instrument.tensor_type import TensorType

_TORCH = re.compile(r"^!torch\.v?tensor<\[([0-9?,]*)\],\s*([A-Za-z0-9]+)>$")
_BUILTIN = re.compile(r"^tensor<((?:[0-9?]+x)*[A-Za-z0-9]+)(?:,.*)?>$", re.DOTALL)

#: What a function of complex numbers can do instead: inside of it they are traced.
_AS_FLOATS = {
    "argument": "take two floats for each number, which torch.view_as_real makes, and torch.view_as_complex of them",
    "result": "return two floats for each number, which torch.view_as_real makes",
}


@dataclass(frozen=True, slots=True)
class Signature:
    """A function's name, and the types of its arguments and results."""

    name: str
    arguments: list[TensorType]
    results: list[TensorType]


def find_function(module: ir.Module, wanted: str | None) -> Signature:
    """The function called ``wanted``; without a name ``main``, or the only public one.

    Raises:
        ModelError: there is no such function (the message lists those), it returns nothing, or it is not one of
            tensors of real numbers.
    """
    functions: dict[str, ir.Operation] = {}
    for view in module.body.operations:
        op = view.operation
        if op.name in ("func.func", "util.func") and len(op.regions[0].blocks):
            visibility = (
                op.attributes["sym_visibility"].value if "sym_visibility" in op.attributes else "public"
            )
            if visibility != "private":
                functions[op.attributes["sym_name"].value] = op
    name = wanted or (
        "main" if "main" in functions else next(iter(functions), "") if len(functions) == 1 else ""
    )
    if name not in functions:
        if not functions:
            raise ModelError("the model has no public function with a body: there is nothing to run")
        asked = (
            f"the model has no function {wanted!r}"
            if wanted
            else "the model has several functions; choose one with --function"
        )
        raise ModelError(f"{asked}; its functions: {', '.join(functions)}")
    type_ = functions[name].attributes["function_type"].value
    if not len(type_.results):
        raise ModelError(f"{name} returns nothing: the model has no output, and there is nothing to compare")
    return Signature(
        name,
        [_tensor_type(t, name, "argument", i) for i, t in enumerate(type_.inputs)],
        [_tensor_type(t, name, "result", i) for i, t in enumerate(type_.results)],
    )


def _tensor_type(type_: ir.Type, function: str, what: str, index: int) -> TensorType:
    text = str(type_)
    if match := _TORCH.match(text):
        sizes = [size for size in match[1].split(",") if size]
        return TensorType(tuple(None if size == "?" else int(size) for size in sizes), _signless(match[2]))
    if match := _BUILTIN.match(text):
        return TensorType.parse(match[1])
    given = f"{what} {index} of {function} is {text}"
    if "complex<" in text:
        raise ModelError(f"{given}; complex {what}s are not handled: {_AS_FLOATS[what]}")
    raise ModelError(
        f"{given}; numtrace handles functions of tensors whose rank and element type are written out"
    )


def _signless(dtype: str) -> str:
    """torch says si64, builtin tensors i64; unsigned keeps its sign."""
    return dtype[1:] if dtype.startswith("si") else dtype
