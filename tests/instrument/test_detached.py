"""Programs in processes of their own: every element type goes in and comes out bit for bit."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from numtrace.errors import RunError
from numtrace.instrument.compiler import compile_file
from numtrace.instrument.detached import run_detached, write_raw
from numtrace.instrument.tensor_type import TensorType

VALUES = {
    "4xbf16": torch.tensor([1.0, -0.0, float("nan"), 3e38], dtype=torch.bfloat16),
    "4xf16": torch.tensor([1.0, 6e-8, float("inf"), -2.0], dtype=torch.float16),
    "4xf8E4M3FN": torch.tensor([1.0, -0.5, 448.0, 0.0]).to(torch.float8_e4m3fn),
    "4xi1": torch.tensor([True, False, False, True]),
    "2x2xi64": torch.tensor([[1, -1], [1 << 62, 0]]),
    "0x3xf32": torch.empty(0, 3),
    "f64": torch.tensor(1 / 3, dtype=torch.float64),
}


def identity(folder: Path) -> Path:
    types = [f"tensor<{name}>" for name in VALUES]
    names = [f"%a{i}" for i in range(len(types))]
    takes = ", ".join(f"{name}: {type_}" for name, type_ in zip(names, types, strict=True))
    (folder / "same.mlir").write_text(
        f"util.func public @same({takes}) -> ({', '.join(types)}) {{\n"
        f"  util.return {', '.join(names)} : {', '.join(types)}\n}}\n"
    )
    compile_file(folder / "same.mlir", folder / "same.vmfb", ["--iree-hal-target-backends=vmvx"])
    return folder / "same.vmfb"


def run(vmfb: Path, results=None, timeout=60.0, function="same"):
    inputs = []
    for index, (name, value) in enumerate(VALUES.items()):
        path = vmfb.with_name(f"in{index}.bin")
        write_raw(value, path)
        inputs.append((TensorType.parse(name), path))
    types = results or [type_ for type_, _ in inputs]
    return run_detached(vmfb, function, inputs, types, device="local-sync", threads=1, timeout=timeout)


def test_every_type_goes_through_bit_for_bit(tmp_path):
    for value, back in zip(VALUES.values(), run(identity(tmp_path)), strict=True):
        assert back.dtype == value.dtype and back.shape == value.shape
        assert back.reshape(-1).view(torch.uint8).tolist() == value.reshape(-1).view(torch.uint8).tolist()
    assert not list(tmp_path.glob("*.out*.bin"))


def test_what_is_not_as_expected_is_said(tmp_path):
    vmfb = identity(tmp_path)
    types = [TensorType.parse(name) for name in VALUES]
    with pytest.raises(RunError, match="8 bytes where 5xbf16 has 10"):
        run(vmfb, [TensorType.parse("5xbf16"), *types[1:]])
    with pytest.raises(RunError, match="exit code") as error:
        run(vmfb, function="other")
    assert error.value.kind == "exit"
    with pytest.raises(RunError, match="still running after 0 s") as late:
        run(vmfb, timeout=1e-6)
    assert late.value.kind == "time-out"
