"""Compiling one variant phase by phase, what its pass changed, and the traces that are put in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from iree.compiler import ir

from numtrace.attribute.changes import changed_stamps, dispatch_prints, fingerprints, stage_digest
from numtrace.evaluate.program import Program
from numtrace.instrument.compiler import phase
from numtrace.instrument.traces import insert_traces, printed
from numtrace.worker.channel import Channel

_PHASES = ("preprocessing", "global-optimization", "dispatch-creation", "flow")


class Variant:
    """The files and settings of one variant's job."""

    def __init__(self, job: dict[str, Any], channel: Channel):
        self.job, self.channel = job, channel
        self.shared = Path(job["shared"])
        self.folder = Path(job["folder"])
        self.flags: list[str] = [*job["flags"]]
        self.pipeline: str = job["pipeline"]
        self.timeout: float = job["compile_timeout"]
        self.table = json.loads((self.shared / "ops.json").read_text(encoding="utf-8"))

    @property
    def pass_flags(self) -> list[str]:
        return [f"--iree-preprocessing-pass-pipeline={self.pipeline}"] if self.pipeline else []

    def file(self, stage: str) -> Path:
        return self.folder / f"{stage}.mlir"

    def program(self, stage: str) -> Program:
        return Program.parse(self.file(stage).read_text(encoding="utf-8"))


def compile_stages(variant: Variant) -> tuple[str, list[int] | None]:
    """Compiles to ``flow`` by phases; returns a digest of what was preprocessed and the ops that changed."""
    before, start = variant.shared / "input.mlir", "input"
    digest: str = ""
    changed: list[int] | None = None
    for stage in _PHASES:
        variant.channel.stage(f"compile to {stage}")
        flags = [*variant.flags, *variant.pass_flags]
        phase(before, variant.file(stage), start, stage, flags, variant.timeout)
        before, start = variant.file(stage), stage
        if stage == "preprocessing":
            digest, changed = _preprocessed(variant)
            if digest in variant.job["known"]:
                break
    return digest, changed


def _preprocessed(variant: Variant) -> tuple[str, list[int] | None]:
    program = variant.program("preprocessing")
    prints = fingerprints(program)
    (variant.folder / "fingerprints.json").write_text(json.dumps(prints))
    digest = stage_digest(program, variant.flags)
    baseline = variant.job["baseline_folder"]
    if variant.job["is_baseline"]:
        return digest, []
    if baseline is None or not variant.pipeline:
        return digest, None
    other = json.loads(Path(baseline, "fingerprints.json").read_text())
    return digest, changed_stamps(other, prints)


def no_longer_read(variant: Variant, changed: list[int]) -> list[int]:
    """Loads of parameters that the pass left without a reader."""
    kept = json.loads((variant.folder / "fingerprints.json").read_text())
    weights = ("util.global.load", "torch.vtensor.literal")
    left = {stamp for key in kept for stamp in key.split(",")}
    return [n for n in changed if variant.table[n]["kind"] in weights and str(n) not in left]


def dispatches_changed(variant: Variant, flow: Program) -> int | None:
    """For passes by flags: how many dispatches are not among the baseline's; None without a baseline."""
    baseline = variant.job["baseline_folder"]
    if baseline is None:
        return None
    theirs = dispatch_prints(Program.parse(Path(baseline, "flow.mlir").read_text(encoding="utf-8")))
    return sum((dispatch_prints(flow) - theirs).values())


def instrument(variant: Variant) -> int:
    """Adds the traces, compiles the rest of the way, and returns the number of dispatches."""
    module = ir.Module.parse(variant.file("flow").read_text(encoding="utf-8"), ir.Context())
    sites = insert_traces(module)
    traced = variant.folder / "flow.traced.mlir"
    traced.write_text(printed(module), encoding="utf-8")
    variant.channel.stage("compile with traces")
    phase(traced, variant.folder / "traced.vmfb", "flow", None, variant.flags, variant.timeout)
    return len(sites)
