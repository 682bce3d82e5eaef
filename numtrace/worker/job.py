"""Does one job and tells how it ended: an error that a user can meet, or a fault of numtrace."""

from __future__ import annotations

import errno
import importlib
import json
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from numtrace.errors import ExitCode, NumtraceError, OutputError, UncoveredOp, UsageError
from numtrace.worker.channel import Channel

#: What the system says when a file cannot be written, whoever wanted to write it.
_OUTPUT_ERRNOS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM}

#: A job's fields, and where its events go.
Work = Callable[[dict[str, Any], Channel], None]

#: The function that does a job of each kind. Its module is loaded for it only: what a job does not need, it does not
#: wait for.
_WORK = {
    "import-onnx": "numtrace.importers.onnx_model:import_onnx",
    "import-pt2": "numtrace.importers.torch_archive:import_archive",
    "import-factory": "numtrace.importers.factory:import_factory",
    "read": "numtrace.worker.read:read",
    "prepare": "numtrace.worker.prepare:prepare",
    "variant": "numtrace.worker.variant:run_variant",
    "locate": "numtrace.worker.locate:locate",
    "explain": "numtrace.worker.locate:explain",
    "bisect": "numtrace.worker.bisect:bisect",
    "rerun": "numtrace.worker.rerun:rerun",
    "audit": "numtrace.worker.audit:audit",
    "dump-code": "numtrace.worker.rerun:dump_code",
}


def find_work(kind: str) -> Work:
    """What does a job of that kind, loaded; if it cannot be, something that says so when it is called."""
    module, _, function = _WORK[kind].partition(":")
    try:
        return getattr(importlib.import_module(module), function)
    except Exception as error:
        failure = error

        def fail(job: dict[str, Any], channel: Channel) -> None:
            raise failure

        return fail


def main(work: Work | None = None) -> int:
    """Does the job that the parent sends, by ``work`` or by what is for its kind; 0 if how it ended was told."""
    channel = Channel()
    job = channel.receive()
    if job is None:
        return 1  # the parent is gone already
    threading.Thread(target=_follow_parent, args=(channel,), daemon=True).start()
    try:
        try:
            os.chdir(job["cwd"])
            (work or find_work(job["kind"]))(job, channel)
        except OSError as error:
            if error.errno not in _OUTPUT_ERRNOS:
                raise
            raise OutputError(
                f"cannot write {error.filename or job['folder']}: {os.strerror(error.errno)}; "
                "free space, or give another --out"
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
        if _out_of_memory(error):
            message = "the worker ran out of memory"
            if job.get("reference_device", "cpu") != "cpu":
                message += (
                    f", of its own or of {job['reference_device']}; --reference-device cpu takes none of that"
                )
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


def _out_of_memory(error: Exception) -> bool:
    # By its name: what torch raises for a GPU is not there to be asked for in a job that does without torch.
    ours = isinstance(error, MemoryError) or "can't allocate memory" in str(error)
    return ours or type(error).__name__ == "OutOfMemoryError"


def _source_op(error: UncoveredOp, job: dict[str, Any]) -> str | None:
    """Which op of the source an op without an evaluation came from; None before the source was stamped."""
    from numtrace.instrument.failure import shown_op

    table = Path(job.get("shared", job["folder"]), "ops.json")
    return shown_op(error.stamps, json.loads(table.read_text(encoding="utf-8"))) if table.exists() else None


def _follow_parent(channel: Channel) -> None:
    """Ends this process and its compilers once the parent is gone, even by kill -9."""
    channel.wait_for_end()
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def run_and_exit(work: Work | None = None) -> NoReturn:
    """:func:`main` in a process that ends with it."""
    code = main(work)
    sys.stderr.flush()
    # At interpreter exit, MLIR's and IREE's objects are torn down in an order that crashes the process.
    os._exit(code)
