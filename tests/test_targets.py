"""Which flags and which device a target stands for."""

from __future__ import annotations

import pytest

from numtrace.errors import UsageError
from numtrace.targets import backend, device_for, with_defaults, with_target

HOST = ["--iree-hal-target-backends=llvm-cpu", "--iree-llvmcpu-target-cpu=host"]


def test_without_a_target_it_is_this_hosts_cpu():
    assert with_defaults(with_target((), "")) == HOST
    assert device_for((), "") == "local-task"


def test_a_target_is_a_flag():
    assert with_target(("--iree-opt-level=O2",), "vmvx") == (
        "--iree-hal-target-backends=vmvx",
        "--iree-opt-level=O2",
    )
    assert with_defaults(with_target((), "vmvx")) == ["--iree-hal-target-backends=vmvx"]
    assert with_defaults(with_target((), "llvm-cpu")) == HOST


def test_a_target_is_named_once():
    with pytest.raises(UsageError, match="--target vmvx was given and --iree-hal-target-device=local too"):
        with_target(("--iree-hal-target-device=local",), "vmvx")


@pytest.mark.parametrize(
    ("target", "device"),
    [
        ("llvm-cpu", "local-task"),
        ("vmvx", "local-task"),
        ("cuda", "cuda"),
        ("rocm", "hip"),
        ("vulkan-spirv", "vulkan"),
    ],
)
def test_each_target_has_a_usual_device(target, device):
    flags = with_target((), target)
    assert backend(flags) == target
    assert device_for(flags, None) == device


def test_a_device_is_one_that_runs_the_code():
    assert device_for((), "local-sync") == "local-sync"
    assert device_for(with_target((), "cuda"), "cuda://1") == "cuda://1"
    with pytest.raises(
        UsageError, match="cuda does not run code for llvm-cpu: give --target cuda, or --device local-task"
    ):
        device_for((), "cuda")
    with pytest.raises(UsageError, match=r"local-sync does not run code for rocm: give .*, or --device hip"):
        device_for(with_target((), "rocm"), "local-sync")


def test_what_is_not_known_here_is_left_to_iree():
    assert device_for((), "abacus") == "abacus"
    assert device_for(("--iree-hal-target-device=abacus",), "") == "local-task"
