"""Devices that can be opened, and the reason where one cannot, in words."""

from __future__ import annotations

import pytest

from numtrace.errors import TargetError, UsageError
from numtrace.instrument.devices import devices, reason, require_device

#: As the runtime said it.
CUDA = (
    "Error creating driver: c/runtime/src/iree/hal/drivers/cuda/cuda_dynamic_symbols.c:66: UNAVAILABLE; CUDA driver "
    "library 'libcuda.so'/'nvcuda.dll' not available; please ensure installed and in dynamic library search path"
)
HIP = (
    "Error creating driver: c/runtime/src/iree/hal/drivers/hip/dynamic_symbols.c:155: UNAVAILABLE; HIP runtime "
    "library 'amdhip64.dll'/'libamdhip64.so' not available: please ensure installed and in dynamic library search "
    "path: Tried: libamdhip64.so c/runtime/src/iree/base/internal/dynamic_library_posix.c:165: NOT_FOUND; failed"
)


def test_the_cpus_devices_can_be_opened():
    found = devices()
    assert found["local-task"] == found["local-sync"] == ""
    for name in ("local-task", "local-sync"):
        require_device(name)


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (CUDA, "CUDA driver library 'libcuda.so'/'nvcuda.dll' not available"),
        (HIP, "HIP runtime library 'amdhip64.dll'/'libamdhip64.so' not available"),
        ("something else altogether", "something else altogether"),
    ],
)
def test_the_reason_without_its_place(message, said):
    assert reason(message) == said


def test_a_driver_that_there_is_not():
    with pytest.raises(UsageError, match=r"--device abacus is not known; this IREE runtime has .*local-task"):
        require_device("abacus")


def test_a_device_that_cannot_be_opened_says_which_can():
    with pytest.raises(
        TargetError, match=r"local-task://7 cannot be opened: .*; what can be opened here is .*local-task"
    ):
        require_device("local-task://7")
