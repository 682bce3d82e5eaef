"""The torch dialect, op by op, by calling torch itself: the float64 reference.

An op ``torch.aten.<name>[.<overload>]`` has the operands of its schema, so it is the call of
``torch.ops.aten.<name>.<overload>`` with them. Floats are float64; dtype arguments that name a narrower float
become float64 (a cast between float types is the identity), everything else is as the program says.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import torch
from iree.compiler import ir
from torch import Tensor

from numtrace.errors import UncoveredOp, UndefinedResult
from numtrace.evaluate.constants import constant_value
from numtrace.evaluate.convolution import convolution
from numtrace.evaluate.formats import is_float_type
from numtrace.evaluate.onnx_ops.registry import onnx_function
from numtrace.evaluate.op import Op
from numtrace.evaluate.registry import evaluates, evaluates_family
from numtrace.evaluate.torch_conversion import torch_element, torch_shape
from numtrace.evaluate.types import exact_dtype, tensor_type, widen

#: c10::ScalarType as the torch dialect's integer constants carry it.
SCALAR_TYPES = {
    0: torch.uint8, 1: torch.int8, 2: torch.int16, 3: torch.int32, 4: torch.int64, 5: torch.float16,
    6: torch.float32, 7: torch.float64, 8: torch.complex32, 9: torch.complex64, 10: torch.complex128,
    11: torch.bool, 15: torch.bfloat16, 23: torch.float8_e5m2, 24: torch.float8_e4m3fn,
    25: torch.float8_e5m2fnuz, 26: torch.float8_e4m3fnuz,
}  # fmt: skip


@evaluates("torch.constant.int", "torch.constant.float", "torch.constant.bool", "torch.constant.str")
def constant(op: Op, machine) -> Any:
    return op.attributes["value"].value


@evaluates("torch.constant.none", "torch.constant.device")
def none(op: Op, machine) -> None:
    return None


@evaluates("torch.prim.ListConstruct", "torch.prim.TupleConstruct")
def list_construct(op: Op, machine, *values: Any) -> Any:
    return list(values)


@evaluates("torch.prim.ListUnpack", "torch.prim.TupleUnpack")
def list_unpack(op: Op, machine, values: Any) -> tuple[Any, ...]:
    return tuple(values)


@evaluates("torch.prim.NumToTensor.Scalar")
def number_to_tensor(op: Op, machine, number: int | float) -> Tensor:
    return torch.tensor(number, dtype=exact_dtype(torch_element(op.result_types[0])))


@evaluates("torch.vtensor.literal")
def literal(op: Op, machine) -> Tensor:
    attribute = op.attributes["value"]
    return constant_value(attribute, exact_dtype(tensor_type(attribute.type)[1]))


@evaluates(
    "torch.copy.to_vtensor",
    "torch.copy.to_tensor",
    "torch.tensor_static_info_cast",
)
def same(op: Op, machine, value: Tensor) -> Tensor:
    return value


@evaluates("torch.operator")
def operator(op: Op, machine, *operands: Any) -> Any:
    name = op.attributes["name"].value
    if name.startswith("onnx."):
        wide = [widen(value) if isinstance(value, Tensor) else value for value in operands]
        try:
            made = onnx_function(name.removeprefix("onnx."))(op, *wide)
        except (
            RuntimeError,
            TypeError,
            ValueError,
            LookupError,
            ArithmeticError,
            AssertionError,
        ) as error:  # torch's, of types that it does not have, and what no number is
            said = str(error).splitlines() or [type(error).__name__]
            raise UncoveredOp(name, said[0][:200]) from None
        made = (
            made[: len(op.results)] if isinstance(made, tuple) else (made,)
        )  # the last ones may be left out
        _require_types(op, name, made)
        return made
    return _call(op, name, machine, operands)


def _require_types(op: Op, name: str, made: Sequence[Any]) -> None:
    """A program may say of an operator what its text does not: of a pooling, one more window.

    Raises:
        UncoveredOp: a result is not of the shape or kind of number that the program has for it.
    """
    if len(made) != len(op.results):
        raise UncoveredOp(name, f"with {len(op.results)} results")
    for value, type_ in zip(made, op.result_types, strict=True):
        declared = torch_shape(type_)
        if declared is None or not isinstance(value, Tensor):
            continue
        if value.is_floating_point() != is_float_type(element := torch_element(type_)):
            raise UncoveredOp(name, f"its result is {value.dtype}, in the program {element}")
        sizes = [*value.shape]
        if len(declared) != len(sizes) or any(
            a not in (None, b) for a, b in zip(declared, sizes, strict=True)
        ):
            shown = ["?" if size is None else size for size in declared]
            raise UncoveredOp(
                name, f"by its definition its result is of shape {sizes}, in the program of {shown}"
            )


@evaluates_family("torch.aten.", "torch.prims.")
def aten(op: Op, machine, *operands: Any) -> Any:
    return _call(op, op.name, machine, operands)


def _call(op: Op, name: str, machine, operands: tuple[Any, ...]) -> Any:
    cached = op.cache.get("overload")
    if cached is None:
        cached = op.cache["overload"] = _overload(name)
    overload, arguments = cached
    float_dtype = machine.float_dtype
    if machine.contracted is not None:
        narrow, table = machine.contracted
        rounded = table.get(overload.overloadpacket.__name__, ())
        operands = tuple(_round(value, narrow) if i in rounded else value for i, value in enumerate(operands))
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for argument, value in zip(arguments, operands, strict=False):
        value = _argument(argument, value, float_dtype)
        if argument.kwarg_only:
            named[argument.name] = value
        else:
            positional.append(value)
    if _is_random(overload, dict(zip((argument.name for argument in arguments), operands, strict=False))):
        raise UndefinedResult(name, "draws random numbers")
    before = torch.get_default_dtype()
    # What makes floats from integers, or from nothing, makes them of the default type.
    torch.set_default_dtype(float_dtype)
    try:
        with torch.no_grad():
            result = _INSTEAD.get(overload, overload)(*positional, **named)
    except (RuntimeError, IndexError, TypeError, ValueError) as error:
        # torch's own refusal: this op has no value, the run goes on without it.
        why = str(error).splitlines()[0][:200]
        if isinstance(error, IndexError) or _UNDEFINED.search(why):
            raise UndefinedResult(name, f"is refused by torch ({why})") from None
        raise UncoveredOp(name, why) from None
    finally:
        torch.set_default_dtype(before)
    if isinstance(result, (tuple, list)):  # one result is a list of tensors
        return tuple(result) if len(op.results) > 1 else list(result)
    return result


def _is_random(overload, given: dict[str, Any]) -> bool:
    """Whether the op draws numbers; one that drops elements does not where none are dropped, or out of training."""
    if torch.Tag.nondeterministic_seeded not in overload.tags:
        return False
    shares = [given[name] for name in ("p", "dropout_p", "dropout") if name in given]
    trains = [given[name] for name in ("train", "training") if name in given]
    return not (shares == [0] or trains == [False])


#: What torch says of operands that an op has no result for; compiled code does not check.
_UNDEFINED = re.compile(r"out of (?:range|bounds)|ZeroDivisionError|must match the size of")


def _first_ones(value, k, dim=-1, largest=True, sorted=True) -> tuple[Tensor, Tensor]:
    ordered, order = torch.sort(value, dim=dim, descending=largest, stable=True)
    return ordered.narrow(dim, 0, k), order.narrow(dim, 0, k)


def _stable_sort(value, dim=-1, descending=False) -> tuple[Tensor, Tensor]:
    return torch.sort(value, dim=dim, descending=descending, stable=True)


#: Evaluated otherwise than by torch's own kernel. Which of equal elements comes first torch leaves open; the lowering
#: takes the first one, and a reference that takes another would accuse it.
_INSTEAD = {
    torch.ops.aten.convolution.default: convolution,
    torch.ops.aten.topk.default: _first_ones,
    torch.ops.aten.sort.default: _stable_sort,
    torch.ops.aten.argsort.default: lambda *given: _stable_sort(*given)[1],
}


def _round(value: Any, dtype: torch.dtype) -> Any:
    return value.to(dtype) if isinstance(value, Tensor) and value.is_floating_point() else value


def _overload(name: str):
    dialect, *rest = name.split(".")
    packet = None
    if dialect == "torch" and len(rest) >= 2:
        packet = getattr(getattr(torch.ops, rest[0]), rest[1], None)
    overload = getattr(packet, rest[2] if len(rest) > 2 else "default", None) if packet is not None else None
    if overload is None:
        raise UncoveredOp(name, "torch has no such op")
    return overload, overload._schema.arguments


def _argument(argument, value: Any, float_dtype: torch.dtype) -> Any:
    if isinstance(value, Tensor):
        # torch's normalisations want contiguous input in float64.
        return value.to(float_dtype).contiguous() if value.is_floating_point() else value
    if isinstance(value, list):
        return [
            _argument(argument, item, float_dtype) if isinstance(item, Tensor) else item for item in value
        ]
    if argument.name == "dtype" and isinstance(value, int):
        dtype = SCALAR_TYPES.get(value)
        if dtype is None:
            raise UncoveredOp(f"torch dtype {value}")
        if dtype.is_complex:
            return float_dtype.to_complex()
        return float_dtype if dtype.is_floating_point else dtype
    if argument.name == "half_to_float":
        return False  # in float64 there is no half to widen
    return value


@evaluates("func.call", "util.call")
def call(op: Op, machine, *operands: Any) -> Any:
    name = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
    values = machine.run(machine.program.functions[name].regions[0], operands)
    return tuple(widen(value) if isinstance(value, Tensor) else value for value in values)
