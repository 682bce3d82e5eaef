"""The parent's end of a warm interpreter: it loads torch and IREE once, and forks one process per job."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from contextlib import suppress
from typing import BinaryIO

from numtrace.errors import UsageError
from numtrace.worker import BOOT

#: Passive waiting: IREE's and torch's threads take turns on the same cores, and a spinning one costs the other
#: its time slice. Huge pages: tensors of a gigabyte come and go, and faulting them in page by page took a
#: quarter of the time of a large model.
ENVIRONMENT = {"OMP_WAIT_POLICY": "passive", "THP_MEM_ALLOC_ENABLE": "1"}


class Interpreter:
    """A child process of the Python interpreter ``python``, in a session of its own; one job at a time.

    It ends when this process does, however that ends: it waits for orders on a socket, whose other end goes then.
    Until a job's process is forked it loads modules and hears nothing, which may take seconds.
    """

    def __init__(self, python: str, log: BinaryIO):
        """Raises UsageError: there is no such program. ``log`` takes what it prints before its first job."""
        self._orders, theirs = socket.socketpair()
        #: The process of the job, which leads a group of its own; None until that is told.
        self._job: int | None = None
        with theirs:
            try:
                self._process = subprocess.Popen(
                    [python, "-X", "faulthandler", str(BOOT)],
                    stdin=theirs.fileno(),
                    stdout=log,
                    stderr=log,
                    env=os.environ | ENVIRONMENT,
                    start_new_session=True,
                )
            except OSError as error:
                self._orders.close()
                raise UsageError(f"cannot start the Python interpreter {python}: {error.strerror}") from None

    def fileno(self) -> int:
        """For a selector: there is something to :meth:`hear`."""
        return self._orders.fileno()

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def begin(self, kind: str, connection: socket.socket, log: BinaryIO) -> None:
        """Starts a job of that kind: it speaks over ``connection``, prints to ``log``, and has copies of both."""
        with suppress(ConnectionError):  # it died at once; end() says how
            socket.send_fds(self._orders, [kind.encode()], [connection.fileno(), log.fileno()])

    def hear(self, *, wait: bool = True) -> bool:
        """Takes note that the job's process was started; False, and the job is ended, if the interpreter died."""
        try:
            said = self._orders.recv(64, 0 if wait else socket.MSG_DONTWAIT)
        except BlockingIOError:
            return True
        except ConnectionError:
            said = b""
        if not said:
            self._kill()
            return False
        self._job = int(said)
        return True

    def end(self) -> int:
        """Ends the job, its compilers too, and returns its exit code: of a job that has ended, the one it had.

        A signal is negative, as with subprocess. If the interpreter died, it is how that did.
        """
        while self._job is None:
            if not self.hear():
                return self._process.wait()
        try:
            self._orders.sendall(b".")
            said = self._orders.recv(64)
        except ConnectionError:
            said = b""
        except BaseException:  # what it says next would be the answer to this: no other job may ask it
            self._kill()
            raise
        if not said:
            self._kill()
            return self._process.wait()
        self._job = None
        return int(said)

    def stop(self) -> None:
        """Ends the job wherever it is. An interpreter that is still loading modules ends with it."""
        if self._job is None:
            self.hear(wait=False)
        if self._job is None:
            self._kill()
        else:
            self.end()

    def _kill(self) -> None:
        for group in (self._process.pid if self.alive else None, self._job):
            if group is not None:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(group, signal.SIGKILL)
        self._job = None
        self._process.wait()


#: Interpreters without a job, by the program that was asked for.
_IDLE: dict[str, Interpreter] = {}


def take(python: str, log: BinaryIO) -> Interpreter:
    """The interpreter that did a job before, or a new one. Raises UsageError as :class:`Interpreter`."""
    kept = _IDLE.pop(python, None)
    return kept if kept is not None and kept.alive else Interpreter(python, log)


def give_back(python: str, interpreter: Interpreter) -> None:
    """Keeps it for the next job, if it lives."""
    if interpreter.alive:
        _IDLE[python] = interpreter
