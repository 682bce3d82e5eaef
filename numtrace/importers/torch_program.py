"""Torch modules and exported programs to MLIR: parameters outside, op names and module paths in the locations."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, NoReturn

import torch
from iree.compiler import ir
from iree.compiler.extras.fx_importer import (
    ContextCache,
    FxImporter,
    FxImporterHooks,
    GraphNodeImporter,
    InputInfo,
)
from torch import nn
from torch._decomp import decomposition_table
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind
from torch.utils import _pytree as pytree

from numtrace.errors import ModelError, NumtraceError
from numtrace.importers.blame import cause, place, tell
from numtrace.importers.imported import FUNCTION, SCOPE, Imported
from numtrace.instrument.dtypes import from_torch, to_numpy, torch_dtype
from numtrace.instrument.tensor_type import TensorType


def export_fake(make: Callable[[], nn.Module], types: Sequence[TensorType]) -> str:
    """Like `export_module` for ``make()`` and inputs of ``types``, with no weight ever allocated."""
    with FakeTensorMode(allow_non_fake_inputs=False):
        inputs = [torch.empty(type_.static_shape, dtype=torch_dtype(type_.dtype)) for type_ in types]
        return export_module(make().eval(), inputs)


def export_module(module: nn.Module, inputs: Sequence[torch.Tensor]) -> str:
    """The MLIR text of ``module`` traced with ``inputs``; its function is ``main``.

    Every op has a location ``loc("<op>"("<module path>"))``, e.g.
    ``loc("convolution_2"("decoder.mid_block.resnets.0.conv1"))``; no file of this machine is named.
    Parameters become ``util.global`` ops that refer to ``"model"::"<parameter name>"``, in module order,
    each under its own name as symbol and location; buffers and constants do too.

    Raises:
        ModelError: torch.export cannot trace it, or IREE's importer has no op for what came out.
    """
    lowered = _lowered(export(module, tuple(inputs)))
    return _text(lowered, _state(lowered))


def export(
    module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None = None
) -> ExportedProgram:
    """``torch.export.export``; ModelError with the cause and the line of the module where it cannot."""
    with _quiet(), _blaming("torch.export cannot trace the module"):
        return torch.export.export(module, args, dict(kwargs or {}))


def import_program(program: ExportedProgram, notices: Sequence[str] = ()) -> Imported:
    """As `export_module` for a program that was exported before, with its parameters and example inputs.

    Raises:
        ModelError: it keeps state from call to call, or IREE's importer has no op for something in it.
    """
    inputs = _example_inputs(program)
    lowered = _lowered(program)
    state = _state(lowered)
    text = _text(lowered, state)
    arrays = {name: to_numpy(value.contiguous()) for name, value in state.items()}
    return Imported(text, arrays, [to_numpy(value.contiguous()) for value in inputs], notices)


def _lowered(program: ExportedProgram) -> ExportedProgram:
    """The program in ops of the torch dialect, as far as PyTorch can take the others apart."""
    with _quiet(), _blaming("torch.export cannot decompose the program"):
        program = program.run_decompositions(_composites())
        foreign = _foreign()
        if any(node.target in foreign for node in program.graph.nodes):
            program = program.run_decompositions(foreign)
        return program


#: Not in the dialect either, but lowered by its name: the only one, of all names in the compiler of IREE 3.13.
_KNOWN = {torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default}


_TRANSFORMS = {torch.ops.aten.fft_rfft.default, torch.ops.aten.stft.default}


@cache
def _foreign() -> dict:
    """PyTorch's decompositions of the ops that the dialect does not have, such as a batch norm that is not trained,
    and of those that write to an operand, which may be what such a one is made of."""
    context = ir.Context()
    return {
        op: decomposition
        for op, decomposition in decomposition_table.items()
        if isinstance(op, torch._ops.OpOverload)
        and op not in _KNOWN
        and (op._schema.is_mutable or not context.is_registered_operation(_dialect_name(op)))
    }


def _dialect_name(op: torch._ops.OpOverload) -> str:
    overload = op._schema.overload_name
    return f"torch.{op._schema.name.replace('::', '.')}{'.' if overload else ''}{overload}"


def _text(program: ExportedProgram, state: Mapping[str, torch.Tensor]) -> str:
    for name in program.graph_signature.user_inputs_to_mutate.values():
        raise ModelError(f"the module changes its input {name} in place; give one that makes new tensors")
    context = ir.Context()
    importer = FxImporter(context=context, hooks=_ExternalParameters(program, state))
    importer._cc = _NamedLocations(context, py_attr_tracker=importer._py_attr_tracker)
    with _blaming("IREE's importer cannot take the program"):
        importer.import_program(program, func_name=FUNCTION)
    return importer.module_op.get_asm(enable_debug_info=True)


def _state(program: ExportedProgram) -> dict[str, torch.Tensor]:
    """What the program reads besides its inputs, by name: parameters and buffers, then constants of more than one
    element; a single number stays in the program.
    """
    found: dict[str, torch.Tensor] = {}
    for spec in program.graph_signature.input_specs:
        if spec.kind in (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR):
            source = program.state_dict if spec.target in program.state_dict else program.constants
            value = source.get(spec.target)
            if isinstance(value, torch.Tensor) and (
                spec.kind != InputKind.CONSTANT_TENSOR or value.numel() > 1
            ):
                found[spec.target] = value.detach()
    return found


def _example_inputs(program: ExportedProgram) -> list[torch.Tensor]:
    """The tensors among the example inputs, in the order in which the function takes them."""
    if program.example_inputs is None:
        return []
    leaves = pytree.tree_leaves(program.example_inputs)
    specs = [s for s in program.graph_signature.input_specs if s.kind == InputKind.USER_INPUT]
    if len(leaves) != len(specs):
        return []  # a tree that torch reads in another way: the function's types still say what it takes
    pairs = zip(leaves, specs, strict=True)
    return [leaf.detach() for leaf, spec in pairs if not isinstance(spec.arg, ConstantArgument)]


@contextmanager
def _blaming(what: str) -> Iterator[None]:
    """Turns whatever torch or the importer raises into one sentence; the whole of it goes to the log."""
    try:
        yield
    except (NumtraceError, MemoryError):
        raise
    except Exception as error:
        tell(error)
        _refuse(what, error)


def _refuse(what: str, error: BaseException) -> NoReturn:
    said = cause(error) or type(error).__name__
    raise ModelError(f"{what}: {said}{place(error)}") from None


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the warnings that torch.export raises about torch's own code."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*LeafSpec.*", category=FutureWarning)
        yield


def _composites() -> dict:
    """Decompositions of the ops that PyTorch defines only as composites (conv2d, linear, group_norm).

    Not of Fourier transforms that IREE lowers as they are: of ``_fft_r2c``, which they are made of, it knows nothing.
    """
    composite = torch._C.DispatchKey.CompositeImplicitAutograd
    return {
        op: decomposition
        for op, decomposition in torch.export.default_decompositions().items()
        if op.has_kernel_for_dispatch_key(composite) and op not in _TRANSFORMS
    }


class _NamedLocations(ContextCache):
    """Locations made of the node's name and the path of the module it came from."""

    __slots__ = ()

    def get_node_location(self, node: torch.fx.Node) -> ir.Location:
        if node.op == "placeholder":  # asked for the function's sake: its parameters have their own locations
            return ir.Location.name(FUNCTION, context=self._c)
        stack = node.meta.get("nn_module_stack")
        path = list(stack.values())[-1][0] if stack else ""
        child = ir.Location.name(path, context=self._c) if path else None
        return ir.Location.name(node.name, child, context=self._c)


