"""The job of one variant: compile by phases, instrument, run plain and traced, judge every site."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from numtrace.attribute.changes import computing
from numtrace.attribute.folded import Folded
from numtrace.attribute.matching import formed_dispatches
from numtrace.attribute.outputs import output_record
from numtrace.attribute.reference import Reference
from numtrace.attribute.scalars import source_scalars
from numtrace.attribute.site_records import Names
from numtrace.attribute.torch_error import torch_outputs
from numtrace.attribute.trajectory import Trajectory
from numtrace.errors import CompileError, UncoveredOp
from numtrace.evaluate.device import evaluate_on
from numtrace.evaluate.program import Program
from numtrace.evaluate.torch_conversion import signless
from numtrace.evaluate.types import tensor_type
from numtrace.instrument.compiler import Compilation
from numtrace.instrument.failure import name_ops
from numtrace.instrument.runtime import Outcome, run_module, shared_cores
from numtrace.worker.accusation import codegen_findings
from numtrace.worker.channel import Channel
from numtrace.worker.compilation import (
    Variant,
    compile_stages,
    dispatches_changed,
    instrument,
    no_longer_read,
)
from numtrace.worker.exact import folded, make_reference
from numtrace.worker.hearing import hear_noise
from numtrace.worker.modules import archives, arguments, entry, load_globals
from numtrace.worker.outcome import outcome_fields
from numtrace.worker.prepare import stored_inputs
from numtrace.worker.read_otherwise import read_otherwise
from numtrace.worker.repeats import repeats
from numtrace.worker.witness import same_bits


def run_variant(job: dict[str, Any], channel: Channel) -> None:
    """Streams ``site`` events and ends with ``variant``, or ``same-as`` when another variant is the same."""
    evaluate_on(job["reference_device"])
    variant = Variant(job, channel)
    try:
        with shared_cores(job["threads"]):
            _run(variant)
    except CompileError as error:
        raise name_ops(error, variant.table) from None


def _run(variant: Variant) -> None:
    job, channel = variant.job, variant.channel
    started = time.perf_counter()
    plain = variant.folder / "plain.vmfb"
    flags = [*variant.flags, *variant.pass_flags]
    # Beside the phases: each keeps one core busy for the most part.
    with Compilation(variant.shared / "source.mlir", plain, flags, timeout=variant.timeout) as whole:
        digest, changed = compile_stages(variant)
        if digest in job["known"]:
            channel.send("same-as", other=job["known"][digest], digest=digest)
            return
        flow = variant.program("flow")
        try:
            sites = instrument(variant)
        except CompileError:
            whole.wait()  # the user's own command fails as well: what it says comes first
            raise
        channel.stage("compile in one go")
        whole.wait()
    if _same_binary(plain, job.get("baseline_vmfb")):
        channel.send("no-effect", digest=digest)
        return
    compiled_s = time.perf_counter() - started

    params = archives(job["params"])
    providers = [params.provider(scope) for scope in params.scopes]
    seed, plain_run, spread = _plain_runs(variant, plain, providers, params)
    inputs = stored_inputs(variant.shared, seed, job["arguments"])

    channel.stage("trace", sites=sites, timed=True)
    traced_at = time.perf_counter()
    records: list[dict[str, Any]] = []
    tables = folded(variant, flow, params)
    trajectory, reference = make_trajectory(variant, flow, tables, params, inputs, records)
    torch.set_flush_denormal(False)
    outcome = run_module(
        variant.folder / "traced.vmfb",
        job["function"],
        inputs,
        providers,
        device=job["device"],
        callback=trace_callback(trajectory),
    )
    summary = trajectory.finish()
    expected = reference.finish()
    trajectory.settle_outputs(expected)
    exact_tables = {name: table.exact for name, table in tables.items()}
    hear_noise(variant, trajectory, exact_tables, params, inputs, expected, outcome.outputs)
    traced_s = time.perf_counter() - traced_at

    equal, again = same_bits(outcome.outputs, plain_run.outputs, None), None
    if not equal:
        channel.stage("run again, to see whether runs differ", timed=True)

        def run_again() -> list[Tensor]:
            return run_module(plain, job["function"], inputs, providers, device=job["device"]).outputs

        again = repeats(run_again, plain_run.outputs, outcome.outputs)
    findings = codegen_findings(variant, records, seed)
    channel.stage("compare outputs", timed=True)
    same_dtype = torch_error(variant, flow, params, inputs, expected)
    fields = outcome_fields(variant, flow, outcome, summary, tables, expected, params, inputs)
    channel.send(
        "variant",
        digest=digest,
        ops_changed=dispatches_changed(variant, flow)
        if changed is None
        else len(computing(changed, variant.table)),
        changed=computing(changed or [], variant.table),
        no_longer_read=[variant.table[stamp]["name"] for stamp in no_longer_read(variant, changed or [])],
        traced_equal=equal,
        repeats=again,
        torch_same_dtype=same_dtype,
        spread=spread,
        undefined=[
            f"{what} (at {variant.table[stamps[0]]['name']})" for stamps, what in reference.undefined.items()
        ],
        read_otherwise=read_otherwise(variant, records, params, inputs),
        findings=findings,
        timings={
            "compile_s": compiled_s,
            "run_s": plain_run.load_s + plain_run.call_s,
            "traced_s": traced_s,
            "total_s": time.perf_counter() - started,
        },
        **fields,
    )


def trace_callback(trajectory: Trajectory):
    def receive(key: str, tensors: list[Tensor]) -> None:
        # IREE may have set flush-to-zero on this thread: denormals must reach the evaluation as they are.
        torch.set_flush_denormal(False)
        trajectory.receive(key, tensors)

    return receive


def _same_binary(plain: Path, baseline: str | None) -> bool:
    return baseline is not None and plain.read_bytes() == Path(baseline).read_bytes()


def _plain_runs(variant: Variant, plain: Path, providers: list, params) -> tuple[int, Outcome, dict | None]:
    """Runs the untraced program for every seed; returns the seed of the worst output, its run, the spread."""
    job = variant.job
    runs: dict[int, tuple[float, Outcome]] = {}
    for seed in range(job["seed"], job["seed"] + job["seeds"]):
        variant.channel.stage("run" if job["seeds"] == 1 else f"run with seed {seed}", timed=True)
        inputs = stored_inputs(variant.shared, seed, job["arguments"])
        outcome = run_module(plain, job["function"], inputs, providers, device=job["device"])
        worst = 0.0
        if job["seeds"] > 1:
            expected = make_reference(variant, params, inputs, []).finish()
            gaps = [
                output_record(a, e, dtype="f32")["max_abs"]
                for a, e in zip(outcome.outputs, expected, strict=True)
            ]
            worst = max(float("inf") if gap is None else gap for gap in gaps)
        runs[seed] = (worst, outcome)
    seed = max(runs, key=lambda s: runs[s][0])
    spread = None
    if job["seeds"] > 1:
        spread = {"seeds": list(runs), "max_abs": [worst for worst, _ in runs.values()]}
    return seed, runs[seed][1], spread


def make_trajectory(
    variant: Variant,
    flow: Program,
    tables: dict[str, Folded],
    params,
    inputs: list[Tensor],
    records: list[dict[str, Any]],
) -> tuple[Trajectory, Reference]:
    """The walk beside a run, and the reference that it asks; every site's record goes to ``records`` too."""

    def emit(record: dict[str, Any]) -> None:
        records.append(record)
        variant.channel.send("site", record=record)

    formed = formed_dispatches(variant.program("dispatch-creation"))
    wanted = [stamp for dispatches in formed.values() for one in dispatches for stamp in one.wanted()]
    reference = make_reference(variant, params, inputs, wanted)
    function = entry(flow, variant.job["function"])
    source = Program.parse((variant.shared / "source.mlir").read_text(encoding="utf-8"))
    trajectory = Trajectory(
        program=flow,
        formed=formed,
        reference=reference,
        names=Names(variant.table),
        globals_=load_globals(flow, params),
        scalars=source_scalars(source),
        function=function,
        arguments=arguments(function, inputs),
        emit=emit,
        exact={name: table.exact for name, table in tables.items()},
    )
    return trajectory, reference


