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

rt._binding.disable_leak_checker()  # nanobind's warnings at exit are noise

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
    loaded: _Loaded | None = None
    try:
        loaded = _Loaded(vmfb, device, providers, sink)
        started = time.perf_counter()
        outputs = loaded.call(function, inputs)
        outcome = Outcome(outputs, loaded.load_s, time.perf_counter() - started)
    except (RuntimeError, ValueError) as error:
        if not failures:
            raise RunError(f"the program failed on {device}: {_first_line(error)}") from None
    finally:
        if loaded is not None:
            loaded.close()
    if failures:
        raise failures[0]
    return outcome


class _Loaded:
    """A module in a VM context. The runtime's objects do not hold one another: they go from the top down."""

    def __init__(self, vmfb: Path, device: str, providers: Sequence[rt.ParameterProvider], sink: rt.HalModuleDebugSink | None):
        self._stack: list = []
        try:
            self._stack.append(rt.VmInstance())
            self._stack.append(rt.get_device(device, cache=False))
            instance, self._device = self._stack
            modules = [rt.create_io_parameters_module(instance, *providers)] if providers else []
            modules.append(rt.create_hal_module(instance, self._device, debug_sink=sink))
            self._stack += modules
            self._stack.append(rt.VmModule.mmap(instance, str(vmfb)))
            self._program = self._stack[-1]
            started = time.perf_counter()
            self._stack.append(rt.VmContext(instance, modules=[*modules, self._program]))
            self._context = self._stack[-1]
            self.load_s = time.perf_counter() - started
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._context = self._program = self._device = None
        while self._stack:
            self._stack.pop()

    def call(self, name: str, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        function = self._program.lookup_function(name)
        if function is None:
            names = ", ".join(self._program.function_names)
            raise RunError(f"the compiled module has no function {name!r}; it has {names}")
        arguments = rt.VmVariantList(len(inputs))
        for value in inputs:
            arguments.push_ref(_buffer_view(self._device, to_numpy(value.contiguous())))
        results = rt.VmVariantList(1)
        self._context.invoke(function, arguments, results)
        return [_result(results, index) for index in range(len(results))]


def _result(results: rt.VmVariantList, index: int) -> torch.Tensor:
    try:
        return _tensor(results.get_as_object(index, rt.HalBufferView))
    except (RuntimeError, ValueError, TypeError):
        raise RunError(f"result {index} is not a tensor: numtrace compares tensors only") from None


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
    rt._binding.parse_flags(f"--task_topology_max_group_count={threads}")
    try:
        yield
    finally:
        torch.set_num_threads(before)


def host_threads() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0))
