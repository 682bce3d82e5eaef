"""The job before any variant: read and stamp the model, take weights out, check inputs, parameters, host."""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from iree.compiler import ir

from numtrace.errors import CompileError, InputError, ModelError
from numtrace.instrument.compiler import compile_file, parse_error, phase
from numtrace.instrument.constants import SCOPE, externalise
from numtrace.instrument.dtypes import to_numpy, to_torch
from numtrace.instrument.failure import name_ops
from numtrace.instrument.features import require_host
from numtrace.instrument.inputs import load_golden, load_inputs
from numtrace.instrument.signature import Signature, find_function
from numtrace.instrument.stamp import stamp_module
from numtrace.instrument.tensor_type import TensorType
from numtrace.worker.channel import Channel

# torch and IREE's runtime take seconds to import: a model, a flag or an input that is refused does not wait for
# them, so what needs them is imported inside functions here.


def prepare(job: dict[str, Any], channel: Channel) -> None:
    """Writes ``source.mlir``, ``input.mlir``, ``ops.json`` and the inputs into ``job["folder"]``.

    Sends ``prepared`` with what the report says about model and environment.
    """
    folder = Path(job["folder"])
    model = Path(job["model"])
    channel.stage("read the model")
    data = _read(model)
    module = _parse(data, model)
    notices: list[str] = []
    signature = _as_compiled(module, find_function(module, job["function"]), job["flags"], notices)
    table = stamp_module(module, model.name)
    inlined = folder / "inlined.irpa"
    params = list(job["params"])
    if externalise(module, inlined):
        params.append([SCOPE, str(inlined)])
    source = folder / "source.mlir"
    source.write_text(module.operation.get_asm(enable_debug_info=True), encoding="utf-8")
    (folder / "ops.json").write_text(json.dumps([op.as_dict() for op in table]), encoding="utf-8")

    channel.stage("check the target")
    cpu = require_host(job["flags"], job["compile_timeout"])

    channel.stage("check inputs and parameters")
    for number in range(job["seeds"]):
        values, said = load_inputs(job["inputs"], signature.arguments, job["seed"] + number)
        notices += said if number == 0 else []
        np_folder = folder / "inputs" / str(job["seed"] + number)
        np_folder.mkdir(parents=True, exist_ok=True)
        for index, value in enumerate(values):
            _store(np_folder, index, to_numpy(value))
    if job["expected"]:
        for index, value in enumerate(
            load_golden([Path(path) for path in job["expected"]], signature.results)
        ):
            np.save(folder / "inputs" / f"expected{index}.npy", value.double().numpy())

    _require_runtime(module, params, job["device"])

    channel.stage("compile to the input stage")
    try:
        phase(source, folder / "input.mlir", None, "input", job["flags"], job["compile_timeout"])
    except CompileError as error:
        raise name_ops(error, [op.as_dict() for op in table]) from None
    channel.send(
        "prepared",
        function=signature.name,
        arguments=[_described(t, values) for t, values in zip(signature.arguments, values, strict=True)],
        results=[[list(t.shape), t.dtype] for t in signature.results],
        sha256=hashlib.sha256(data).hexdigest(),
        reference="torch" if _evaluated_by_torch(module) else "self",
        params=params,
        cpu=cpu,
        notices=notices,
        environment=_environment(job),
    )


def _evaluated_by_torch(module: ir.Module) -> bool:
    """Whether torch itself can say what the source means: it has ops of torch, and none of ONNX."""
    torch_ops, onnx_ops = [], []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "torch.operator" and op.attributes["name"].value.startswith("onnx."):
            onnx_ops.append(op)
        elif op.name.startswith(("torch.aten", "torch.operator", "torch.prims")):
            torch_ops.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return bool(torch_ops) and not onnx_ops


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


def _require_runtime(module: ir.Module, params: list, device: str) -> None:
    """Parameters for all that the module asks for, and a device to run on."""
    from numtrace.evaluate.program import Program
    from numtrace.instrument.runtime import require_device
    from numtrace.worker.modules import archives, required_parameters

    archives(params).check(required_parameters(Program(module)))
    require_device(device)


def _described(type_: Any, value: Any) -> dict[str, Any]:
    return {"shape": list(value.shape), "dtype": type_.dtype}


def _store(folder: Path, index: int, array: np.ndarray) -> None:
    """bf16 and f8, which .npy has no names for, as raw integers, and as bytes for iree-run-module."""
    if not array.dtype.isbuiltin:
        array = array.view(np.dtype(f"uint{8 * array.dtype.itemsize}"))
        array.tofile(folder / f"{index}.bin")
    np.save(folder / f"{index}.npy", array)


def stored_inputs(folder: Path, seed: int, types: list[dict[str, Any]]) -> list[Any]:
    """The inputs that :func:`prepare` wrote, as torch tensors."""
    from numtrace.instrument.dtypes import numpy_dtype

    values = []
    for index, type_ in enumerate(types):
        array = np.load(folder / "inputs" / str(seed) / f"{index}.npy", allow_pickle=False)
        values.append(to_torch(array.view(numpy_dtype(type_["dtype"]))))
    return values


def _read(model: Path) -> bytes:
    try:
        return model.read_bytes()
    except FileNotFoundError:
        raise ModelError(
            f"there is no file {model}; give an .mlir or .mlirbc file, or a built-in model"
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


def _environment(job: dict[str, Any]) -> dict[str, Any]:
    import platform
    import sys

    import iree.compiler.version as compiler
    import iree.runtime.version as runtime
    import torch

    return {
        "iree_compiler": compiler.VERSION,
        "iree_runtime": runtime.VERSION,
        "torch": torch.__version__,
        "cpu": _cpu_name(),
        "flush_denormals": _flushes_denormals(job),
        "threads": job["threads"],
        "python": platform.python_version(),
        "platform": f"{sys.platform} {platform.machine()}",
    }


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        import platform

        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


_DENORMAL = """
util.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %empty = tensor.empty() : tensor<4xf32>
  %half = arith.constant 5.0e-01 : f32
  %0 = linalg.generic {
      indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%arg0 : tensor<4xf32>) outs(%empty : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %1 = arith.mulf %in, %half : f32
    linalg.yield %1 : f32
  } -> tensor<4xf32>
  util.return %0 : tensor<4xf32>
}
"""


def _flushes_denormals(job: dict[str, Any]) -> bool | None:
    """Whether compiled code on the device flushes denormals: half of the least normal f32, by running it."""
    import torch

    from numtrace.instrument.runtime import run_module
    from numtrace.worker.routes import REPLACING

    # Code that replaces a dispatch of the model's is not for this program's dispatch of the same name.
    flags = [flag for flag in job["flags"] if not flag.startswith(REPLACING)]
    try:
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder, "denormal.mlir"), Path(folder, "denormal.vmfb")
            source.write_text(_DENORMAL)
            compile_file(source, target, flags, timeout=60)
            least = torch.full((4,), torch.finfo(torch.float32).tiny)
            (half,) = run_module(target, "main", [least], [], device=job["device"]).outputs
            return bool((half.view(torch.int32) == 0).all())
    except (InputError, ModelError):
        raise
    except Exception:  # the probe says nothing then; the model's own run will tell what is wrong
        return None


__all__ = ["Signature", "prepare", "stored_inputs"]
