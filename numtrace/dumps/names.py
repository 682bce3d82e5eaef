"""File names for things that models and users name: variants, passes, sites."""

from __future__ import annotations

import hashlib
import re

MAX_LENGTH = 64
_DIGEST = 8
_UNSAFE = re.compile(r"[^a-z0-9_+.=-]+")
# Names that Windows keeps for devices, with or without an extension.
_DEVICES = {"con", "prn", "aux", "nul"} | {f"{port}{n}" for port in ("com", "lpt") for n in range(10)}


def file_name(name: str) -> str:
    """A file name for ``name`` that is safe on every file system, the same one each time.

    A name that is safe already (lower case, no separator, not long, no device) stays as it is. Any
    other is reduced to safe characters and gets a digest of the original, so that two names that
    differ, if only in case, never share a file.
    """
    safe = _UNSAFE.sub("-", name.lower()).strip("-.")
    device = safe.split(".")[0] in _DEVICES
    if safe == name and len(safe) <= MAX_LENGTH and not device and safe:
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]
    stem = safe[: MAX_LENGTH - _DIGEST - 1].strip("-.")
    # The digest goes after an underscore in front of any dot: "con.x" must not stay "con.…".
    return f"_{stem.replace('.', '-')}_{digest}" if device else f"{stem or 'name'}-{digest}"
