"""Reads a job, does it, and tells how it ended: an error that a user can meet, or a fault of numtrace."""

from __future__ import annotations

import json
import os
import sys
import traceback

from numtrace.errors import ExitCode, NumtraceError
from numtrace.worker.channel import Channel


def main() -> int:
    channel = Channel()
    job = json.load(sys.stdin)
    try:
        if job["kind"] == "prepare":
            from numtrace.worker.prepare import prepare

            prepare(job, channel)
        else:
            from numtrace.worker.variant import run_variant

            run_variant(job, channel)
    except NumtraceError as error:
        channel.send(
            "error",
            kind=type(error).__name__,
            message=str(error),
            exit_code=int(error.exit_code),
            location=getattr(error, "location", None),
        )
        return 0
    except MemoryError:
        channel.send("error", kind="OutOfMemory", message="the worker ran out of memory", exit_code=int(ExitCode.FAILED))
        return 0
    except Exception:  # the boundary of the process: whatever else is a fault of numtrace, with its traceback
        channel.send("error", kind="Internal", message=traceback.format_exc(), exit_code=int(ExitCode.INTERNAL))
        return 0
    return 0


if __name__ == "__main__":
    code = main()
    sys.stderr.flush()
    # At interpreter exit, MLIR's and IREE's objects are torn down in an order that crashes the process.
    os._exit(code)
