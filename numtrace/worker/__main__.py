"""Reads a job, does it, and tells how it ended: an error that a user can meet, or a fault of numtrace."""

from __future__ import annotations

import errno
import json
import os
import signal
import sys
import threading
import traceback
from pathlib import Path
from typing import Any, NoReturn

from numtrace.errors import ExitCode, NumtraceError, OutputError, UncoveredOp, UsageError
from numtrace.worker.channel import Channel

#: What the system says when a file cannot be written, whoever wanted to write it.
_OUTPUT_ERRNOS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM}


def main() -> int:
    channel = Channel()
    line = sys.stdin.buffer.readline()
    if not line:
        return 1  # the parent is gone already
    job = json.loads(line)
    threading.Thread(target=_follow_parent, daemon=True).start()
    try:
        try:
            _do(job, channel)
        except OSError as error:
            if error.errno not in _OUTPUT_ERRNOS:
                raise
            raise OutputError(
                f"cannot write {error.filename or job['folder']}: {os.strerror(error.errno)}; "
                "free space, or give another directory with --out"
            ) from None
        except ImportError as error:
            if (error.name or "numtrace").partition(".")[0] == "numtrace":
                raise
            raise UsageError(
                f"{sys.executable} cannot run the worker: {error}; numtrace needs iree-base-compiler, "
                "iree-base-runtime, torch, numpy and ml_dtypes there"
            ) from None
    except NumtraceError as error:
        if isinstance(error, UncoveredOp):
            error.location = _source_op(error, job)
        channel.send(
            "error",
            error=type(error).__name__,
            kind=error.kind,
            message=str(error),
            exit_code=int(error.exit_code),
            location=getattr(error, "location", None),
        )
    except (
        Exception
    ) as error:  # the boundary of the process: whatever else is a fault of numtrace, with its traceback
        if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
            message = "the worker ran out of memory"
            channel.send(
                "error",
                error="RunError",
                kind="out-of-memory",
                message=message,
                exit_code=int(ExitCode.FAILED),
            )
        else:
            traceback.print_exc()
            message = f"{type(error).__name__}: {error}"
            channel.send(
                "error", error="Internal", kind="internal", message=message, exit_code=int(ExitCode.INTERNAL)
            )
    return 0


def _source_op(error: UncoveredOp, job: dict[str, Any]) -> str | None:
    """Which op of the source an op without an evaluation came from; None before the source was stamped."""
    from numtrace.instrument.failure import shown_op

    table = Path(job.get("shared", job["folder"]), "ops.json")
    return shown_op(error.stamps, json.loads(table.read_text(encoding="utf-8"))) if table.exists() else None


def _do(job: dict[str, Any], channel: Channel) -> None:
    match job["kind"]:
        case "prepare":
            from numtrace.worker.prepare import prepare

            prepare(job, channel)
        case "variant":
            from numtrace.worker.variant import run_variant

            run_variant(job, channel)
        case "locate":
            from numtrace.worker.locate import locate

            locate(job, channel)
        case "explain":
            from numtrace.worker.locate import explain

            explain(job, channel)
        case "bisect":
            from numtrace.worker.bisect import bisect

            bisect(job, channel)
        case "rerun":
            from numtrace.worker.rerun import rerun

            rerun(job, channel)
        case "dump-code":
            from numtrace.worker.rerun import dump_code

            dump_code(job, channel)


def _follow_parent() -> None:
    """Ends this process and its compilers once the parent is gone, even by kill -9: stdin ends then."""
    while os.read(0, 4096):
        pass
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def run_and_exit() -> NoReturn:
    code = main()
    sys.stderr.flush()
    # At interpreter exit, MLIR's and IREE's objects are torn down in an order that crashes the process.
    os._exit(code)


if __name__ == "__main__":
    run_and_exit()
