"""Inputs on disk, as the variants' workers and iree-run-module read them."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import torch

from numtrace.worker.prepare import _store, stored_inputs


@pytest.mark.parametrize(
    ("name", "numpy_type", "torch_type", "bits"),
    [
        ("bf16", ml_dtypes.bfloat16, torch.bfloat16, b"\x80\x3f\x20\xc0"),  # 0x3f80 is 1, 0xc020 is -2.5
        ("f8E5M2", ml_dtypes.float8_e5m2, torch.float8_e5m2, b"\x3c\xc1"),  # 0 01111 00, 1 10000 01
    ],
)
def test_a_type_that_npy_lacks_is_stored_as_bytes(
    tmp_path: Path, name: str, numpy_type: type, torch_type: torch.dtype, bits: bytes
) -> None:
    folder = tmp_path / "inputs" / "7"
    folder.mkdir(parents=True)
    _store(folder, 0, np.array([1.0, -2.5], numpy_type))
    assert (folder / "0.bin").read_bytes() == bits
    (value,) = stored_inputs(tmp_path, 7, [{"shape": [2], "dtype": name}])
    assert value.dtype == torch_type
    assert value.double().tolist() == [1.0, -2.5]
