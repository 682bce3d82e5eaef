"""The evaluation on another device than the CPU: no tensor is left behind, and the report is the same."""

from pathlib import Path

import numpy as np
import pytest
import torch
from elsewhere import pretended
from programs import Bench, conv_program
from torch._C import _len_torch_function_stack

from numtrace.errors import UsageError
from numtrace.evaluate.device import evaluate_on, require_reference_device


def test_the_sites_are_the_same_elsewhere(tmp_path: Path):
    draw = np.random.default_rng(0).standard_normal
    arrays = {"w": draw((8, 8, 3, 3)).astype(np.float32), "bias": draw(8).astype(np.float32)}
    bench = Bench(tmp_path / "bench", conv_program("3.0"), arrays)
    here = [bench.run(), bench.run("winograd")]
    bench.baseline = None
    with pretended():
        there = [bench.run(), bench.run("winograd")]
    for one, other in zip(here, there, strict=True):
        assert one.sites == other.sites
        assert one.record["outputs"] == other.record["outputs"]


@pytest.mark.parametrize("device", ["cuda", "meta", "nonsense"])
def test_a_device_that_cannot_compute_is_refused_before_anything_is_compiled(device: str):
    if device == "cuda" and torch.cuda.is_available():
        pytest.skip("there is one here")
    with pytest.raises(
        UsageError, match=rf"^--reference-device {device} cannot be used: .*; torch .* here on cpu"
    ):
        require_reference_device(device)


def test_a_thread_that_evaluates_on_the_cpu_is_left_as_it_is():
    evaluate_on("cpu")
    assert _len_torch_function_stack() == 0
