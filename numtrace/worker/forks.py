"""One process per job, forked from this one, which has loaded the job's modules: all jobs of a command share that.

The parent sends the kind of a job with two open files, the job's connection and its log; it is told the job's process;
it asks for the end of it by one byte, and is told the exit code. Nothing else is said, and nothing out of turn.
"""

from __future__ import annotations

import importlib
import os
import signal
import socket
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from numtrace.worker import BOOT
from numtrace.worker.job import Work, find_work, run_and_exit


def serve() -> NoReturn:
    """Starts a process for each job that the parent asks for; ends, and ends the job, when the parent is no more."""
    _load_numpy()
    orders = socket.socket(fileno=0)
    while True:
        kind, files, *_ = socket.recv_fds(orders, 64, 2)
        if not kind:
            os._exit(0)
        connection, log = files
        os.set_inheritable(connection, False)
        for stream in (1, 2):
            os.dup2(log, stream)
        os.close(log)
        job = _start(find_work(kind.decode()), connection)
        os.close(connection)
        try:
            orders.sendall(b"%d" % job)
            parent = orders.recv(1)
        except ConnectionError:
            parent = b""
        code = _ended(job)
        if not parent:
            os._exit(0)
        orders.sendall(b"%d" % code)


def _load_numpy() -> None:
    """Loads numpy without the threads that its OpenBLAS starts at once; nothing here multiplies with numpy."""
    name = "OPENBLAS_NUM_THREADS"
    before = os.environ.get(name)
    os.environ[name] = "1"
    with suppress(ImportError):  # a job will say so
        importlib.import_module("numpy")
    # torch may have an OpenBLAS of its own, which must have its threads.
    if before is None:
        del os.environ[name]
    else:
        os.environ[name] = before


def _start(work: Work, connection: int) -> int:
    """A process that does ``work``, leading a group of its own."""
    sys.stdout.flush()
    sys.stderr.flush()
    if not _alone():
        return os.posix_spawn(
            sys.executable,
            [sys.executable, "-X", "faulthandler", str(BOOT), "job"],
            os.environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, connection, 0)],
            setpgroup=0,
        )
    job = os.fork()
    if job == 0:
        try:
            os.setpgid(0, 0)
            os.dup2(connection, 0)  # and the orders are the parent process's alone
            os.close(connection)
            run_and_exit(work)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    with suppress(OSError):  # it did so itself, or has ended
        os.setpgid(job, job)
    return job


def _alone() -> bool:
    """Whether this process has one thread: a fork copies only the thread that forks, and the locks of all.

    As torch, numpy and IREE are today none starts a thread when it is loaded. Where one does, and on systems that
    do not say, each job gets an interpreter of its own, which loads everything again: slower, and right.
    """
    try:
        return len(list(Path("/proc/self/task").iterdir())) == 1
    except OSError:
        return False


def _ended(job: int) -> int:
    """Ends the job's process and all that it started; its exit code, negative for a signal."""
    # It is waited for only then: until it is, no other process can have its number.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(job, signal.SIGKILL)
    _, status = os.waitpid(job, 0)
    return os.waitstatus_to_exitcode(status)
