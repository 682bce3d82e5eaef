"""The one orchestration: model and passes to variants, variants to workers, their events to the report."""

from __future__ import annotations

from typing import Any

import msgspec

from numtrace import __version__
from numtrace.acceptance import notices, vanished
from numtrace.attempt import Attempt
from numtrace.dumps import schema
from numtrace.dumps.commands import write_commands
from numtrace.dumps.rundir import RunDirectory, VariantFolder
from numtrace.errors import ExitCode, NumtraceError, OutputError
from numtrace.history import History
from numtrace.passes import probe
from numtrace.passes.model import Variant
from numtrace.passes.variants import variants
from numtrace.preparation import begin
from numtrace.report.progress import Progress
from numtrace.request import Request
from numtrace.targets import backend, with_defaults


class Session:
    """One run. :meth:`run` returns the report; what is finished is on disk at any time."""

    def __init__(self, request: Request, progress: Progress):
        self.request, self.progress = request, progress
        self.flags = with_defaults(request.flags)
        self.notices = list(request.notices)
        self.plan = variants(request.passes, request.modes)
        self.interrupted = False
        self.stopped: NumtraceError | None = None
        self.directory: RunDirectory | None = None
        self._prepared: dict[str, Any] = {}
        self._sources: list[str] = []
        self._history = History(request)

    def run(self) -> schema.Report:
        """Runs every variant of the plan.

        What ends it early when there is something to show already is in ``interrupted`` and ``stopped``.

        Raises:
            NumtraceError: nothing could be run at all: the model, an input or the target is unfit.
        """
        request = self.request
        pipelines = {variant.name: probe.join(variant.passes, request.python) for variant in self.plan}
        prepared = begin(request, self.flags, self.progress)
        self.directory, self._prepared = prepared.directory, prepared.event
        self._sources = prepared.sources
        self.notices += prepared.notices
        count = len(self.plan)
        self.progress.notice(
            f"{count} variant{'s' * (count > 1)}: {', '.join(variant.name for variant in self.plan)}"
        )
        for number, variant in enumerate(self.plan, start=1):
            self.progress.variant(variant.name, number, len(self.plan))
            try:
                self._variant(variant, pipelines[variant.name])
            except KeyboardInterrupt:
                self.interrupted = True
                self._history.unfinished(variant, pipelines[variant.name])
            except OutputError as error:
                if not self._history.done:
                    raise
                self.stopped = error
                break
            try:
                self.directory.write_report(self.report())
            except OutputError as error:
                self.stopped = error
            if self.interrupted or self.stopped:
                break
        return self.report()

    def report(self) -> schema.Report:
        """The document as far as the run has come."""
        request, prepared, done = self.request, self._prepared, self._history.done
        baseline = self._history.baseline or {}
        accepted = request.accepted
        gone = [] if accepted is None else vanished(done, accepted, request.model)
        return schema.Report(
            tool=schema.Tool(name="numtrace", version=__version__),
            environment=msgspec.convert(prepared["environment"], schema.Environment),
            model=schema.Model(
                path=request.model,
                sha256=prepared["sha256"],
                function=prepared["function"],
                inputs=[
                    schema.Input(shape=a["shape"], dtype=a["dtype"], source=source)
                    for a, source in zip(prepared["arguments"], self._sources, strict=True)
                ],
                parameters=[schema.Parameters(scope=scope, path=path) for scope, path in prepared["params"]],
            ),
            target=schema.Target(
                backend=backend(self.flags), device=request.device, cpu=prepared["cpu"], flags=self.flags
            ),
            reference=schema.Reference(
                kind=prepared["reference"],
                dtype="f64",
                device=request.reference_device,
                golden_max_abs=baseline.get("golden_max_abs"),
            ),
            tolerance=request.tolerance,
            notices=[*self.notices, *([] if accepted is None else notices(gone, accepted.path))],
            planned=len(self.plan),
            variants=list(done),
            known=msgspec.UNSET
            if accepted is None
            else schema.KnownFindings(file=str(accepted.path), entries=len(accepted.entries), vanished=gone),
        )

    def exit_code(self) -> ExitCode:
        """Design section 6: the first that applies over the variants."""
        done = self._history.done
        verdicts = {variant.verdict for variant in done}
        if self._history.internal:
            return ExitCode.INTERNAL
        if self.interrupted:
            return ExitCode.INTERRUPTED
        if self.stopped:
            return self.stopped.exit_code
        if any(variant.status in ("compile-failed", "run-failed") for variant in done):
            return ExitCode.FAILED
        if verdicts & {"lowering-bug", "pass-bug", "codegen-bug", "over-tolerance"}:
            return ExitCode.FINDING
        if verdicts & {"inconclusive", "codegen-suspect"}:
            return ExitCode.INCONCLUSIVE
        return ExitCode.OK

    def _variant(self, variant: Variant, pipeline: str) -> None:
        assert self.directory is not None
        folder = self.directory.variant(variant.name)
        job = self._job(variant, pipeline, folder)
        write_commands(folder, self.directory, job, variant)
        attempt = Attempt(job, folder, self.request, self.progress)
        event = attempt.run()
        self._history.record(variant, pipeline, event, attempt.sites, folder)

    def _job(self, variant: Variant, pipeline: str, folder: VariantFolder) -> dict[str, Any]:
        """What the worker is told."""
        assert self.directory is not None
        request, prepared, baseline = self.request, self._prepared, self._history.baseline
        path = folder.path.absolute()
        flow = self._history.baseline_file(self.directory, "flow.mlir")
        vmfb = self._history.baseline_file(self.directory, "plain.vmfb")
        return {
            "kind": "variant",
            "name": variant.name,
            "folder": str(path),
            "shared": str(path.parent.parent / "model"),
            "function": prepared["function"],
            "params": prepared["params"],
            "arguments": prepared["arguments"],
            "results": prepared["results"],
            "reference": prepared["reference"],
            "seed": request.seed,
            "seeds": request.seeds,
            "flags": [*self.flags, *variant.flags],
            "pipeline": pipeline,
            "device": request.device,
            "reference_device": request.reference_device,
            "threads": request.threads,
            "compile_timeout": request.compile_timeout,
            "known": self._history.known,
            "is_baseline": not variant.passes,
            "baseline_folder": None if flow is None else str(flow.parent),
            "baseline_vmfb": None if vmfb is None else str(vmfb),
            "baseline_constant": None if baseline is None else baseline["split"]["semantic"]["constant"],
            "tolerance": None if request.tolerance is None else msgspec.to_builtins(request.tolerance),
        }
