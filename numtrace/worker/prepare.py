"""The job before any variant: inputs, parameters and the device, and the model at the ``input`` stage."""

from __future__ import annotations

import json
import platform
import sys
import tempfile
from pathlib import Path
from typing import Any

import iree.compiler.version as compiler
import iree.runtime.version as runtime
import numpy as np
import torch
from iree.compiler import ir

import numtrace.evaluate  # noqa: F401  (registers the ops)
from numtrace.attribute.findings import listed
from numtrace.errors import CompileError, InputError, ModelError
from numtrace.evaluate.device import require_reference_device
from numtrace.evaluate.onnx_ops.registry import covers
from numtrace.evaluate.op import walk
from numtrace.evaluate.program import Program
from numtrace.instrument.compiler import compile_file, phase
from numtrace.instrument.devices import require_device
from numtrace.instrument.dtypes import is_ml_dtype, numpy_dtype, to_numpy, to_torch, torch_dtype
from numtrace.instrument.failure import name_ops
from numtrace.instrument.inputs import load_golden, load_inputs
from numtrace.instrument.runtime import run_module
from numtrace.instrument.tensor_type import TensorType
from numtrace.worker.channel import Channel
from numtrace.worker.modules import archives, required_parameters
from numtrace.worker.routes import REPLACING


def prepare(job: dict[str, Any], channel: Channel) -> None:
    """Goes on from ``job["read"]``, the event of :func:`numtrace.worker.read.read`, in the same folder.

    Writes the inputs and ``input.mlir``, and sends ``prepared`` with what the report says about model and environment.
    """
    folder, read = Path(job["folder"]), job["read"]
    declared, arguments, results = (
        [TensorType(tuple(shape), dtype) for shape, dtype in read[key]]
        for key in ("declared", "arguments", "results")
    )
    notices = list(read["notices"])
    channel.stage("check inputs and parameters")
    for number in range(job["seeds"]):
        values, said = load_inputs(job["inputs"], declared, job["seed"] + number)
        values = [value.to(torch_dtype(t.dtype)) for value, t in zip(values, arguments, strict=True)]
        notices += said if number == 0 else []
        np_folder = folder / "inputs" / str(job["seed"] + number)
        np_folder.mkdir(parents=True, exist_ok=True)
        for index, value in enumerate(values):
            _store(np_folder, index, to_numpy(value))
    if job["expected"]:
        for index, value in enumerate(load_golden([Path(path) for path in job["expected"]], results)):
            np.save(folder / "inputs" / f"expected{index}.npy", value.double().numpy())

    source = folder / "source.mlir"
    module = ir.Module.parse(source.read_bytes(), ir.Context())
    program = Program(module)
    archives(read["params"]).check(required_parameters(program))
    reference = read["reference"]
    if reference == "onnx" and (unknown := unknown_operators(program)):
        reference = "self"
        notices.append(
            "the reference is the program that IREE's import makes of the ONNX operators, since some have no "
            f"evaluation: {listed(unknown, 5)}"
        )
    require_device(job["device"])
    require_reference_device(job["reference_device"])

    channel.stage("compile to the input stage")
    try:
        phase(source, folder / "input.mlir", None, "input", job["flags"], job["compile_timeout"])
    except CompileError as error:
        raise name_ops(error, json.loads((folder / "ops.json").read_text(encoding="utf-8"))) from None
    channel.send(
        "prepared",
        **{key: read[key] for key in ("function", "results", "sha256", "params", "cpu")},
        reference=reference,
        arguments=[_described(t, values) for t, values in zip(arguments, values, strict=True)],
        notices=notices,
        environment=_environment(job),
    )


def unknown_operators(program: Program) -> list[str]:
    """The ONNX operators of a program that the evaluator does not know as they are there."""
    unknown: dict[str, None] = {}
    for function in program.functions.values():
        opset = function.attributes.get("torch.onnx_meta.opset_version")
        version = None if opset is None else opset.value
        for op in walk(function.regions):
            if op.name == "torch.operator":
                name = op.attributes["name"].value.removeprefix("onnx.")
                types = map(str, (*op.operand_types, *op.result_types))
                if op.regions or not covers(name, op.attributes, types, version):
                    unknown[name] = None
    return [*unknown]


def _described(type_: Any, value: Any) -> dict[str, Any]:
    return {"shape": list(value.shape), "dtype": type_.dtype}


def _store(folder: Path, index: int, array: np.ndarray) -> None:
    """bf16 and f8, which .npy has no names for, as raw integers, and as bytes for iree-run-module."""
    if is_ml_dtype(array.dtype):
        array = array.view(np.dtype(f"uint{8 * array.dtype.itemsize}"))
        array.tofile(folder / f"{index}.bin")
    np.save(folder / f"{index}.npy", array)


def stored_inputs(folder: Path, seed: int, types: list[dict[str, Any]]) -> list[Any]:
    """The inputs that :func:`prepare` wrote, as torch tensors."""
    values = []
    for index, type_ in enumerate(types):
        array = np.load(folder / "inputs" / str(seed) / f"{index}.npy", allow_pickle=False)
        values.append(to_torch(array.view(numpy_dtype(type_["dtype"]))))
    return values


def _environment(job: dict[str, Any]) -> dict[str, Any]:
    measured = job.get("measured")
    return {
        "iree_compiler": compiler.VERSION,
        "iree_runtime": runtime.VERSION,
        "torch": torch.__version__,
        "cpu": _cpu_name(),
        "flush_denormals": measured["flush_denormals"] if measured else _flushes_denormals(job),
        "threads": job["threads"],
        "python": platform.python_version(),
        "platform": f"{sys.platform} {platform.machine()}",
    }


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
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
