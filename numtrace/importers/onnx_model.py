"""``.onnx``: through IREE's own importer, with large initialisers as parameters and node names in the locations."""

from __future__ import annotations

import re
from ast import literal_eval
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from iree.compiler import ir

from numtrace.errors import ModelError, UsageError
from numtrace.importers.blame import cause, tell
from numtrace.importers.imported import FUNCTION, SCOPE, Imported, deliver
from numtrace.worker.channel import Channel

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto

#: Elements from which an initialiser becomes a parameter: the default of IREE's importer. The operands that IREE must
#: know when it compiles (shapes, axes, scales of a resize) are smaller.
THRESHOLD = 100

#: Where torch's exporter keeps the modules that a node came from, outermost first, as a Python list.
_SCOPES = "pkg.torch.onnx.name_scopes"


def import_onnx(job: dict[str, Any], channel: Channel) -> None:
    """The worker's job ``import-onnx``."""
    channel.stage("read the model")
    deliver(read(Path(job["source"])), job, channel)


def read(path: Path) -> Imported:
    """Imports an ONNX model, its external data from beside it.

    Raises:
        UsageError: the ``onnx`` package is missing.
        ModelError: no such file, no valid ONNX, or IREE's importer cannot take it.
    """
    try:
        import onnx
    except ModuleNotFoundError:
        raise UsageError(f"{path.name} needs the onnx package: pip install 'numtrace[onnx]'") from None
    from iree.compiler.extras import onnx_importer
    from iree.compiler.tools.import_onnx import importer_externalization_overrides as overrides

    model = _loaded(path)
    modules = _name_nodes(model.graph)
    model.graph.name = FUNCTION
    settings = overrides.ParamData(None, THRESHOLD, SCOPE, str(path.parent), "", None)
    info = onnx_importer.ModelInfo(model)
    module = info.create_module(context=ir.Context()).operation
    try:
        importer = overrides.IREENodeImporter.define_function(info.main_graph, module, settings)
        importer.import_all()
        module.verify()
    except Exception as error:
        tell(error)
        raise ModelError(f"IREE's importer cannot take {path.name}: {cause(error)}") from None
    keys = _refer_to_parameters(module, {symbol: name for name, symbol in importer.globals})
    _place(module, modules)
    parameters = {}
    for name, symbol in importer.globals:
        tensor = info.main_graph.initializer_map[name]
        try:
            parameters[keys[symbol]] = np.asarray(
                onnx.numpy_helper.to_array(tensor, base_dir=str(path.parent))
            )
        except (ValueError, OSError, onnx.checker.ValidationError) as error:
            tell(error)
            raise ModelError(f"the elements of {name} cannot be read: {cause(error)}") from None
    return Imported(module.get_asm(enable_debug_info=True), parameters)


def _loaded(path: Path) -> ModelProto:
    """The model with shapes inferred, functions of its own inlined, and large external data left where it is."""
    import onnx
    from google.protobuf.message import DecodeError
    from onnx import external_data_helper, inliner

    if not path.is_file():
        raise ModelError(f"there is no file {path}")
    try:
        onnx.checker.check_model(str(path))
        model = onnx.load(str(path), load_external_data=False)
        if model.functions:
            model = inliner.inline_local_functions(model)
        for tensor in model.graph.initializer:
            if external_data_helper.uses_external_data(tensor) and np.prod(tensor.dims) < THRESHOLD:
                external_data_helper.load_external_data_for_tensor(tensor, str(path.parent))
        return onnx.shape_inference.infer_shapes(model, data_prop=True)
    except (
        DecodeError,
        onnx.checker.ValidationError,
        onnx.shape_inference.InferenceError,
        OSError,
        ValueError,
        RuntimeError,
    ) as error:
        tell(error)
        raise ModelError(f"{path.name} is no valid ONNX model: {cause(error)}") from None


def _name_nodes(graph: GraphProto) -> dict[str, str]:
    """Gives nodes without a name that of their op, numbered; the module that each name came from, where known."""
    taken = {node.name for node in _nodes(graph)}
    counts: Counter[str] = Counter()
    modules: dict[str, str] = {}
    for node in _nodes(graph):
        while not node.name:
            number = counts[node.op_type]
            counts[node.op_type] += 1
            name = f"{node.op_type}_{number}" if number else node.op_type
            if name not in taken:
                node.name = name
                taken.add(name)
        modules[node.name] = _module(node)
    return modules


def _nodes(graph: GraphProto) -> Iterator[NodeProto]:
    """Every node, those of the bodies of loops and branches too."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                yield from _nodes(body)


def _module(node: NodeProto) -> str:
    """The path of the module that a node came from, as torch's exporters write it: in metadata, or in its name."""
    for entry in node.metadata_props:
        if entry.key == _SCOPES:
            try:
                scopes = literal_eval(entry.value)
            except (ValueError, SyntaxError):
                continue
            # The last one is the op; each module's is its whole path.
            return str(scopes[-2]) if isinstance(scopes, list) and len(scopes) > 1 else ""
    return ".".join(re.split(r"/+", node.name.strip("/"))[:-1])


def _refer_to_parameters(module: ir.Operation, names: dict[str, str]) -> dict[str, str]:
    """Spells the parameters as ``#flow.parameter.named``; the key of each global's.

    ``names`` are the initialisers' by symbol. One that MLIR's attribute would have to escape, which it does not, is
    called by its number.
    """
    keys: dict[str, str] = {}
    for view in module.regions[0].blocks[0].operations:
        op = view.operation
        if op.name == "util.global":
            symbol = op.attributes["sym_name"].value
            name = names[symbol]
            plain = name.isprintable() and not {*name} & {*'"\\'}
            key = name if plain else f"initializer {len(keys)}"
            type_ = ir.TypeAttr(op.attributes["type"]).value
            named = f'#flow.parameter.named<"{SCOPE}"::"{key}"> : {type_}'
            op.attributes["initial_value"] = ir.Attribute.parse(named, module.context)
            keys[symbol] = key
            op.location = ir.Location.name(name, context=module.context)
    return keys


def _place(module: ir.Operation, modules: dict[str, str]) -> None:
    """Adds the module path to the location of every node: ``loc("conv"("block.conv"))``."""
    paths = {
        str(ir.Location.name(name, context=module.context)): (name, path)
        for name, path in modules.items()
        if path
    }

    def visit(op: ir.Operation) -> ir.WalkResult:
        found = paths.get(str(op.location))
        if found:
            name, path = found
            child = ir.Location.name(path, context=module.context)
            op.location = ir.Location.name(name, child, context=module.context)
        return ir.WalkResult.ADVANCE

    module.walk(visit)
