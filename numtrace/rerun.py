"""One dispatch of a finished run again: finds what the run left of it, and sends a worker to run it alone."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numtrace.dumps.code import Code, alone_folder, dispatch_id, read_code
from numtrace.dumps.files import output_errors
from numtrace.dumps.rundir import load
from numtrace.dumps.schema import Report, Site, Variant
from numtrace.errors import ExitCode, NumtraceError, UsageError
from numtrace.report.progress import Progress
from numtrace.report.terminal import find_site, find_variant
from numtrace.workers import Worker, raised

FORMAT = "numtrace.rerun"
VERSION = 1


@dataclass(frozen=True)
class Found:
    """A site of a finished run, and where the run left what is needed to run its dispatch again.

    ``given``: where the user wants what is made of the dispatch; None: in the run directory. ``asked``: the name of
    the variant that was asked for, of which ``variant`` is the same program.
    """

    run: Path
    report: Report
    variant: Variant
    site: Site
    given: Path | None
    asked: str

    @property
    def dispatch(self) -> str:
        """The id of the dispatch: the site's without the result (``main/12`` of ``main/12.0``)."""
        return dispatch_id(self.site)

    @property
    def folder(self) -> Path:
        """What the variant left."""
        assert self.variant.directory is not None
        return self.run / self.variant.directory

    @property
    def out(self) -> Path:
        """Where the dispatch alone goes: its program, and what the compiler dumps of it, by route."""
        return alone_folder(self.folder, self.site) if self.given is None else self.given


def find(run: Path, variant: str, site: str, out: Path | None = None) -> Found:
    """The site of that id (or the only one of that op) in the run directory ``run``; "": the last variant.

    ``out``: where to put the dispatch alone, if not in the run directory.

    Raises:
        UsageError: no such run, variant or site (near ones are named), or the variant has no program to look at.
    """
    report = load(run)
    folder = run if run.is_dir() else run.parent
    one = find_variant(report, variant or report.variants[-1].name)
    asked = one.name
    if one.same_as is not None:
        one = find_variant(report, one.same_as)  # the same program, run once
    if not one.sites:
        raise UsageError(
            f"variant {one.name} has no dispatches to run again: {one.reason or one.status}; "
            f"there are the variants {', '.join(v.name for v in report.variants)}"
        )
    given = None if out is None else out.absolute()
    found = Found(folder.absolute(), report, one, find_site(one, site), given, asked)
    if "#" in found.dispatch:
        raise UsageError(
            f"{found.site.id} is one round of a loop, whose inputs cannot be had one by one; "
            "give a site outside of loops"
        )
    return found


def rerun(
    found: Found,
    progress: Progress,
    *,
    more: Sequence[str] = (),
    routes: bool = False,
    timeout: float = 120.0,
    python: str | None = None,
) -> dict[str, Any]:
    """The record of the dispatch alone: as in the run, with the flags ``more`` added, and by other routes if asked.

    ``timeout``: seconds for one compilation or run of the dispatch alone.

    Raises:
        UsageError: the run directory lacks a file, a parameter archive is gone, or the compiler does not know one of
            the flags.
        RunError, CompileError: the program of the run does not run again, or the dispatch cannot be taken out.
    """
    job = _job(found, timeout) | {"kind": "rerun", "more": list(more), "routes": routes}
    event = _do(found, job, progress, python)
    for route in event["routes"]:
        if route["name"] == "given" and route["kind"] == UsageError.kind:
            raise UsageError(route["reason"])
    return {
        "format": FORMAT,
        "version": VERSION,
        "run": str(found.run),
        "variant": found.variant.name,
        "site": found.site.id,
        "op": found.site.op,
        "ops": found.site.ops,
        "dtype": found.site.dtype,
        "shape": found.site.shape,
        "flags": job["flags"],
        "more": list(more),
        "folder": str(found.out),
        **{key: value for key, value in event.items() if key != "event"},
    }


def code_of(found: Found, record: dict[str, Any]) -> Code | None:
    """The dispatch's code, lowered with the flags that were added where that went well, else as in the run."""
    routes = [route["name"] for route in record["routes"] if route["name"] in ("own", "given")]
    folders = [found.out / name / "code" for name in reversed(routes)]
    return read_code(found.run, found.variant, found.site, next((f for f in folders if f.exists()), None))


def exit_code(record: dict[str, Any]) -> ExitCode:
    """3 when the dispatch does not run alone, as it is or with what was added; another route may fail."""
    asked = [route["status"] for route in record["routes"] if route["name"] in ("own", "given")]
    return ExitCode.FAILED if any(status.endswith("failed") for status in asked) else ExitCode.OK


def dump_code(found: Found, progress: Progress, *, timeout: float = 120.0, python: str | None = None) -> None:
    """Compiles the dispatch alone into :attr:`Found.out`, for what the compiler says of it. Nothing is run.

    Raises:
        UsageError, CompileError: as :func:`rerun`.
    """
    _do(found, _job(found, timeout) | {"kind": "dump-code"}, progress, python)


def _job(found: Found, timeout: float) -> dict[str, Any]:
    report, variant = found.report, found.variant
    for name in ("flow.mlir", "traced.vmfb"):
        if not (found.folder / name).exists():
            raise UsageError(
                f"{found.folder / name} is not there: the run left no traced program of variant "
                f"{variant.name}; run numtrace again"
            )
    return {
        "folder": str(found.folder),
        "shared": str(found.run / "model"),
        "out": str(found.out),
        "site": found.dispatch,
        "result": int(found.site.id.rpartition(".")[2]),
        "function": report.model.function,
        "params": [[archive.scope, archive.path] for archive in report.model.parameters],
        "arguments": [{"shape": i.shape, "dtype": i.dtype} for i in report.model.inputs],
        "seed": _seed(found),
        "flags": [*report.target.flags, *variant.flags],
        "device": report.target.device,
        "threads": report.environment.threads or len(os.sched_getaffinity(0)),
        "timeout": timeout,
    }


def _seed(found: Found) -> int:
    """The seed whose inputs were traced: of several the one with the worst output, as the worker chose."""
    spread = found.variant.spread
    if spread is not None:
        gaps = [float("inf") if gap is None else gap for gap in spread.max_abs]
        return spread.seeds[gaps.index(max(gaps))]
    folder = found.run / "model" / "inputs"
    seeds = sorted(int(path.name) for path in folder.glob("*") if path.is_dir() and path.name.isdecimal())
    if not seeds:
        raise UsageError(f"{folder} is not there: the run's inputs are gone; run numtrace again")
    return seeds[0]


def _do(found: Found, job: dict[str, Any], progress: Progress, python: str | None) -> dict[str, Any]:
    if found.asked != found.variant.name:
        progress.notice(f"{found.asked} is the same program as {found.variant.name}, which was run")
    with output_errors(found.out):
        found.out.mkdir(parents=True, exist_ok=True)
    with Worker(job, found.out / "worker.log", python) as worker:
        event = worker.result(progress.stage)
    if event["event"] == "error":
        raise _explained(event, found)
    return event


def _explained(event: dict[str, Any], found: Found) -> NumtraceError:
    error = raised(event)
    if event["error"] in ("UncoveredOp", "UndefinedResult"):
        error = NumtraceError(f"the inputs of {found.site.id} cannot be followed to it: {error}")
        error.exit_code = ExitCode.INCONCLUSIVE
    return error
