"""Jobs in processes forked from one warm interpreter: nothing goes from one to the next, and none outlives its end."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from numtrace import interpreter
from numtrace.errors import RunError
from numtrace.workers import Worker

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="finds processes in /proc")

MODEL = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
  %y = arith.{op} %x, %x : tensor<4xf32>
  return %y : tensor<4xf32>
}}
"""

#: Written by each interpreter that starts, and by each process that is forked from one.
MARKS = """
import os
import sys

if any(word.endswith("boot.py") for word in sys.orig_argv):
    def mark(word):
        with open({marks!r}, "a") as stream:
            print(word, os.getpid(), os.getppid(), file=stream)

    mark("started")
    os.register_at_fork(after_in_child=lambda: mark("forked"))
{more}
"""

#: As a library would that starts a thread when it is loaded.
THREAD = """
    import threading
    threading.Thread(target=threading.Event().wait, daemon=True).start()
"""


class Interpreters:
    """Python as ``python``, whose processes that run numtrace's jobs leave a mark."""

    def __init__(self, folder: Path, more: str = ""):
        (folder / "site").mkdir(parents=True)
        self._marks = folder / "marks"
        (folder / "site" / "sitecustomize.py").write_text(MARKS.format(marks=str(self._marks), more=more))
        self.python = str(folder / "python")
        Path(self.python).write_text(
            f"#!/bin/sh\nPYTHONPATH='{folder / 'site'}' exec '{sys.executable}' \"$@\"\n"
        )
        Path(self.python).chmod(0o755)

    @property
    def marks(self) -> list[tuple[str, int, int]]:
        """What happened: a word, the process it happened in, and the parent of that."""
        lines = self._marks.read_text().splitlines() if self._marks.exists() else []
        return [(word, int(pid), int(parent)) for word, pid, parent in map(str.split, lines)]

    def words(self) -> list[str]:
        return [word for word, _, _ in self.marks]


@pytest.fixture
def interpreters(tmp_path):
    made = Interpreters(tmp_path / "env")
    yield made
    _drop(made)


def _drop(made: Interpreters) -> None:
    kept = interpreter._IDLE.pop(made.python, None)
    if kept is not None:
        kept.stop()


def job(folder: Path, op: str = "addf") -> dict[str, Any]:
    """The job that reads a model, which is given by its name in the current folder."""
    folder.mkdir(parents=True)
    (folder / "m.mlir").write_text(MODEL.format(op=op))
    return {
        "kind": "read", "folder": str(folder), "model": "m.mlir", "function": None, "params": [], "inputs": [],
        "flags": ["--iree-hal-target-backends=llvm-cpu", "--iree-llvmcpu-target-cpu=host"], "compile_timeout": 60,
    }  # fmt: skip


def events(job: dict[str, Any], folder: Path, python: str) -> list[dict[str, Any]]:
    with Worker(job, folder / "log", python) as worker:
        return list(worker.events())


def gone(pid: int, seconds: float = 10) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.02)
    return False


def test_two_jobs_of_one_interpreter(interpreters, tmp_path, monkeypatch):
    for op in ("addf", "mulf"):
        work = job(tmp_path / op, op)
        monkeypatch.chdir(tmp_path / op)
        *_, last = events(work, tmp_path / op, interpreters.python)
        assert last["event"] == "read"
        # its own model, by a relative path, and its own files
        assert f"arith.{op}" in (tmp_path / op / "source.mlir").read_text()
        assert sorted(path.name for path in (tmp_path / op).iterdir()) == [
            "log", "m.mlir", "ops.json", "source.mlir",
        ]  # fmt: skip
    (started, first, second) = interpreters.marks
    assert [started[0], first[0], second[0]] == ["started", "forked", "forked"]
    assert first[2] == second[2] == started[1], "both are children of the one interpreter"
    assert gone(first[1])
    assert gone(second[1])


def test_what_is_printed_goes_to_the_job_s_own_log(tmp_path):
    noisy = Interpreters(tmp_path / "env", "    os.register_at_fork(after_in_child=lambda: print('printed'))")
    for name in ("a", "b"):
        work = job(tmp_path / name) | {"model": str(tmp_path / name / "m.mlir")}
        events(work, tmp_path / name, noisy.python)
        assert (tmp_path / name / "log").read_text() == "printed\n"
    _drop(noisy)


def test_an_interpreter_that_has_threads_is_not_forked(tmp_path):
    """A fork copies one thread and every lock. Then each job loads all it needs in an interpreter of its own."""
    threaded = Interpreters(tmp_path / "env", THREAD)
    for name in ("a", "b"):
        work = job(tmp_path / name) | {"model": str(tmp_path / name / "m.mlir")}
        *_, last = events(work, tmp_path / name, threaded.python)
        assert last["event"] == "read"
    assert threaded.words() == ["started"] * 3, "one that waits for jobs, and one for each"
    pids = [pid for _, pid, _ in threaded.marks]
    assert [parent for _, _, parent in threaded.marks[1:]] == [pids[0]] * 2
    # such a job ends as any other
    work = job(tmp_path / "c") | {"model": str(tmp_path / "c" / "m.mlir")}
    with Worker(work, tmp_path / "c" / "log", threaded.python) as worker:
        next(worker.events())
    assert gone(threaded.marks[-1][1])
    _drop(threaded)


def test_a_job_that_dies_costs_itself_only(interpreters, tmp_path):
    work = job(tmp_path / "a") | {"model": str(tmp_path / "a" / "m.mlir")}
    with Worker(work, tmp_path / "a" / "log", interpreters.python) as worker:
        coming = worker.events()
        assert next(coming)["name"] == "read the model"
        os.kill(interpreters.marks[-1][1], signal.SIGABRT)
        with pytest.raises(
            RunError, match=r"died of SIGABRT \(an abort: an assertion failed\) at: "
        ) as caught:
            list(coming)
    assert caught.value.kind == "crash"
    assert events(work, tmp_path / "a", interpreters.python)[-1]["event"] == "read"
    assert interpreters.words() == ["started", "forked", "forked"]


def test_an_interpreter_that_dies_takes_its_job_along(interpreters, tmp_path):
    work = job(tmp_path / "a") | {"model": str(tmp_path / "a" / "m.mlir")}
    with Worker(work, tmp_path / "a" / "log", interpreters.python) as worker:
        coming = worker.events()
        next(coming)
        (_, warm, _), (_, running, _) = interpreters.marks
        os.kill(warm, signal.SIGKILL)
        with pytest.raises(RunError, match="died of SIGKILL"):
            list(coming)
    assert gone(running)
    # the next job has a new one, and so it has when one dies while it has nothing to do
    assert events(work, tmp_path / "a", interpreters.python)[-1]["event"] == "read"
    os.kill(interpreters.marks[-1][2], signal.SIGKILL)
    assert gone(interpreters.marks[-1][2])
    assert events(work, tmp_path / "a", interpreters.python)[-1]["event"] == "read"
    assert interpreters.words() == ["started", "forked"] * 3


def test_two_jobs_at_once_have_an_interpreter_each(interpreters, tmp_path):
    works = [job(tmp_path / name) | {"model": str(tmp_path / name / "m.mlir")} for name in ("a", "b")]
    with (
        Worker(works[0], tmp_path / "a" / "log", interpreters.python) as one,
        Worker(works[1], tmp_path / "b" / "log", interpreters.python) as other,
    ):
        assert [list(worker.events())[-1]["event"] for worker in (other, one)] == ["read", "read"]
    assert sorted(interpreters.words()) == ["forked", "forked", "started", "started"]
