"""The one module that calls IREE's runtime: loads a compiled program, runs it, and hands over its traces."""

from __future__ import annotations

import os
import re
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import iree.runtime as rt
import ml_dtypes
import numpy as np
import torch

from numtrace.errors import RunError
from numtrace.instrument.dtypes import to_numpy, to_torch
from numtrace.instrument.statuses import STATUS_ERRORS

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
    np.dtype(np.complex64): rt.HalElementType.COMPLEX_64,
    np.dtype(np.complex128): rt.HalElementType.COMPLEX_128,
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
    except STATUS_ERRORS as error:
        if not failures:
            why = _first_line(error)
            raise RunError(f"the program failed on {device}: {why}{_f64_hint(why)}") from None
    finally:
        if loaded is not None:
            loaded.close()
    if failures:
        raise failures[0]
    return outcome


class _Loaded:
    """A module in a VM context.

    The runtime's objects do not hold one another and must go from the top down: a view that outlives its
    device crashes the process. So they are here, and in no local variable: the frame of one would live on in the
    traceback of any error that the trace callback met.
    """

    def __init__(
        self,
        vmfb: Path,
        device: str,
        providers: Sequence[rt.ParameterProvider],
        sink: rt.HalModuleDebugSink | None,
    ):
        self._owned: dict[str, Any] = {}
        own = self._owned
        try:
            own["instance"] = rt.VmInstance()
            own["device"] = rt.get_device(device, cache=False)
            own["hal"] = rt.create_hal_module(own["instance"], own["device"], debug_sink=sink)
            if providers:
                own["parameters"] = rt.create_io_parameters_module(own["instance"], *providers)
            own["program"] = rt.VmModule.mmap(own["instance"], str(vmfb))
            started = time.perf_counter()
            names = ("parameters", "hal", "program") if providers else ("hal", "program")
            own["context"] = rt.VmContext(own["instance"], modules=[own[name] for name in names])
            self.load_s = time.perf_counter() - started
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Lets go of everything, last made first."""
        while self._owned:
            self._owned.popitem()

    def call(self, name: str, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        own = self._owned
        own["function"] = own["program"].lookup_function(name)
        if own["function"] is None:
            names = ", ".join(own["program"].function_names)
            raise RunError(f"the compiled module has no function {name!r}; it has {names}")
        own["arguments"] = rt.VmVariantList(len(inputs))
        for value in inputs:
            own["arguments"].push_ref(_buffer_view(own["device"], to_numpy(value.contiguous())))
        own["results"] = rt.VmVariantList(1)
        own["context"].invoke(own["function"], own["arguments"], own["results"])
        return [_result(self._owned["results"], index) for index in range(len(self._owned["results"]))]


def _result(results: rt.VmVariantList, index: int) -> torch.Tensor:
    try:
        return _tensor(results.get_as_object(index, rt.HalBufferView))
    except (*STATUS_ERRORS, TypeError):
        raise RunError(f"result {index} is not a tensor: numtrace compares tensors only") from None


def _first_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:400]


def _sink(callback: Callback, failures: list[BaseException]):
    # Holds neither context nor module: such a cycle would never be collected.
    def receive(key: str, views: list[rt.HalBufferView]) -> None:
        if failures:
            return
        tensors = [_tensor(view) for view in views]
        del views  # a traceback of what follows would keep them beyond their device
        try:
            callback(key, tensors)
        except BaseException as error:  # crossing C++ frames: kept, and raised after the run
            error.add_note("".join(traceback.format_exception(error)))
            failures.append(error.with_traceback(None))

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


def _f64_hint(why: str) -> str:
    """Where IREE computes in f32 what takes or makes f64, the program still has the signature of the source.

    So it checks its inputs for f64 and reads them as f32, and hands over results of f32 as f64.
    """
    if "element type mismatch; expected f64" in why:
        what = "IREE made f32 of the model's f64, and no input fits such a program"
    elif (view := _LARGER_VIEW.search(why)) and int(view[1]) == 2 * int(view[2]):
        what = "IREE made a result half as wide as its type, which it does with f64 unless it is told not to"
    else:
        return ""
    return f"; {what}: keep f64 with -- {KEEP_F64}"


_LARGER_VIEW = re.compile(r"buffer view byte length (\d+) exceeds backing buffer byte length (\d+)")


#: IREE makes f32 of f64 unless this flag is given.
KEEP_F64 = "--iree-input-demote-f64-to-f32=false"


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