def torch_error(
    variant: Variant, flow: Program, params, inputs: list[Tensor], expected: list[Tensor]
) -> dict[str, Any] | None:
    """Torch's own error in the narrowest float type of the variant's IR; None without a torch source."""
    job = variant.job
    if job["reference"] != "torch":
        return None
    dtype = _narrowest(flow)
    if dtype is None:
        return None
    program = Program.parse((variant.shared / "source.mlir").read_text(encoding="utf-8"))
    if dtype != "f32" and f",{dtype}>" in program.text:
        return None  # the source itself is in it, op by op: rounding the contractions is not its own error
    function = entry(program, job["function"])
    try:
        outputs = torch_outputs(
            program, function, arguments(function, inputs), load_globals(program, params), dtype
        )
    except (UncoveredOp, RuntimeError):
        return None
    pairs = zip(map(signless, outputs), expected, strict=True)
    gaps = [output_record(a, e, dtype="f32")["max_abs"] for a, e in pairs]
    return {"dtype": dtype, "max_abs": None if None in gaps else max(gaps, default=0.0)}


def _narrowest(flow: Program) -> str | None:
    """bf16 or f16 where the program has tensors of it, f32 otherwise; None where torch has no like."""
    from numtrace.evaluate.op import walk

    elements = {tensor_type(t)[1] for op in walk([flow.body]) for t in op.result_types}
    return next((dtype for dtype in ("bf16", "f16", "f32") if dtype in elements), None)
