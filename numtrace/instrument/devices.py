"""The devices that IREE's runtime can open here, and why it cannot open the others."""

from __future__ import annotations

import re

import iree.runtime as rt

from numtrace.errors import TargetError, UsageError
from numtrace.instrument.statuses import STATUS_ERRORS

#: What IREE puts around the sentence: what it was at, a place in its source, a status code, and what it tried.
_AROUND = re.compile(
    r"^(?:Error [^:]*: )?(?:\S+:\d+: )?(?:[A-Z_]+; )?(?P<said>.*?)(?:; (?:please )?ensure .*|: please ensure .*)?$"
)


def devices() -> dict[str, str]:
    """Every driver of the runtime by name, with an empty text if a device of it can be opened, else why not."""
    return {name: _why_not(name) for name in sorted(rt.query_available_drivers())}


def require_device(device: str) -> None:
    """Makes sure that ``device`` can be opened, before anything is compiled for it.

    Raises:
        UsageError: IREE's runtime has no such driver (the message lists what it has).
        TargetError: the driver is there, its device or library is not (the message says which devices are).
    """
    driver = device.partition("://")[0]
    known = rt.query_available_drivers()
    if driver not in known:
        raise UsageError(f"--device {device} is not known; this IREE runtime has {', '.join(sorted(known))}")
    if why := _why_not(device):
        usable = [name for name, reason in devices().items() if not reason]
        raise TargetError(
            f"device {device} cannot be opened: {why}; what can be opened here is {', '.join(usable) or 'none'}"
        )


def _why_not(device: str) -> str:
    try:
        rt.get_device(device, cache=False)
    except STATUS_ERRORS as error:
        return reason(str(error))
    return ""


def reason(message: str) -> str:
    """IREE's message as one clause: without places in its source, status codes and what was tried."""
    text = " ".join(message.split())
    found = _AROUND.match(text)
    return (found["said"] if found and found["said"] else text)[:200].rstrip(" ;.")