class _ExternalParameters(FxImporterHooks):
    """Parameters, buffers and constants as globals that name an entry of a parameter archive."""

    def __init__(self, program: ExportedProgram, state: Mapping[str, torch.Tensor]):
        self._state = state
        self._constants = {
            id(value): name for name, value in program.constants.items() if name in state
        }  # the importer asks by the tensor alone

    def prepare_module(self, module_op: ir.Operation) -> None:
        with module_op.context, ir.InsertionPoint(module_op.regions[0].blocks[0]):
            for name, value in self._state.items():
                with ir.Location.name(name):
                    self._declare(name, _builtin_type(value))

    def _declare(self, name: str, kind: ir.Type) -> None:
        parameter = ir.Attribute.parse(f'#flow.parameter.named<"{SCOPE}"::"{name}"> : {kind}')
        ir.Operation.create(
            "util.global",
            attributes={
                "sym_name": ir.StringAttr.get(name),
                "sym_visibility": ir.StringAttr.get("private"),
                "type": ir.TypeAttr.get(kind),
                "initial_value": parameter,
            },
            regions=0,
        )

    def resolve_input(self, gni: GraphNodeImporter, value: torch.Tensor, info: InputInfo) -> ir.Value:
        return self._load(info.input_spec.target, value, info.ir_type)

    def resolve_literal(
        self, gni: GraphNodeImporter, literal: Any, info: InputInfo | None
    ) -> ir.Value | None:
        name = self._constants.get(id(literal))
        if name is None:
            return None
        return self._load(name, literal, gni.fx_importer._cc.tensor_to_vtensor_type(literal))

    def store_produced_value(
        self, gni: GraphNodeImporter, value: Any, produced: Any, info: InputInfo
    ) -> NoReturn:
        raise ModelError(
            f"the module changes its buffer {info.input_spec.target} in every call; numtrace imports modules that "
            "keep no state: call .eval(), or make the state an input and an output"
        )

    def _load(self, name: str, value: torch.Tensor, kind: ir.Type) -> ir.Value:
        with ir.Location.name(name):
            load = ir.Operation.create(
                "util.global.load",
                results=[_builtin_type(value)],
                attributes={"global": ir.FlatSymbolRefAttr.get(name)},
            )
            cast = ir.Operation.create("torch_c.from_builtin_tensor", results=[kind], operands=[load.result])
        return cast.result


def _builtin_type(value: torch.Tensor) -> ir.Type:
    """The type of its global: builtin tensors have no signed integers."""
    element = from_torch(value.dtype).removeprefix("u")
    return ir.Type.parse(f"tensor<{''.join(f'{size}x' for size in value.shape)}{element}>")
