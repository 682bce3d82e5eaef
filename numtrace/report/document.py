"""The report document on standard output: ``--json``."""

from __future__ import annotations

import os
from typing import BinaryIO

from numtrace.dumps.schema import Report, encode


def write_document(report: Report, stream: BinaryIO) -> None:
    """Write the document, and nothing else, to ``stream`` (``sys.stdout.buffer``).

    A reader that closes its end early (``| head``) is no error.
    """
    try:
        stream.write(encode(report))
        stream.flush()
    except BrokenPipeError:
        # Python flushes standard output once more at exit; let that go nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
