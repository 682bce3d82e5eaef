"""What IREE's runtime raises in Python."""

from __future__ import annotations

#: IREE's bindings make an ``IndexError`` of the status OUT_OF_RANGE, a ``ValueError`` of INVALID_ARGUMENT and
#: NOT_FOUND, a ``NotImplementedError`` of UNIMPLEMENTED, and a ``RuntimeError``, which that is too, of all others.
#: No more than these: a ``KeyError`` or ``TypeError`` would be a fault of numtrace, and what is a lack of memory is
#: told as one.
STATUS_ERRORS = (RuntimeError, ValueError, IndexError)
