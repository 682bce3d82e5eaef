"""The one module that calls IREE's runtime: loads a compiled program, runs it, and hands over its traces."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import iree.runtime as rt
import ml_dtypes
import numpy as np
import torch

from numtrace.errors import RunError
from numtrace.instrument.dtypes import to_numpy, to_torch

rt.disable_leak_checker()  # nanobind's warnings at exit are noise

_ELEMENT_TYPES = {
    np.dtype(np.float64): rt.HalElementType.FLOAT_64,
    np.dtype(np.float32): rt.HalElementType.FLOAT_32,
    np.dtype(np.float16): rt.HalElementType.FLOAT_16,
    np.dtype(ml_dtypes.bfloat16): rt.HalElementType.BFLOAT_16,
    np.dtype(ml_dtypes.float8_e4m3fn): rt.HalElementType.FLOAT_8_E4M3_FN,
    np.dtype(ml_dtypes.float8_e5m2): rt.HalElementType.FLOAT_8_E5M2,
    np.dtype(ml_dtypes.float8_e4m3fnuz): rt.HalElementType.FLOAT_8_E4M3_FNUZ,
    np.dtype(ml_dtypes.float8_e5m2fnuz): rt.HalElementType.FLOAT_8_E5M2_FNUZ,
    np.dtype(np.bool_): rt.HalElementType.BOOL_8,
    np.dtype(np.int8): rt.HalElementType.INT_8,
    np.dtype(np.int16): rt.HalElementType.INT_16,
    np.dtype(np.int32): rt.HalElementType.INT_32,
    np.dtype(np.int64): rt.HalElementType.INT_64,
    np.dtype(np.uint8): rt.HalElementType.UINT_8,
    np.dtype(np.uint16): rt.HalElementType.UINT_16,
    np.dtype(np.uint32): rt.HalElementType.UINT_32,
    np.dtype(np.uint64): rt.HalElementType.UINT_64,
}
_DTYPES = {int(element): dtype for dtype, element in _ELEMENT_TYPES.items()} | {
    int(rt.HalElementType.SINT_8): np.dtype(np.int8),
    int(rt.HalElementType.SINT_16): np.dtype(np.int16),
    int(rt.HalElementType.SINT_32): np.dtype(np.int32),
    int(rt.HalElementType.SINT_64): np.dtype(np.int64),
}

#: Called with the key of a trace and its tensors, in the program's order.
Callback = Callable[[str, list[torch.Tensor]], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run returned, and how long initialization and the call took, in seconds."""

    outputs: list[torch.Tensor]
    load_s: float
    call_s: float


def run_module(
    vmfb: Path,
    function: str,
    inputs: Sequence[torch.Tensor],
    providers: Sequence[rt.ParameterProvider],
    *,
    device: str = "local-task",
    callback: Callback | None = None,
) -> Outcome:
    """Runs ``function`` of a compiled module; with ``callback``, every ``flow.tensor.trace`` is handed to it.

    An exception in the callback stops nothing while the program runs; it is raised when the run has ended.

    Raises:
        RunError: the module does not load on ``device``, or the call failed.
    """
    failures: list[BaseException] = []
    sink = rt.HalModuleDebugSink(_sink(callback, failures)) if callback else None
    try:
        instance = rt.VmInstance()
        hal_device = rt.get_device(device, cache=False)
        modules = [rt.create_hal_module(instance, hal_device, debug_sink=sink)]
        if providers:
            modules.insert(0, rt.create_io_parameters_module(instance, *providers))
        program = rt.VmModule.mmap(instance, str(vmfb), destroy_callback=None)
        started = time.perf_counter()
        context = rt.VmContext(instance, modules=[*modules, program])
        loaded = time.perf_counter()
        vm_function = program.lookup_function(function)
        if vm_function is None:
            raise RunError(f"the compiled module has no function {function!r}; it has {', '.join(program.function_names)}")
        results = _invoke(context, hal_device, vm_function, inputs)
        outputs = [_tensor(view) for view in results]
        called = time.perf_counter()
    except RunError:
        raise
    except (RuntimeError, ValueError) as error:
        if failures:
            raise failures[0] from None
        raise RunError(f"the program failed on {device}: {_first_line(error)}") from None
    if failures:
        raise failures[0]
    return Outcome(outputs, loaded - started, called - loaded)


def _first_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:400]


def _sink(callback: Callback, failures: list[BaseException]):
    # Holds neither context nor module: such a cycle would never be collected.
    def receive(key: str, views: list[rt.HalBufferView]) -> None:
        if failures:
            return
        try:
            callback(key, [_tensor(view) for view in views])
        except BaseException as error:  # noqa: BLE001 (crossing C++ frames: kept, and raised after the run)
            failures.append(error)

    return receive


def _invoke(context: rt.VmContext, device: rt.HalDevice, function, inputs: Sequence[torch.Tensor]) -> list[rt.HalBufferView]:
    arguments = rt.VmVariantList(len(inputs))
    for value in inputs:
        arguments.push_ref(_buffer_view(device, to_numpy(value.contiguous())))
    results = rt.VmVariantList(1)
    context.invoke(function, arguments, results)
    views = []
    for i in range(len(results)):
        try:
            views.append(results.get_as_object(i, rt.HalBufferView))
        except (RuntimeError, ValueError, TypeError):
            raise RunError(f"result {i} is not a tensor: numtrace compares tensors only") from None
    return views


def _buffer_view(device: rt.HalDevice, array: np.ndarray) -> rt.HalBufferView:
    element = _ELEMENT_TYPES[array.dtype]
    raw = np.ascontiguousarray(array)
    if not array.dtype.isbuiltin or array.dtype == np.bool_:
        raw = raw.view(np.uint8 if array.dtype.itemsize == 1 else np.uint16)
    buffer = device.allocator.allocate_buffer_copy(
        memory_type=rt.MemoryType.DEVICE_LOCAL,
        allowed_usage=rt.BufferUsage.DEFAULT | rt.BufferUsage.MAPPING,
        device=device,
        buffer=raw,
    )
    return rt.HalBufferView(buffer, list(array.shape), element)


def _tensor(view: rt.HalBufferView) -> torch.Tensor:
    """The contents of a buffer view, copied."""
    dtype = _DTYPES.get(int(view.element_type))
    if dtype is None:
        raise RunError(f"a tensor of element type {view.element_type} cannot be read")
    shape = list(view.shape)
    if 0 in shape:
        return to_torch(np.empty(shape, dtype))
    carrier = dtype if dtype.isbuiltin and dtype != np.bool_ else np.dtype(f"uint{8 * dtype.itemsize}")
    array = np.array(view.map().asarray(shape, carrier))
    return to_torch(array.view(dtype))


@contextmanager
def shared_cores(threads: int):
    """IREE and torch take turns on the same cores: both get ``threads``."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    rt.parse_flags(f"--task_topology_max_group_count={threads}")
    try:
        yield
    finally:
        torch.set_num_threads(before)


def host_threads() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0))
