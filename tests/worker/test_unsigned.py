"""Unsigned integers, which have no sign of their own below the torch dialect."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from programs import Bench

from numtrace.attribute.verdict import judge

TYPE = "!torch.vtensor<[3],ui8>"
PLUS_ONE = f"""
func.func @main(%x: {TYPE}) -> {TYPE} {{
  %one = torch.constant.int 1
  %y = torch.aten.add.Scalar %x, %one, %one : {TYPE}, !torch.int, !torch.int -> {TYPE}
  return %y : {TYPE}
}}
"""


@pytest.mark.parametrize("stored", [np.uint8, np.int8])
def test_bytes_beyond_127_are_the_source_s(tmp_path: Path, stored: type) -> None:
    """200, 127 and 5 become 201, 128 and 6, however the input was saved."""
    np.save(tmp_path / "x.npy", np.array([200, 127, 5], np.uint8).view(stored))
    ran = Bench(tmp_path / "bench", PLUS_ONE, inputs=[f"@{tmp_path / 'x.npy'}"]).run()
    assert ran.prepared["results"] == [[[3], "ui8"]]
    told = judge(ran.record, ran.sites, is_baseline=True, baseline=None, tolerant=False)
    assert told.verdict == "ok", told.reason
    assert ran.matches() == {"verified": 1}
    assert ran.record["output"]["max_abs"] == 0
    assert ran.record["output_size"] == 201
    exact = np.load(Path(ran.record["folder"]) / "exact0.npy")
    assert exact.tolist() == [201, 128, 6]
