"""Where torch evaluates in float64: the CPU, or a GPU."""

from __future__ import annotations

import torch

from numtrace.errors import UsageError

_CPU = "cpu"


def require_reference_device(device: str) -> None:
    """Makes sure that torch computes in float64 on ``device``, before anything is compiled.

    Raises:
        UsageError: it does not (the message says why, and which devices are there).
    """
    if device == _CPU:
        return
    try:
        # Read back: some devices make a tensor and cannot compute, or have no memory.
        torch.ones(1, dtype=torch.float64, device=device).mul(2).item()
    except (RuntimeError, AssertionError, TypeError, NotImplementedError) as error:
        here = [_CPU, *(f"cuda:{index}" for index in range(torch.cuda.device_count()))]
        raise UsageError(
            f"--reference-device {device} cannot be used: {str(error).strip().splitlines()[0]}; torch "
            f"{torch.__version__} can evaluate here on {', '.join(here)}"
        ) from None


def evaluate_on(device: str) -> None:
    """Makes every tensor of this thread on ``device`` from now on, and those that come out of numpy's arrays.

    So an evaluation is on one device as a whole, and no op of it names any. On the CPU nothing is set: torch would ask
    at every call.
    """
    if device != _CPU:
        torch.set_default_device(device)
