"""Loading what the jobs share: programs, their parameters as tensors, and arguments for their functions."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from iree.compiler import ir

from numtrace.errors import ModelError
from numtrace.evaluate.constants import constant_value
from numtrace.evaluate.flow import parameter_key
from numtrace.evaluate.op import Op, walk
from numtrace.evaluate.program import Printed, Program
from numtrace.evaluate.torch_conversion import signless
from numtrace.evaluate.types import exact_dtype, tensor_type
from numtrace.instrument.dtypes import to_torch
from numtrace.instrument.parameters import ParameterArchives
from numtrace.instrument.tensor_type import TensorType

#: Initial values that are written out.
_LITERALS = (ir.DenseElementsAttr, ir.FloatAttr, ir.IntegerAttr, ir.BoolAttr, Printed)


def archives(params: Iterable[tuple[str, str]]) -> ParameterArchives:
    return ParameterArchives([(scope, Path(path)) for scope, path in params])


def required_parameters(program: Program) -> dict[tuple[str, str], TensorType]:
    """Every parameter that ``program`` refers to, with its type."""
    return {key: type_ for _, key, type_ in _references(program)}


def load_globals(program: Program, params: ParameterArchives) -> dict[Any, torch.Tensor]:
    """The parameters by the symbol of their global, or by (scope, key) where an op names them directly."""
    values: dict[Any, torch.Tensor] = {
        symbol: constant_value(
            op.attributes["initial_value"], exact_dtype(tensor_type(op.attributes["type"].value)[1])
        )
        for symbol, op in program.globals.items()
        if "initial_value" in op.attributes
        and isinstance(op.attributes["initial_value"].maybe_downcast(), _LITERALS)
    }
    values.update((name, to_torch(params.array(*key, type_))) for name, key, type_ in _references(program))
    return values


def _references(program: Program) -> Iterable[tuple[Any, tuple[str, str], TensorType]]:
    for symbol, op in program.globals.items():
        if "initial_value" in op.attributes and (key := parameter_key(op.attributes["initial_value"])):
            yield symbol, key, _type(op.attributes["type"].value)
    for op in walk([program.body]):
        if op.name == "flow.tensor.constant" and (key := parameter_key(op.attributes["value"])):
            yield key, key, _type(op.result_types[0])


def _type(type_: ir.Type) -> TensorType:
    return TensorType(*tensor_type(type_))


def entry(program: Program, name: str) -> Op:
    """The function to evaluate: the body behind ``name`` (``name$async`` where there is a wrapper).

    Raises:
        ModelError: the function has several blocks, which are not evaluated.
    """
    function = program.functions.get(f"{name}$async") or program.functions.get(name)
    if function is None:
        raise ModelError(f"no function {name!r} at this stage; there is {', '.join(program.functions)}")
    if len(function.regions) != 1:
        raise ModelError(
            f"{name} has {len(function.regions)} blocks; numtrace evaluates functions of one block"
        )
    return function


def arguments(function: Op, inputs: list[torch.Tensor]) -> list[Any]:
    """One value per block argument: the inputs in order, None for fences."""
    values = iter(inputs)
    found: list[Any] = []
    for type_ in function.regions[0].argument_types:
        value = None if str(type_) == "!hal.fence" else next(values, None)
        if value is not None and not str(type_).startswith("!torch"):
            value = signless(value)
        found.append(value)
    return found
