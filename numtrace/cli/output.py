"""Standard output, whoever reads it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from numtrace.errors import OutputError


@contextmanager
def standard_output() -> Iterator[None]:
    """For printing the result. A reader who leaves early (``| head``) changes nothing, not the exit code.

    Raises:
        OutputError: what standard output goes to is full.
    """
    try:
        yield
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit):  # rich makes the one the other
        _discard_standard_output()
    except OSError as error:
        _discard_standard_output()
        raise OutputError(
            f"cannot write to standard output: {error.strerror}; the report is in the run directory too"
        ) from None


def _discard_standard_output() -> None:
    """Python flushes once more at exit; let that go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
