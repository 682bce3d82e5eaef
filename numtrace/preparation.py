"""From a request to a prepared model in a run directory: what every command that compiles begins with."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from numtrace import models
from numtrace.dumps.files import output_errors
from numtrace.dumps.rundir import RunDirectory, default_path
from numtrace.errors import OutputError, UsageError
from numtrace.importers.sources import kind_of, short_name
from numtrace.importing import import_source
from numtrace.instrument.inputs import range_drawn_from
from numtrace.report.progress import Progress
from numtrace.request import Request
from numtrace.workers import Worker, raised

#: What was measured of a target, for all models after the first: by the interpreter, the flags and the device.
_MEASURED: dict[tuple[str | None, tuple[str, ...], str], dict[str, Any]] = {}


@dataclass(frozen=True)
class Model:
    """An MLIR file and its parameter archives, by scope; ``notices`` are for the user.

    ``examples``: files of inputs that came with it, one for each, or none.
    """

    path: str
    params: list[tuple[str, str]]
    notices: list[str]
    examples: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Preparation:
    """A run directory with a model in it; ``event`` is the worker's ``prepared``.

    ``sources`` says of each input where its values are from: what was given, ``example`` or ``seed 0``.
    """

    directory: RunDirectory
    event: dict[str, Any]
    notices: list[str]
    sources: list[str]


def begin(request: Request, flags: list[str], progress: Progress, *, command: str = "run") -> Preparation:
    """Finds the model and puts it into the run directory of ``command``.

    Raises:
        NumtraceError: nothing could be run at all: the model, an input or the target is unfit.
    """
    model = None if kind_of(request.model) else find_model(request, progress)
    name = short_name(request.model) if model is None else Path(model.path).stem
    path = request.out or new_directory(name, datetime.now().astimezone())
    directory = RunDirectory.create(path, command)
    try:
        if model is None:
            model = _imported(request, directory, progress)
        event = prepare(request, flags, directory, model, progress)
    except UsageError:
        if request.out is None:  # nothing was run: no directory for every mistyped line
            shutil.rmtree(directory.path, ignore_errors=True)
        raise
    return Preparation(directory, event, [*model.notices, *event["notices"]], _sources(request, model, event))


def _imported(request: Request, directory: RunDirectory, progress: Progress) -> Model:
    """The model of another framework, as files in the run directory."""
    _refuse_attention(request)
    if request.params:
        raise UsageError(f"{request.model} has its parameters in itself; --params is for MLIR files")
    folder = make_folder(directory.path.absolute() / "model")
    files = import_source(
        request.model,
        folder / "imported.mlir",
        progress,
        log=folder / "import.log",
        python=request.python,
        silence=request.run_timeout,
    )
    return Model(str(files.model), list(files.params), list(files.notices), list(files.inputs))


def _inputs(request: Request, model: Model) -> list[str]:
    """What is given for the inputs; nothing where they are random, which a seed other than 0 asks for."""
    if request.inputs or request.seed or request.seeds > 1:
        return list(request.inputs)
    return [f"@{path}" for path in model.examples]


def _sources(request: Request, model: Model, event: dict[str, Any]) -> list[str]:
    given = list(request.inputs) or ["example"] * len(_inputs(request, model))
    return given or [_seeded(request.seed, argument["dtype"]) for argument in event["arguments"]]


def _seeded(seed: int, dtype: str) -> str:
    drawn = range_drawn_from(dtype)
    return f"seed {seed}" if drawn is None else f"seed {seed}, from {drawn[0]} to {drawn[1]}"


def find_model(request: Request, progress: Progress) -> Model:
    """The model that was asked for; a built-in one is built, or taken from the cache.

    Raises:
        UsageError: options that do not go together, parameters that do not fit.
    """
    params = [(scope, str(path.expanduser().absolute())) for scope, path in request.params]
    if request.model not in models.NAMES:
        _refuse_attention(request)
        return Model(str(Path(request.model).expanduser()), params, [])
    given = [path for scope, path in request.params if scope in ("", "model")]
    if len(given) != len(params) or len(given) > 1:
        raise UsageError(
            f"{request.model} takes one --params model=FILE.safetensors, or none for seeded weights"
        )
    progress.stage(f"build {request.model}")
    built = models.build(request.model, request.attention, None, given[0] if given else None)
    params = [(scope, str(path)) for scope, path in built.parameters.items()]
    return Model(str(built.mlir), params, list(built.notices))


def _refuse_attention(request: Request) -> None:
    if request.attention is not None:
        raise UsageError("--attention chooses a form of a built-in model; a model from a file is as it is")


def prepare(
    request: Request, flags: list[str], directory: RunDirectory, model: Model, progress: Progress
) -> dict[str, Any]:
    """Puts the model into the run directory, stamped and checked, and returns the worker's ``prepared`` event.

    Raises:
        NumtraceError: the model, an input, a parameter or the target is unfit.
    """
    shared = make_folder(directory.path.absolute() / "model")
    target = (request.python, tuple(flags), request.device)
    job = {
        "folder": str(shared),
        "model": model.path,
        "function": request.function,
        "params": model.params,
        "inputs": _inputs(request, model),
        "expected": [str(path) for path in request.expected],
        "seed": request.seed,
        "seeds": request.seeds,
        "flags": flags,
        "device": request.device,
        "reference_device": request.reference_device,
        "threads": request.threads,
        "compile_timeout": request.compile_timeout,
        "measured": _MEASURED.get(target),
    }
    read = result(job | {"kind": "read"}, shared / "read.log", request, progress)
    event = result(job | {"kind": "prepare", "read": read}, shared / "worker.log", request, progress)
    _MEASURED[target] = {
        "cpu": event["cpu"],
        "flush_denormals": event["environment"]["flush_denormals"],
    }
    return event


def result(job: dict[str, Any], log: Path, request: Request, progress: Progress) -> dict[str, Any]:
    """The event that ends a job without sites; an error is raised as one of this process."""
    with Worker(job, log, request.python) as worker:
        event = worker.result(progress.stage, request.run_timeout)
    if event["event"] == "error":
        raise raised(event)
    return event


def events(
    job: dict[str, Any], log: Path, request: Request, progress: Progress
) -> Generator[dict[str, Any], None, None]:
    """The events of a worker that does ``job``; its stages are shown as they come."""
    with Worker(job, log, request.python) as worker:
        for event in worker.events(request.run_timeout):
            if event["event"] == "stage":
                progress.stage(event["name"])
            yield event


def make_folder(path: Path) -> Path:
    with output_errors(path):
        path.mkdir(parents=True, exist_ok=True)
    return path


def new_directory(model: str, now: datetime) -> Path:
    """A fresh run directory here; two runs that start in the same second get one each."""
    while True:
        path = default_path(model, now)
        try:
            with output_errors(path):
                path.mkdir()
        except OutputError as error:
            if isinstance(error.__cause__, FileExistsError):
                continue
            raise
        return path
