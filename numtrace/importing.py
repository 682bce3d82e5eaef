"""From a source of another framework to an MLIR file, by a worker: what ``numtrace import`` does, and ``run`` first."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from numtrace.dumps.files import output_errors
from numtrace.errors import UsageError
from numtrace.importers.sources import kind_of, short_name
from numtrace.report.progress import Progress
from numtrace.workers import Worker, raised


@dataclass(frozen=True)
class ImportedFiles:
    """An MLIR file, its parameter archives by scope, and files of example inputs in order."""

    model: Path
    params: Sequence[tuple[str, str]]
    inputs: Sequence[str]
    notices: Sequence[str]

    def command(self) -> str:
        """The ``numtrace run`` line that uses them."""
        params = [f"--params={scope}={path}" for scope, path in self.params]
        inputs = [f"--input=@{path}" for path in self.inputs]
        return shlex.join(["numtrace", "run", str(self.model), *params, *inputs])


def import_source(
    source: str,
    target: Path,
    progress: Progress,
    *,
    log: Path,
    python: str | None = None,
    silence: float | None = None,
) -> ImportedFiles:
    """Writes the program of ``source`` to ``target`` (``x.mlir``), ``x.irpa`` and ``x.input0.npy``, ….

    ``log`` takes what the framework and the user's own code print; ``silence`` is as for :meth:`Worker.events`.

    Raises:
        NumtraceError: the source cannot be imported, or a file cannot be written.
    """
    kind = kind_of(source)
    if kind is None:
        raise UsageError(
            f"{source} is nothing to import: give an .onnx or .pt2 file, or package.module:factory; "
            "numtrace run takes .mlir files and built-in models as they are"
        )
    if target.suffix != ".mlir":
        raise UsageError(f"{target} was given for the model, a name that ends in .mlir is expected")
    job = {
        "kind": f"import-{kind}",
        "source": source if kind == "factory" else str(Path(source).expanduser()),
        "target": str(target),
        "folder": str(target.parent),
    }
    with output_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
    with Worker(job, log, python) as worker:
        event = worker.result(progress.stage, silence)
    if event["event"] == "error":
        raise raised(event)
    params = [(scope, path) for scope, path in event["params"]]
    return ImportedFiles(target, params, event["inputs"], event["notices"])


def import_to(
    source: str, out: Path | None, progress: Progress, *, python: str | None = None
) -> ImportedFiles:
    """:func:`import_source` for ``numtrace import``; without ``out`` into the current directory."""
    target = out or Path(f"{short_name(source)}.mlir")
    with tempfile.TemporaryDirectory(prefix="numtrace-import-") as folder:
        return import_source(source, target, progress, log=Path(folder, "import.log"), python=python)
