"""What code is compiled for, and the device that runs it: from the options and the flags of a command."""

from __future__ import annotations

from collections.abc import Sequence

from numtrace.errors import UsageError

#: The flags of a run that names no target.
DEFAULT_FLAGS = ("--iree-hal-target-backends=llvm-cpu", "--iree-llvmcpu-target-cpu=host")
_TARGET_FLAGS = ("--iree-hal-target-backends", "--iree-hal-target-device")

#: The drivers of IREE's runtime that run the code of a target (of a backend, or of a target device), the usual first.
_DRIVERS = {
    **dict.fromkeys(("llvm-cpu", "vmvx", "local"), ("local-task", "local-sync")),
    "cuda": ("cuda",),
    **dict.fromkeys(("rocm", "hip"), ("hip",)),
    **dict.fromkeys(("vulkan-spirv", "vulkan"), ("vulkan",)),
    **dict.fromkeys(("metal-spirv", "metal"), ("metal",)),
}


def with_target(flags: Sequence[str], target: str) -> tuple[str, ...]:
    """``flags`` with the one that names ``target``, unless that is empty.

    Raises:
        UsageError: the flags name a target too.
    """
    given = [flag for flag in flags if flag.startswith(_TARGET_FLAGS)]
    if target and given:
        raise UsageError(f"--target {target} was given and {given[0]} too; give one of the two")
    return (f"--iree-hal-target-backends={target}", *flags) if target else tuple(flags)


def with_defaults(flags: Sequence[str]) -> list[str]:
    """The user's flags, with a target where they name none."""
    result = list(flags)
    if not any(flag.startswith(_TARGET_FLAGS) for flag in result):
        result.insert(0, DEFAULT_FLAGS[0])
    if any("llvm-cpu" in flag for flag in result) and not any(
        flag.startswith("--iree-llvmcpu-target-cpu") for flag in result
    ):
        result.insert(1, DEFAULT_FLAGS[1])
    return result


def backend(flags: Sequence[str]) -> str:
    """What the flags name as their target; empty where they name none."""
    for flag in flags:
        if flag.startswith(tuple(f"{name}=" for name in _TARGET_FLAGS)):
            return flag.split("=", 1)[1]
    return ""


def device_for(flags: Sequence[str], device: str | None) -> str:
    """The device to run on: ``device``, or without it the usual one of the target.

    Raises:
        UsageError: no device of that driver runs the code of the target. A driver that is not known here is left
            to the runtime.
    """
    target = backend(with_defaults(flags))
    drivers = _DRIVERS.get(target)
    if not device:
        return drivers[0] if drivers else "local-task"
    driver = device.partition("://")[0]
    if drivers and driver not in drivers and any(driver in others for others in _DRIVERS.values()):
        others = " or ".join(name for name, found in _DRIVERS.items() if driver in found)
        raise UsageError(
            f"--device {device} does not run code for {target}: give --target {others}, or "
            f"--device {' or '.join(drivers)}"
        )
    return device
