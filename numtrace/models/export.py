"""Torch module to torch-dialect MLIR: parameters outside, op names and module paths in the locations."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from iree.compiler import ir
from iree.compiler.extras.fx_importer import (
    ContextCache,
    FxImporter,
    FxImporterHooks,
    GraphNodeImporter,
    InputInfo,
    create_mlir_tensor_type,
)
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

#: The parameter scope of exported programs (``#flow.parameter.named<"model"::"…">``).
SCOPE = "model"
FUNCTION = "main"


def export_fake(make: Callable[[], nn.Module], shapes: Sequence[tuple[int, ...]]) -> str:
    """Like `export_module` for ``make()`` and f32 inputs of ``shapes``, with no weight ever allocated."""
    with FakeTensorMode(allow_non_fake_inputs=False):
        return export_module(make().eval(), [torch.empty(shape) for shape in shapes])


def export_module(module: nn.Module, inputs: Sequence[torch.Tensor]) -> str:
    """The MLIR text of ``module`` traced with ``inputs``; its function is ``main``.

    Every op has a location ``loc("<op>"("<module path>"))``, e.g.
    ``loc("convolution_2"("decoder.mid_block.resnets.0.conv1"))``; no file of this machine is named.
    Parameters become ``util.global`` ops that refer to ``"model"::"<parameter name>"``, in module order,
    each under its own name as symbol and location.
    """
    with _quiet():
        program = torch.export.export(module, tuple(inputs)).run_decompositions(_composites())
    context = ir.Context()
    importer = FxImporter(context=context, hooks=_ExternalParameters(program.state_dict))
    importer._cc = _NamedLocations(context, py_attr_tracker=importer._py_attr_tracker)
    importer.import_program(program, func_name=FUNCTION)
    return importer.module_op.get_asm(enable_debug_info=True)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the warnings that torch.export raises about torch's own code."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*LeafSpec.*", category=FutureWarning)
        yield


def _composites() -> dict:
    """Decompositions of the ops that PyTorch defines only as composites (conv2d, linear, group_norm)."""
    composite = torch._C.DispatchKey.CompositeImplicitAutograd
    return {
        op: decomposition
        for op, decomposition in torch.export.default_decompositions().items()
        if op.has_kernel_for_dispatch_key(composite)
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
    """Parameters and buffers as globals that name an entry of a parameter archive."""

    def __init__(self, state: dict[str, torch.Tensor]):
        self._state = state

    def prepare_module(self, module_op: ir.Operation) -> None:
        with module_op.context, ir.InsertionPoint(module_op.regions[0].blocks[0]):
            for name, value in self._state.items():
                with ir.Location.name(name):
                    self._declare(name, create_mlir_tensor_type(value))

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
        name = info.input_spec.target
        with ir.Location.name(name):
            load = ir.Operation.create(
                "util.global.load",
                results=[create_mlir_tensor_type(value)],
                attributes={"global": ir.FlatSymbolRefAttr.get(name)},
            )
            cast = ir.Operation.create(
                "torch_c.from_builtin_tensor", results=[info.ir_type], operands=[load.result]
            )
        return cast.result
