"""``numtrace bisect``: the parent of the one worker that looks for the pass which changes the meaning."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import msgspec

from numtrace import __version__
from numtrace.dumps import schema
from numtrace.dumps.bisection import FILE, Bisection, Stage, Step, encode
from numtrace.dumps.rundir import RunDirectory
from numtrace.errors import ExitCode
from numtrace.passes import probe
from numtrace.passes.model import Variant
from numtrace.preparation import begin, result
from numtrace.report.progress import Progress
from numtrace.request import Request
from numtrace.targets import backend, with_defaults

_EXIT = {"found": ExitCode.FINDING, "unchanged": ExitCode.OK, "inconclusive": ExitCode.INCONCLUSIVE}


def bisect(request: Request, progress: Progress, *, every: bool = False) -> tuple[Bisection, Path]:
    """Runs the whole search and leaves ``bisect.json`` and the snapshots in the run directory.

    ``every``: evaluates every snapshot of every stage, to find what is repaired further down as well.

    Raises:
        NumtraceError: the model, an input or a pass is unfit, or a stage does not compile.
    """
    started = time.perf_counter()
    flags = with_defaults(request.flags)
    variant = Variant.of(request.passes)
    pipeline = probe.join(variant.passes, request.python)
    preparation = begin(request, flags, progress, command="bisect")
    directory, prepared = preparation.directory, preparation.event
    folder = directory.variant(variant.name).path.absolute()
    job = {
        "kind": "bisect",
        "folder": str(folder),
        "shared": str(folder.parent.parent / "model"),
        **{key: prepared[key] for key in ("function", "params", "arguments", "reference")},
        "passes": [pass_.name for pass_ in variant.passes],
        "pipeline": pipeline,
        "flags": [*flags, *variant.flags],
        "reference_device": request.reference_device,
        "seed": request.seed,
        "threads": request.threads,
        "compile_timeout": request.compile_timeout,
        "every": every,
    }
    event = result(job, folder / "worker.log", request, progress)
    stages = msgspec.convert([_relative(s, directory) for s in event["stages"]], list[Stage])
    steps = [_step(found, directory) for found in event["steps"]]
    verdict, reason = judge(stages, steps, prepared["reference"])
    document = Bisection(
        tool=schema.Tool(name="numtrace", version=__version__),
        environment=msgspec.convert(prepared["environment"], schema.Environment),
        model=request.model,
        sha256=prepared["sha256"],
        function=prepared["function"],
        target=schema.Target(
            backend=backend(flags), device=request.device, cpu=prepared["cpu"], flags=job["flags"]
        ),
        passes=job["passes"],
        pipeline=pipeline or None,
        verdict=verdict,  # type: ignore[arg-type]
        reason=reason,
        stages=stages,
        steps=steps,
        notices=[*request.notices, *preparation.notices],
        seconds=time.perf_counter() - started,
    )
    directory.write_bytes(FILE, encode(document))
    return document, directory.path


def exit_code(document: Bisection) -> ExitCode:
    return _EXIT[document.verdict]


def judge(stages: list[Stage], steps: list[Step], reference: str) -> tuple[str, str]:
    """The verdict over what was evaluated, and its reason.

    That nothing changes is said only when every stage was evaluated; but a source of another dialect than torch's
    has no meaning of its own (``reference`` is ``self``) and begins with the ``input`` stage.
    """
    told = [stage for stage in stages if stage.known]
    untold = [stage for stage in stages if not stage.known]
    if steps:
        return "found", "; ".join(map(_found, steps))
    beginning = ""
    if reference == "self" and [stage.name for stage in untold] == ["source"]:
        beginning = "; what the source was before the input stage is not known to numtrace"
    elif untold or len(told) < 2:
        why = "; ".join(f"{stage.name}: {stage.reason}" for stage in untold)
        among = ", ".join(stage.name for stage in told)
        rest = f"nothing changes among {among}, but " if len(told) > 1 else ""
        return "inconclusive", f"{rest}not every stage has an exact value: {why}"
    return "unchanged", (
        f"the exact outputs are the same from {told[0].name} to {told[-1].name}: no pass changes the mathematics "
        f"with these inputs{beginning}"
    )


def _found(step: Step) -> str:
    size = "a NaN or Inf" if step.max_abs is None else f"{step.max_abs:.3g}"
    named = [ran.name for ran in step.passes if ran.name]
    what = named[0] if len(named) == 1 else f"one of {len(named)} passes, {named[0]} to {named[-1]}" if named else (
        f"the end of {step.stage}"
    )  # fmt: skip
    more = f" and {len(step.ops) - 1} more" if len(step.ops) > 1 else ""
    where = f", first at {step.ops[0].name}{more}" if step.ops else ""
    return f"{what} changes the mathematics: {size} at the output in exact arithmetic{where}"


def _step(found: dict[str, Any], directory: RunDirectory) -> Step:
    sides = {side: _relative(found[side], directory) for side in ("before", "after")}
    return msgspec.convert(found | sides, Step)


def _relative(record: dict[str, Any], directory: RunDirectory) -> dict[str, Any]:
    """With the path of its file from the run directory on."""
    path = Path(record["file"]).relative_to(directory.path.absolute())
    return record | {"file": path.as_posix()}
