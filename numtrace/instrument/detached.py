"""A compiled program run in a process of its own, by ``iree-run-module``: whatever it does, this process lives on."""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
from torch import Tensor

from numtrace.errors import RunError
from numtrace.instrument.dtypes import numpy_dtype, to_numpy, to_torch
from numtrace.instrument.failure import one_line
from numtrace.instrument.tensor_type import TensorType


def write_raw(tensor: Tensor, path: Path) -> None:
    """The elements of ``tensor`` in row-major order, as ``iree-run-module --input=TYPE=@PATH`` reads them."""
    array = np.ascontiguousarray(to_numpy(tensor.contiguous()))
    array.reshape(-1).view(np.uint8).tofile(path)


def run_detached(
    vmfb: Path,
    function: str,
    inputs: Sequence[tuple[TensorType, Path]],
    results: Sequence[TensorType],
    *,
    device: str,
    threads: int,
    timeout: float,
    flags: Sequence[str] = (),
) -> list[Tensor]:
    """The results of ``function``, of the static types ``results``; ``inputs`` are types and raw files.

    Raises:
        RunError: the program failed, crashed, ran longer than ``timeout`` seconds, or made other results.
    """
    # iree-run-module writes plain bytes only to a file named .bin.
    outputs = [vmfb.with_suffix(f".out{index}.bin") for index in range(len(results))]
    for path in outputs:
        path.unlink(missing_ok=True)
    command = run_command(vmfb, function, inputs, device, threads, flags)
    command += [f"--output=@{path}" for path in outputs]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
        )
        if done.returncode:
            raise _death(done.returncode, done.stderr)
        return [_read(path, type_) for path, type_ in zip(outputs, results, strict=True)]
    except subprocess.TimeoutExpired:
        raise RunError(
            f"it was still running after {timeout:.0f} s, and was stopped", kind="time-out"
        ) from None
    finally:
        for path in outputs:
            path.unlink(missing_ok=True)


def run_command(
    vmfb: Path,
    function: str,
    inputs: Sequence[tuple[TensorType, Path]],
    device: str,
    threads: int,
    flags: Sequence[str] = (),
) -> list[str]:
    """The command that runs ``function``; it prints the results unless ``--output`` is added."""
    return [
        iree_run_module(), f"--device={device}", f"--module={vmfb}", f"--function={function}",
        f"--task_topology_max_group_count={threads}", *flags,
        *(f"--input={type_}=@{path}" for type_, path in inputs),
    ]  # fmt: skip


def iree_run_module() -> str:
    """The path of the ``iree-run-module`` that belongs to this interpreter's IREE.

    Raises:
        RunError: there is none, neither in IREE's package, nor beside its compiler, nor on the path.
    """
    import iree._runtime_libs

    from numtrace.instrument.compiler import iree_compile

    folders = [Path(path) for path in iree._runtime_libs.__path__]
    with suppress(ValueError):  # what IREE raises where it has no compiler
        folders.append(Path(iree_compile()).parent)
    for folder in folders:
        if found := shutil.which("iree-run-module", path=folder):
            return found
    if found := shutil.which("iree-run-module"):
        return found
    raise RunError("there is no iree-run-module beside this IREE; install iree-base-runtime of its version")


def _read(path: Path, type_: TensorType) -> Tensor:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise RunError(f"it ended well but wrote no result of type {type_}") from None
    if len(data) != type_.nbytes:
        raise RunError(f"it made a result of {len(data)} bytes where {type_} has {type_.nbytes}")
    return to_torch(np.frombuffer(bytearray(data), numpy_dtype(type_.dtype)).reshape(type_.static_shape))


def _death(code: int, printed: str) -> RunError:
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    said = f": {one_line(lines[0])}" if lines else ""
    if code < 0:
        return RunError(f"it died of {signal.Signals(-code).name}{said}", kind="crash")
    return RunError(f"it ended with exit code {code}{said}", kind="exit")
