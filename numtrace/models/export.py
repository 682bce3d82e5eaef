"""Torch module to torch-dialect MLIR: parameters outside, op names and module paths in the locations."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from iree.compiler import ir
from iree.compiler.extras.fx_importer import ContextCache, FxImporter, FxImporterHooks, InputInfo
from torch import nn

#: The parameter scope of exported programs (``#flow.parameter.named<"model"::"…">``).
SCOPE = "model"


def export_module(module: nn.Module, inputs: Sequence[torch.Tensor]) -> str:
    """The MLIR text of ``module`` traced with ``inputs``.

    Every op has a location ``loc("<op>"("<module path>"))``, e.g.
    ``loc("convolution_2"("decoder.mid_block.resnets.0.conv1"))``; no file of this machine is named.
    Parameters become ``util.global`` ops that refer to ``"model"::"<parameter name>"``.
    """
    program = torch.export.export(module, tuple(inputs)).run_decompositions(_composites())
    context = ir.Context()
    importer = FxImporter(context=context, hooks=_ExternalParameters())
    importer._cc = _NamedLocations(context, py_attr_tracker=importer._py_attr_tracker)
    importer.import_program(program, func_name="main")
    return importer.module_op.get_asm(enable_debug_info=True)


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
        stack = node.meta.get("nn_module_stack")
        path = list(stack.values())[-1][0] if stack else ""
        child = ir.Location.name(path, context=self._c) if path else None
        return ir.Location.name(node.name, child, context=self._c)


class _ExternalParameters(FxImporterHooks):
    """Parameters and buffers as globals that name an entry of a parameter archive."""

    def prepare_module(self, module_op: ir.Operation) -> None:
        self._block = module_op.regions[0].blocks[0]

    def resolve_input(self, gni, value: torch.Tensor, info: InputInfo) -> ir.Value:
        name = info.input_spec.target
        symbol = name.replace(".", "_")
        sizes = ",".join(str(size) for size in value.shape)
        element = str(info.ir_type).rsplit(",", 1)[1].rstrip(">")
        builtin = ir.Type.parse("tensor<" + "".join(f"{size}x" for size in value.shape) + f"{element}>")
        assert str(info.ir_type) == f"!torch.vtensor<[{sizes}],{element}>", info.ir_type
        parameter = ir.Attribute.parse(f'#flow.parameter.named<"{SCOPE}"::"{name}"> : {builtin}')
        with ir.InsertionPoint.at_block_begin(self._block):
            ir.Operation.create(
                "util.global",
                attributes={
                    "sym_name": ir.StringAttr.get(symbol),
                    "sym_visibility": ir.StringAttr.get("private"),
                    "type": ir.TypeAttr.get(builtin),
                    "initial_value": parameter,
                },
                regions=0,
            )
        load = ir.Operation.create(
            "util.global.load", results=[builtin], attributes={"global": ir.FlatSymbolRefAttr.get(symbol)}
        )
        return ir.Operation.create(
            "torch_c.from_builtin_tensor", results=[info.ir_type], operands=[load.result]
        ).result
