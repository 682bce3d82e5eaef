"""The first job of every command: reads and stamps the model, takes its weights out, and checks what is cheap to check.

It needs IREE's compiler and numpy only. torch and IREE's runtime take seconds to load: a model, a flag or an input that
is refused does not wait for them.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from iree.compiler import ir

from numtrace.errors import ModelError
from numtrace.instrument.compiler import parse_error
from numtrace.instrument.constants import SCOPE, externalise
from numtrace.instrument.features import require_host
from numtrace.instrument.inputs import given_inputs
from numtrace.instrument.signature import Signature, find_function
from numtrace.instrument.stamp import stamp_module
from numtrace.instrument.tensor_type import TensorType
from numtrace.models.config import NAMES
from numtrace.worker.channel import Channel


def read(job: dict[str, Any], channel: Channel) -> None:
    """Writes ``source.mlir`` and ``ops.json`` into ``job["folder"]``.

    Sends ``read`` with what :func:`numtrace.worker.prepare.prepare` goes on from.
    """
    folder = Path(job["folder"])
    model = Path(job["model"])
    channel.stage("read the model")
    data = _read(model)
    module = _parse(data, model)
    notices: list[str] = []
    declared = find_function(module, job["function"])
    signature = _as_compiled(module, declared, job["flags"], notices)
    table = stamp_module(module, model.name)
    inlined = folder / "inlined.irpa"
    params = list(job["params"])
    if externalise(module, inlined):
        params.append([SCOPE, str(inlined)])
    source = folder / "source.mlir"
    source.write_text(module.operation.get_asm(enable_debug_info=True), encoding="utf-8")
    (folder / "ops.json").write_text(json.dumps([op.as_dict() for op in table]), encoding="utf-8")

    channel.stage("check the target")
    measured = job.get("measured")
    cpu = measured["cpu"] if measured else require_host(job["flags"], job["compile_timeout"])
    if job["inputs"]:
        given_inputs(job["inputs"], declared.arguments)
    channel.send(
        "read",
        function=signature.name,
        declared=[[list(t.shape), t.dtype] for t in declared.arguments],
        arguments=[[list(t.shape), t.dtype] for t in signature.arguments],
        results=[[list(t.shape), t.dtype] for t in signature.results],
        sha256=hashlib.sha256(data).hexdigest(),
        reference=_reference(module),
        params=params,
        cpu=cpu,
        notices=notices,
    )


def _reference(module: ir.Module) -> str:
    """What may say what the source means: ``torch`` where it has ops of torch and none of ONNX, ``onnx`` where it has
    ops of that (:func:`numtrace.worker.prepare.prepare` knows if numtrace evaluates them all), else ``self``."""
    torch_ops, onnx_ops = [], []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "torch.operator" and op.attributes["name"].value.startswith("onnx."):
            onnx_ops.append(op)
        elif op.name.startswith(("torch.aten", "torch.operator", "torch.prims")):
            torch_ops.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return "onnx" if onnx_ops else "torch" if torch_ops else "self"


def _as_compiled(module: ir.Module, signature: Signature, flags: list[str], notices: list[str]) -> Signature:
    """The signature that the compiled function has: IREE turns f64 into f32 unless it is told not to."""
    types = [*signature.arguments, *signature.results]
    in_f64 = any(type_.dtype == "f64" for type_ in types) or _computes_in_f64(module)
    if f"{_DEMOTE}=false" in flags or f"{_DEMOTE}=0" in flags or not in_f64:
        return signature
    notices.append(f"IREE computes the model's f64 in f32; keep f64 with {_DEMOTE}=false after --")
    narrow = [TensorType(t.shape, "f32") if t.dtype == "f64" else t for t in types]
    return Signature(signature.name, narrow[: len(signature.arguments)], narrow[len(signature.arguments) :])


def _computes_in_f64(module: ir.Module) -> bool:
    """Whether some op other than a constant has an f64 operand or result; torch's scalars are no f64."""
    found = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        values = [*op.operands, *op.results]
        if op.name not in ("arith.constant", "arith.truncf") and any(
            _F64.search(str(v.type)) for v in values
        ):
            found.append(op)
            return ir.WalkResult.INTERRUPT
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return bool(found)


#: The element type of a tensor, or a scalar.
_F64 = re.compile(r"\bf64\b|[0-9?]xf64\b")

#: On by default in IREE.
_DEMOTE = "--iree-input-demote-f64-to-f32"


def _read(model: Path) -> bytes:
    try:
        return model.read_bytes()
    except FileNotFoundError:
        raise ModelError(
            f"there is no file {model}; give an .mlir, .mlirbc, .onnx or .pt2 file, package.module:factory, or one of "
            f"the built-in models {', '.join(NAMES)}"
        ) from None
    except OSError as error:
        raise ModelError(f"{model} cannot be read: {error.strerror}") from None


def _parse(data: bytes, model: Path) -> ir.Module:
    context = ir.Context()
    try:
        # Bytes may be bytecode, which the parser tells by its magic.
        return ir.Module.parse(data if data[:4] == b"ML\xefR" else data.decode("utf-8"), context)
    except UnicodeDecodeError:
        raise ModelError(f"{model.name} is neither MLIR text nor MLIR bytecode") from None
    except ir.MLIRError as error:
        raise parse_error(error, model) from None
