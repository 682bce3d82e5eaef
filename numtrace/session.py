"""The one orchestration: model and passes to variants, variants to workers, their events to the report."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from numtrace import __version__
from numtrace.acceptance import notices, vanished
from numtrace.attribute.findings import PROVEN
from numtrace.attribute.known import recognise
from numtrace.attribute.semantics import PASS, semantic_findings
from numtrace.attribute.verdict import Judgement, judge
from numtrace.dumps import schema
from numtrace.dumps.commands import write_commands
from numtrace.dumps.records import coverage, output_record, site_record
from numtrace.dumps.rundir import RunDirectory, VariantFolder
from numtrace.errors import ExitCode, NumtraceError, OutputError, RunError
from numtrace.passes import probe
from numtrace.passes.model import Variant
from numtrace.passes.variants import variants
from numtrace.preparation import begin, events
from numtrace.report.progress import Progress
from numtrace.request import Request, backend, with_defaults
from numtrace.workers import placed, raised


@dataclass
class _State:
    """What the run knows so far."""

    prepared: dict[str, Any] = field(default_factory=dict)
    known: dict[str, str] = field(default_factory=dict)
    baseline: dict[str, Any] | None = None
    done: list[schema.Variant] = field(default_factory=list)
    #: By the passes of a variant with a pass bug: the ops that it was brought in at.
    blamed: dict[frozenset[str], list[str]] = field(default_factory=dict)
    internal: str | None = None


class Session:
    """One run. :meth:`run` returns the report; what is finished is on disk at any time."""

    def __init__(self, request: Request, progress: Progress):
        self.request, self.progress = request, progress
        self.flags = with_defaults(request.flags)
        self.notices = list(request.notices)
        self.plan = variants(request.passes, request.modes)
        self.interrupted = False
        self.stopped: NumtraceError | None = None
        self._state = _State()
        self.directory: RunDirectory | None = None

    def run(self) -> schema.Report:
        """Runs every variant of the plan.

        What ends it early when there is something to show already is in ``interrupted`` and ``stopped``.

        Raises:
            NumtraceError: nothing could be run at all: the model, an input or the target is unfit.
        """
        request = self.request
        pipelines = {variant.name: probe.join(variant.passes, request.python) for variant in self.plan}
        prepared = begin(request, self.flags, self.progress)
        self.directory, self._state.prepared = prepared.directory, prepared.event
        self.notices += prepared.notices
        count = len(self.plan)
        self.progress.notice(
            f"{count} variant{'s' * (count > 1)}: {', '.join(variant.name for variant in self.plan)}"
        )
        for number, variant in enumerate(self.plan, start=1):
            self.progress.variant(variant.name, number, len(self.plan))
            try:
                done = self._variant(variant, pipelines[variant.name])
            except KeyboardInterrupt:
                self.interrupted = True
                done = self._unfinished(variant, pipelines[variant.name])
            except OutputError as error:
                if not self._state.done:
                    raise
                self.stopped = error
                break
            self._state.done.append(done)
            try:
                self.directory.write_report(self.report())
            except OutputError as error:
                self.stopped = error
            if self.interrupted or self.stopped:
                break
        return self.report()

    def report(self) -> schema.Report:
        """The document as far as the run has come."""
        state, request = self._state, self.request
        prepared = state.prepared
        baseline = state.baseline or {}
        accepted = request.accepted
        gone = [] if accepted is None else vanished(state.done, accepted, request.model)
        return schema.Report(
            tool=schema.Tool(name="numtrace", version=__version__),
            environment=msgspec.convert(prepared["environment"], schema.Environment),
            model=schema.Model(
                path=request.model,
                sha256=prepared["sha256"],
                function=prepared["function"],
                inputs=[
                    schema.Input(shape=a["shape"], dtype=a["dtype"], source=self._input_source(i))
                    for i, a in enumerate(prepared["arguments"])
                ],
                parameters=[schema.Parameters(scope=scope, path=path) for scope, path in prepared["params"]],
            ),
            target=schema.Target(
                backend=backend(self.flags), device=request.device, cpu=prepared["cpu"], flags=self.flags
            ),
            reference=schema.Reference(
                kind=prepared["reference"], dtype="f64", golden_max_abs=baseline.get("golden_max_abs")
            ),
            tolerance=request.tolerance,
            notices=[*self.notices, *([] if accepted is None else notices(gone, accepted.path))],
            planned=len(self.plan),
            variants=list(state.done),
            known=msgspec.UNSET
            if accepted is None
            else schema.KnownFindings(file=str(accepted.path), entries=len(accepted.entries), vanished=gone),
        )

    def exit_code(self) -> ExitCode:
        """Design section 6: the first that applies over the variants."""
        done = self._state.done
        verdicts = {variant.verdict for variant in done}
        if self._state.internal:
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

    def _variant(self, variant: Variant, pipeline: str) -> schema.Variant:
        assert self.directory is not None
        folder = self.directory.variant(variant.name)
        path = folder.path.absolute()
        state, request, prepared = self._state, self.request, self._state.prepared
        baseline = state.baseline
        job = {
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
            "threads": request.threads,
            "compile_timeout": request.compile_timeout,
            "known": state.known,
            "is_baseline": not variant.passes,
            "baseline_folder": self._baseline_file("flow.mlir", folder=True),
            "baseline_vmfb": self._baseline_file("plain.vmfb"),
            "baseline_constant": None if baseline is None else baseline["split"]["semantic"]["constant"],
            "tolerance": None if request.tolerance is None else msgspec.to_builtins(request.tolerance),
        }
        write_commands(folder, self.directory, job, variant)
        sites: list[dict[str, Any]] = []
        try:
            event = self._follow(job, path / "worker.log", folder, sites)
        except RunError as error:
            message = str(error)
            if error.kind == "crash" and (where := self._locate(job, path)):
                message += f"; {where}"
            if error.kind == "crash" and (why := self._explain(job, path)):
                message += f"; {why}"
            event = {
                "event": "error",
                "error": "RunError",
                "kind": error.kind,
                "message": message,
                "exit_code": int(ExitCode.FAILED),
            }
        match event["event"]:
            case "same-as":
                return self._same(variant, pipeline, event["other"], folder)
            case "no-effect":
                return self._same(variant, pipeline, "baseline", folder)
            case "variant":
                return self._finished(variant, pipeline, event, sites, folder)
        return self._failed(variant, pipeline, event, sites, folder)

    def _follow(
        self, job: dict[str, Any], log: Path, folder: VariantFolder, sites: list[dict[str, Any]]
    ) -> dict[str, Any]:
        """Keeps the sites as they come and returns the event that ends the job."""
        total = 0
        with closing(events(job, log, self.request, self.progress)) as coming:
            for event in coming:
                match event["event"]:
                    case "stage":
                        total = event.get("sites", total)
                    case "site":
                        sites.append(event["record"])
                        folder.append_site(site_record(event["record"]))
                        self.progress.site(len(sites), max(total, len(sites)))
                    case _:
                        return event
        raise RunError("the worker ended without a result", kind="exit")

    def _again(self, job: dict[str, Any], kind: str, path: Path) -> Generator[dict[str, Any], None, None]:
        """The events of another job on what the variant's own left in its folder."""
        return events(job | {"kind": kind}, path / f"{kind}.log", self.request, self.progress)

    def _locate(self, job: dict[str, Any], path: Path) -> str | None:
        """In which dispatch the program dies, by running its traced form again; else None."""
        if not (path / "traced.vmfb").exists():
            return None
        order: list[dict[str, str]] = []
        reached: list[str] = []
        try:
            with closing(self._again(job, "locate", path)) as coming:
                for event in coming:
                    match event["event"]:
                        case "order":
                            order = event["sites"]
                        case "begin":
                            reached = []
                        case "reached":
                            reached.append(event["id"])
                        case _:
                            return None
        except RunError:
            pass
        ids = [site["id"] for site in order]
        if ids[: len(reached)] == reached and len(reached) < len(order):
            site = order[len(reached)]
            return f"it dies in dispatch {site['id']}" + (f", {site['op']}" if site["op"] else "")
        return f"it dies after dispatch {reached[-1]}" if reached else None

    def _explain(self, job: dict[str, Any], path: Path) -> str | None:
        """What is undefined in the source with these inputs, which a crash may come of; None when nothing is."""
        try:
            with closing(self._again(job, "explain", path)) as coming:
                for event in coming:
                    if event["event"] == "error" and event["kind"] == "undefined":
                        return f"in the source {placed(event)}"
        except RunError:
            pass
        return None

    def _finished(
        self, variant: Variant, pipeline: str, event: dict, sites: list[dict], folder: VariantFolder
    ) -> schema.Variant:
        amended = event["amended"]
        for site in sites:
            if site["id"] in amended:
                site |= {"match": "unmatched", "reason": amended[site["id"]]}
        event["differing"] = [site for site in sites if site["match"] == "differs"]
        passes = {pass_.name for pass_ in variant.passes}
        blamed = {op for names, ops in self._state.blamed.items() if names < passes for op in ops}
        meaning: dict[str, Any] = {"is_baseline": not variant.passes, "baseline": self._state.baseline}
        semantic = semantic_findings(event, sites, **meaning, blamed=blamed)
        self._state.blamed[frozenset(passes)] = [
            one["op"] for one in semantic if (one["kind"], one["certainty"]) == (PASS, PROVEN)
        ]
        accepted = self.request.accepted
        entries = [] if accepted is None else accepted.plain()
        event["findings"], _ = recognise([*semantic, *event["findings"]], passes, entries)
        tolerant = self.request.tolerance is not None
        verdict = judge(event, sites, **meaning, tolerant=tolerant, findings=event["findings"])
        event["folder"] = str(folder.path.absolute())
        self._state.known.setdefault(event["digest"], variant.name)
        if not variant.passes:
            self._state.baseline = event
        torch_error = event["torch_same_dtype"]
        worst = (torch_error or {}).get("max_abs")
        outputs = [output_record(record, worst) for record in event["outputs"]]
        split = event["split"]
        return self._base(
            variant,
            pipeline,
            "ran",
            verdict,
            folder,
            ops_changed=event["ops_changed"],
            output=None if event["output"] is None else output_record(event["output"], worst),
            outputs=outputs,
            torch_same_dtype=None if torch_error is None else msgspec.convert(torch_error, schema.TorchError),
            spread=None if event["spread"] is None else msgspec.convert(event["spread"], schema.Spread),
            split=schema.Split(
                semantic=msgspec.convert(split["semantic"], schema.SemanticSplit),
                execution_max_abs=split["execution_max_abs"],
            ),
            findings=msgspec.convert(event["findings"], list[schema.Finding]),
            constants=msgspec.convert(event["constants"], list[schema.Constant]),
            coverage=coverage(sites),
            traced_equal=event["traced_equal"],
            nonfinite_origin=None
            if event["nonfinite_origin"] is None
            else msgspec.convert(event["nonfinite_origin"], schema.Origin),
            timings=msgspec.convert(event["timings"], schema.Timings),
            sites=[site_record(site) for site in sites],
        )

    def _same(self, variant: Variant, pipeline: str, other: str, folder: VariantFolder) -> schema.Variant:
        first = next(done for done in self._state.done if done.name == other)
        if other == "baseline" and first.verdict in ("inconclusive", "over-tolerance"):
            reason = Judgement(
                first.verdict, f"the pass changed nothing, and for the baseline: {first.reason}"
            )
        elif other == "baseline":
            reason = Judgement("no-effect", "the pass changed nothing: the program is the baseline's")
        else:
            reason = Judgement(first.verdict or "inconclusive", f"the same program as {other}: run once")
        return self._base(
            variant, pipeline, "same-as", reason, folder, same_as=other,
            ops_changed=0 if other == "baseline" else first.ops_changed,
            output=first.output, outputs=first.outputs, split=first.split,
        )  # fmt: skip

    def _failed(
        self, variant: Variant, pipeline: str, event: dict, sites: list[dict], folder: VariantFolder
    ) -> schema.Variant:
        if event["error"] == "OutputError" or (event["exit_code"] == ExitCode.USAGE and not variant.passes):
            raise raised(event)  # the disk, or the user's own flags: no variant can run
        if event["error"] in ("UncoveredOp", "UndefinedResult"):
            why = f"it ran, but there is nothing exact to compare with: {placed(event)}"
            return self._base(
                variant, pipeline, "ran", Judgement("inconclusive", why), folder,
                coverage=coverage(sites), sites=[site_record(site) for site in sites],
            )  # fmt: skip
        if event["exit_code"] == ExitCode.INTERNAL:
            self._state.internal = event["message"]
        compiling = event["error"] == "CompileError" or event["exit_code"] == ExitCode.USAGE
        status = "compile-failed" if compiling else "run-failed"
        failure = schema.Failure(kind=event["kind"], message=event["message"], location=event.get("location"))
        return self._base(
            variant, pipeline, status, Judgement(status, placed(event)), folder, error=failure,
            coverage=coverage(sites), sites=[site_record(site) for site in sites],
        )  # fmt: skip

    def _unfinished(self, variant: Variant, pipeline: str) -> schema.Variant:
        return schema.Variant(
            name=variant.name, passes=[p.name for p in variant.passes], pipeline=pipeline or None,
            flags=list(variant.flags), status="interrupted", reason="stopped before it had finished",
        )  # fmt: skip

    def _base(
        self,
        variant: Variant,
        pipeline: str,
        status: str,
        verdict: Judgement,
        folder: VariantFolder,
        **fields: Any,
    ) -> schema.Variant:
        files = {
            path.stem if path.suffix != ".txt" else path.name: f"{folder.relative}/{path.name}"
            for path in sorted(folder.path.glob("*.mlir"))
        }
        for name in ("plain.vmfb", "commands.txt", "worker.log", "locate.log"):
            if (folder.path / name).exists():
                files[name] = f"{folder.relative}/{name}"
        return schema.Variant(
            name=variant.name,
            passes=[p.name for p in variant.passes],
            pipeline=pipeline or None,
            flags=list(variant.flags),
            status=status,  # type: ignore[arg-type]
            verdict=verdict.verdict,  # type: ignore[arg-type]
            reason=verdict.reason,
            directory=folder.relative,
            files=files,
            **fields,
        )

    def _baseline_file(self, name: str, *, folder: bool = False) -> str | None:
        """A file that the baseline left, or its folder; None before it ran, or if it did not get so far."""
        assert self.directory is not None
        baseline = next((done for done in self._state.done if not done.passes), None)
        if baseline is None or baseline.directory is None:
            return None
        path = self.directory.path / baseline.directory / name
        return str(path.parent if folder else path) if path.exists() else None

    def _input_source(self, index: int) -> str:
        inputs = self.request.inputs
        return inputs[index] if index < len(inputs) else f"seed {self.request.seed}"
