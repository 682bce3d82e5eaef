"""What the variants of a run came to, one after the other: each is judged by those before it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from numtrace.attribute.findings import PROVEN
from numtrace.attribute.known import recognise
from numtrace.attribute.semantics import PASS, semantic_findings
from numtrace.attribute.verdict import Judgement, judge
from numtrace.dumps import schema
from numtrace.dumps.records import coverage, output_record, site_record
from numtrace.dumps.rundir import RunDirectory, VariantFolder
from numtrace.errors import ExitCode
from numtrace.passes.model import Variant
from numtrace.request import Request
from numtrace.workers import placed, raised

Sites = list[dict[str, Any]]


class History:
    """The records of the variants that are ``done``, and what later ones need of them.

    ``known``: the first variant with each program, by its digest. ``baseline``: the event that ended the baseline;
    None before that. ``internal``: what numtrace itself failed with, if it did.
    """

    def __init__(self, request: Request):
        self._request = request
        self.done: list[schema.Variant] = []
        self.known: dict[str, str] = {}
        self.baseline: dict[str, Any] | None = None
        self.internal: str | None = None
        #: By the passes of a variant with a pass bug: the ops that it was brought in at.
        self._blamed: dict[frozenset[str], list[str]] = {}

    def record(
        self, variant: Variant, pipeline: str, event: dict[str, Any], sites: Sites, folder: VariantFolder
    ) -> None:
        """Adds a variant whose worker ended with ``event``.

        Raises:
            NumtraceError: no variant can run: the disk, or the user's own flags.
        """
        match event["event"]:
            case "same-as":
                done = self._same(variant, pipeline, event["other"], folder)
            case "no-effect":
                done = self._same(variant, pipeline, "baseline", folder)
            case "variant":
                done = self._finished(variant, pipeline, event, sites, folder)
            case _:
                done = self._failed(variant, pipeline, event, sites, folder)
        self.done.append(done)

    def unfinished(self, variant: Variant, pipeline: str) -> None:
        """Adds a variant that the user stopped."""
        stopped = schema.Variant(
            name=variant.name, passes=[p.name for p in variant.passes], pipeline=pipeline or None,
            flags=list(variant.flags), status="interrupted", reason="stopped before it had finished",
        )  # fmt: skip
        self.done.append(stopped)

    def baseline_file(self, directory: RunDirectory, name: str) -> Path | None:
        """A file that the baseline left; None before it ran, or if it did not get so far."""
        baseline = next((done for done in self.done if not done.passes), None)
        if baseline is None or baseline.directory is None:
            return None
        path = directory.path / baseline.directory / name
        return path if path.exists() else None

    def _finished(
        self, variant: Variant, pipeline: str, event: dict[str, Any], sites: Sites, folder: VariantFolder
    ) -> schema.Variant:
        amended = event["amended"]
        for site in sites:
            if site["id"] in amended:
                site |= {"match": "unmatched", "reason": amended[site["id"]]}
        event["differing"] = [site for site in sites if site["match"] == "differs"]
        passes = {pass_.name for pass_ in variant.passes}
        blamed = {op for names, ops in self._blamed.items() if names < passes for op in ops}
        meaning: dict[str, Any] = {"is_baseline": not variant.passes, "baseline": self.baseline}
        semantic = semantic_findings(event, sites, **meaning, blamed=blamed)
        self._blamed[frozenset(passes)] = [
            one["op"] for one in semantic if (one["kind"], one["certainty"]) == (PASS, PROVEN)
        ]
        accepted = self._request.accepted
        entries = [] if accepted is None else accepted.plain()
        event["findings"], _ = recognise([*semantic, *event["findings"]], passes, entries)
        tolerant = self._request.tolerance is not None
        verdict = judge(event, sites, **meaning, tolerant=tolerant, findings=event["findings"])
        event["folder"] = str(folder.path.absolute())
        self.known.setdefault(event["digest"], variant.name)
        if not variant.passes:
            self.baseline = event
        torch_error = event["torch_same_dtype"]
        worst = (torch_error or {}).get("max_abs")
        outputs = [output_record(record, worst) for record in event["outputs"]]
        split = event["split"]
        return _record(
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
            places=event["places"],
            coverage=coverage(sites),
            traced_equal=event["traced_equal"],
            repeats=None if event["repeats"] is None else msgspec.convert(event["repeats"], schema.Repeats),
            nonfinite_origin=None
            if event["nonfinite_origin"] is None
            else msgspec.convert(event["nonfinite_origin"], schema.Origin),
            timings=msgspec.convert(event["timings"], schema.Timings),
            sites=[site_record(site) for site in sites],
        )

    def _same(self, variant: Variant, pipeline: str, other: str, folder: VariantFolder) -> schema.Variant:
        first = next(done for done in self.done if done.name == other)
        if other == "baseline" and first.verdict in ("inconclusive", "over-tolerance"):
            reason = Judgement(
                first.verdict, f"the pass changed nothing, and for the baseline: {first.reason}"
            )
        elif other == "baseline":
            reason = Judgement("no-effect", "the pass changed nothing: the program is the baseline's")
        else:
            reason = Judgement(first.verdict or "inconclusive", f"the same program as {other}: run once")
        return _record(
            variant, pipeline, "same-as", reason, folder, same_as=other,
            ops_changed=0 if other == "baseline" else first.ops_changed,
            output=first.output, outputs=first.outputs, split=first.split,
        )  # fmt: skip

    def _failed(
        self, variant: Variant, pipeline: str, event: dict[str, Any], sites: Sites, folder: VariantFolder
    ) -> schema.Variant:
        if event["error"] == "OutputError" or (event["exit_code"] == ExitCode.USAGE and not variant.passes):
            raise raised(event)  # the disk, or the user's own flags: no variant can run
        if event["error"] in ("UncoveredOp", "UndefinedResult"):
            why = f"it ran, but there is nothing exact to compare with: {placed(event)}"
            return _record(
                variant, pipeline, "ran", Judgement("inconclusive", why), folder,
                coverage=coverage(sites), sites=[site_record(site) for site in sites],
            )  # fmt: skip
        if event["exit_code"] == ExitCode.INTERNAL:
            self.internal = event["message"]
        compiling = event["error"] == "CompileError" or event["exit_code"] == ExitCode.USAGE
        status = "compile-failed" if compiling else "run-failed"
        failure = schema.Failure(kind=event["kind"], message=event["message"], location=event.get("location"))
        return _record(
            variant, pipeline, status, Judgement(status, placed(event)), folder, error=failure,
            coverage=coverage(sites), sites=[site_record(site) for site in sites],
        )  # fmt: skip


def _record(
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
