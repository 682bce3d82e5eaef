"""The job of one variant: compile by phases, instrument, run plain and traced, judge every site."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from iree.compiler import ir
from torch import Tensor

from numtrace.attribute.changes import changed_stamps, computing, dispatch_prints, fingerprints, stage_digest
from numtrace.attribute.matching import formed_dispatches, source_finals
from numtrace.attribute.outputs import output_record, worst_first
from numtrace.attribute.reference import Reference
from numtrace.attribute.scalars import as_in_source, rounded_constants, set_to_source, source_scalars
from numtrace.attribute.torch_error import torch_outputs
from numtrace.attribute.trajectory import Names, Summary, Trajectory
from numtrace.errors import CompileError, UncoveredOp
from numtrace.evaluate.machine import Machine
from numtrace.evaluate.program import Program
from numtrace.evaluate.types import tensor_type
from numtrace.instrument.compiler import compile_file, phase
from numtrace.instrument.failure import name_ops
from numtrace.instrument.runtime import Outcome, run_module, shared_cores
from numtrace.instrument.traces import insert_traces
from numtrace.worker.channel import Channel
from numtrace.worker.modules import archives, arguments, entry, load_globals
from numtrace.worker.prepare import stored_inputs

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


def run_variant(job: dict[str, Any], channel: Channel) -> None:
    """Streams ``site`` events and ends with ``variant``, or ``same-as`` when another variant is the same."""
    variant = Variant(job, channel)
    try:
        with shared_cores(job["threads"]):
            _run(variant)
    except CompileError as error:
        raise name_ops(error, variant.table) from None


def _run(variant: Variant) -> None:
    job, channel = variant.job, variant.channel
    started = time.perf_counter()
    digest, changed = _compile_stages(variant)
    if digest in job["known"]:
        channel.send("same-as", other=job["known"][digest], digest=digest)
        return
    plain = variant.folder / "plain.vmfb"
    channel.stage("compile in one go")
    compile_file(
        variant.shared / "source.mlir", plain, [*variant.flags, *variant.pass_flags], timeout=variant.timeout
    )
    no_effect = _same_binary(plain, job.get("baseline_vmfb"))
    if no_effect:
        channel.send("no-effect", digest=digest)
        return
    flow = variant.program("flow")
    sites = _instrument(variant)
    compiled_s = time.perf_counter() - started

    params = archives(job["params"])
    providers = [params.provider(scope) for scope in params.scopes]
    seed, plain_run, spread = _plain_runs(variant, plain, providers, params)
    inputs = stored_inputs(variant.shared, seed, job["arguments"])

    channel.stage("trace", sites=sites, timed=True)
    traced_at = time.perf_counter()
    trajectory, reference = _trajectory(variant, flow, params, inputs)
    torch.set_flush_denormal(False)
    outcome = run_module(
        variant.folder / "traced.vmfb",
        job["function"],
        inputs,
        providers,
        device=job["device"],
        callback=_callback(trajectory),
    )
    summary = trajectory.finish()
    expected = reference.finish()
    traced_s = time.perf_counter() - traced_at

    channel.stage("compare outputs", timed=True)
    same_dtype = _torch_error(variant, flow, params, inputs, expected)
    fields = _outcome(variant, flow, outcome, summary, expected, params, inputs)
    channel.send(
        "variant",
        digest=digest,
        ops_changed=_dispatches_changed(variant, flow)
        if changed is None
        else len(computing(changed, variant.table)),
        changed=computing(changed or [], variant.table),
        no_longer_read=[variant.table[stamp]["name"] for stamp in _no_longer_read(variant, changed or [])],
        traced_equal=_bit_equal(outcome.outputs, plain_run.outputs),
        torch_same_dtype=same_dtype,
        spread=spread,
        timings={
            "compile_s": compiled_s,
            "run_s": plain_run.load_s + plain_run.call_s,
            "traced_s": traced_s,
            "total_s": time.perf_counter() - started,
        },
        **fields,
    )


def _callback(trajectory: Trajectory):
    def receive(key: str, tensors: list[Tensor]) -> None:
        # IREE may have set flush-to-zero on this thread: denormals must reach the evaluation as they are.
        torch.set_flush_denormal(False)
        trajectory.receive(key, tensors)

    return receive


def _compile_stages(variant: Variant) -> tuple[str, list[int] | None]:
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


def _no_longer_read(variant: Variant, changed: list[int]) -> list[int]:
    """Loads of parameters that the pass left without a reader."""
    kept = json.loads((variant.folder / "fingerprints.json").read_text())
    weights = ("util.global.load", "torch.vtensor.literal")
    left = {stamp for key in kept for stamp in key.split(",")}
    return [n for n in changed if variant.table[n]["kind"] in weights and str(n) not in left]


def _dispatches_changed(variant: Variant, flow: Program) -> int | None:
    """For passes by flags: how many dispatches are not among the baseline's; None without a baseline."""
    baseline = variant.job["baseline_folder"]
    if baseline is None:
        return None
    theirs = dispatch_prints(Program.parse(Path(baseline, "flow.mlir").read_text(encoding="utf-8")))
    return sum((dispatch_prints(flow) - theirs).values())


def _same_binary(plain: Path, baseline: str | None) -> bool:
    return baseline is not None and plain.read_bytes() == Path(baseline).read_bytes()


def _instrument(variant: Variant) -> int:
    """Adds the traces, compiles the rest of the way, and returns the number of dispatches."""
    module = ir.Module.parse(variant.file("flow").read_text(encoding="utf-8"), ir.Context())
    sites = insert_traces(module)
    traced = variant.folder / "flow.traced.mlir"
    traced.write_text(module.operation.get_asm(enable_debug_info=True), encoding="utf-8")
    variant.channel.stage("compile with traces")
    phase(traced, variant.folder / "traced.vmfb", "flow", None, variant.flags, variant.timeout)
    return len(sites)


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
            expected = _reference(variant, params, inputs, []).finish()
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


def _reference(variant: Variant, params, inputs: list[Tensor], wanted: list[int]) -> Reference:
    stage = "source" if variant.job["reference"] == "torch" else "input"
    program = Program.parse((variant.shared / f"{stage}.mlir").read_text(encoding="utf-8"))
    function = entry(program, variant.job["function"])
    finals = source_finals(program, function, stage)
    if stage == "input":
        # The reference keeps the source's scalars: the lowering to this stage has rounded them already.
        source = Program.parse((variant.shared / "source.mlir").read_text(encoding="utf-8"))
        scalars = source_scalars(source)
        for body in (function, *program.initializers):
            set_to_source(rounded_constants(body, scalars))
    return Reference(
        program, function, arguments(function, inputs), load_globals(program, params), finals, wanted
    )


def _trajectory(
    variant: Variant, flow: Program, params, inputs: list[Tensor]
) -> tuple[Trajectory, Reference]:
    formed = formed_dispatches(variant.program("dispatch-creation"))
    wanted = [
        h.stamp
        for dispatches in formed.values()
        for d in dispatches
        for h in d.holdings
        if h.final and h.stamp is not None
    ]
    reference = _reference(variant, params, inputs, wanted)
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
        emit=lambda record: variant.channel.send("site", record=record),
    )
    return trajectory, reference


def _bit_equal(a: list[Tensor], b: list[Tensor]) -> bool:
    def bits(value: Tensor) -> Tensor:
        return value.contiguous().view(torch.uint8) if value.dim() else value.reshape(1).view(torch.uint8)

    return len(a) == len(b) and all(
        x.shape == y.shape and x.dtype == y.dtype and torch.equal(bits(x), bits(y))
        for x, y in zip(a, b, strict=True)
    )


def _torch_error(
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
    function = entry(program, job["function"])
    try:
        outputs = torch_outputs(
            program, function, arguments(function, inputs), load_globals(program, params), dtype
        )
    except (UncoveredOp, RuntimeError):
        return None
    gaps = [output_record(a, e, dtype="f32")["max_abs"] for a, e in zip(outputs, expected, strict=True)]
    return {"dtype": dtype, "max_abs": None if None in gaps else max(gaps, default=0.0)}


def _narrowest(flow: Program) -> str | None:
    """bf16 or f16 where the program has tensors of it, f32 otherwise; None where torch has no like."""
    from numtrace.evaluate.program import walk

    elements = {tensor_type(t)[1] for op in walk([flow.body]) for t in op.result_types}
    return next((dtype for dtype in ("bf16", "f16", "f32") if dtype in elements), None)


def _outcome(
    variant: Variant,
    flow: Program,
    outcome: Outcome,
    summary: Summary,
    expected: list[Tensor],
    params,
    inputs,
) -> dict[str, Any]:
    """The parts of the report that speak of the outputs."""
    job = variant.job
    golden = _golden(variant, len(expected))
    if len(outcome.outputs) != len(expected):
        raise CompileError(
            f"the compiled program returned {len(outcome.outputs)} tensors, "
            f"the source returns {len(expected)}"
        )
    expected = [value.reshape(out.shape) for value, out in zip(expected, outcome.outputs, strict=True)]
    records = [
        output_record(out, want, dtype=type_[1], golden=gold, tolerance=job["tolerance"])
        for out, want, type_, gold in zip(outcome.outputs, expected, job["results"], golden, strict=True)
    ]
    exact = [value.reshape(want.shape) for value, want in zip(summary.exact_outputs, expected, strict=True)]
    for index, value in enumerate(exact):
        np.save(variant.folder / f"exact{index}.npy", value.double().numpy())
    return {
        "outputs": records,
        "output": worst_first(records),
        "split": _split(
            variant,
            outcome.outputs,
            exact,
            expected,
            _as_stored(variant, flow, summary, params, inputs),
            params,
            inputs,
        ),
        "constants": [
            {
                "op": ops[0],
                "ops": ops,
                "source": r.source,
                "stored": r.stored,
                "rel": r.rel,
                "beyond_half_ulp": r.beyond_half_ulp,
            }
            for r, ops in summary.constants.items()
        ],
        "nonfinite_origin": None
        if summary.origin is None
        else {"site": summary.origin[0], "op": summary.origin[1]},
        "amended": summary.amended,
        "tainted": summary.tainted_outputs,
        "golden_max_abs": _golden_gap(golden, expected),
    }


def _golden(variant: Variant, count: int) -> list[Tensor | None]:
    files = [variant.shared / "inputs" / f"expected{index}.npy" for index in range(count)]
    return [torch.from_numpy(np.load(f, allow_pickle=False)) if f.exists() else None for f in files]


def _golden_gap(golden: list[Tensor | None], expected: list[Tensor]) -> float | None:
    given = [(gold, want) for gold, want in zip(golden, expected, strict=True) if gold is not None]
    return _gap([gold for gold, _ in given], [want for _, want in given]) if given else None


def _largest(value: Tensor) -> float:
    """The largest finite magnitude; 0 where there is none."""
    finite = value.double()[torch.isfinite(value.double())]
    return float(finite.abs().max()) if finite.numel() else 0.0


def _semantic_gap(a: list[Tensor], b: list[Tensor]) -> float | None:
    """Between exact values: None where one is NaN or Inf and the other is not, 0 where all are so alike."""
    records = [output_record(x, y.reshape(x.shape), dtype="f64") for x, y in zip(a, b, strict=True)]
    if any(record["disagreeing"] for record in records):
        return None
    return max((record["max_abs"] or 0.0 for record in records), default=0.0)


def _gap(a: list[Tensor], b: list[Tensor]) -> float | None:
    """Max abs over the elements finite in both; None where a tensor has none."""
    gaps = [output_record(x, y.reshape(x.shape), dtype="f64")["max_abs"] for x, y in zip(a, b, strict=True)]
    return None if None in gaps else max(gaps, default=0.0)


def _as_stored(
    variant: Variant, flow: Program, summary: Summary, params, inputs: list[Tensor]
) -> list[Tensor] | None:
    """The baseline's exact outputs with its constants as stored, to say what the rounded ones are worth."""
    if not variant.job["is_baseline"] or not summary.constants:
        return None
    variant.channel.stage("measure the rounded constants")
    return _exact_outputs(variant, flow, params, inputs)


def exact_outputs(flow: Program, function: str, params, inputs: list[Tensor]) -> list[Tensor]:
    """The outputs of a flow program evaluated exactly from its inputs on, as its IR has it."""
    machine = Machine(flow, load_globals(flow, params))
    for initializer in flow.initializers:
        machine.run(initializer.regions[0], [])
    body = entry(flow, function)
    outputs = machine.run(body.regions[0], arguments(body, inputs))
    return [value for value in outputs if isinstance(value, Tensor)]


def _split(
    variant: Variant,
    compiled: list[Tensor],
    exact: list[Tensor],
    expected: list[Tensor],
    stored: list[Tensor] | None,
    params,
    inputs: list[Tensor],
) -> dict[str, Any]:
    """What of the output's error is whose: the pass's, the lowering's, the rounded constants'."""
    base = exact if variant.job["is_baseline"] else _baseline_exact(variant, params, inputs)
    constant = variant.job.get("baseline_constant")
    if stored is not None:
        constant = _gap([value.reshape(e.shape) for value, e in zip(stored, exact, strict=True)], exact)
    semantic = {
        "max_abs": _semantic_gap(exact, expected),
        "pass": None if base is None else _semantic_gap(exact, base),
        "lowering": None if base is None else _semantic_gap(base, expected),
    }
    relative = {
        "max_abs": _relative_gap(exact, expected, expected),
        "pass": None if base is None else _relative_gap(exact, base, expected),
        "lowering": None if base is None else _relative_gap(base, expected, expected),
    }
    return {
        "semantic": semantic | {"constant": constant or 0.0},
        "relative": relative,
        "execution_max_abs": _gap([c.double() for c in compiled], exact),
        "baseline_known": base is not None,
    }


def _relative_gap(a: list[Tensor], b: list[Tensor], expected: list[Tensor]) -> float | None:
    """The semantic gap of each output over the largest element of its reference, the worst of them.

    A reference that is all zero has no size of its own: the largest of the other outputs' stands for it, or 1.
    """
    other = max((_largest(value) for value in expected), default=0.0) or 1.0
    gaps = [_semantic_gap([x], [y]) for x, y in zip(a, b, strict=True)]
    if None in gaps:
        return None
    sizes = [_largest(value) or other for value in expected]
    return max((gap / size for gap, size in zip(gaps, sizes, strict=True)), default=0.0)  # type: ignore[operator]


def _baseline_exact(variant: Variant, params, inputs: list[Tensor]) -> list[Tensor] | None:
    """The baseline's exact outputs, as its own worker left them; evaluated here when it could not run.

    None when the baseline did not get as far as ``flow``.
    """
    folder = variant.job["baseline_folder"]
    if folder is None:
        return None
    files = sorted(Path(folder).glob("exact*.npy"), key=lambda path: int(path.stem.removeprefix("exact")))
    if files:
        return [torch.from_numpy(np.load(file, allow_pickle=False)) for file in files]
    variant.channel.stage("evaluate the baseline")
    flow = Program.parse(Path(folder, "flow.mlir").read_text(encoding="utf-8"))
    scalars = source_scalars(Program.parse((variant.shared / "source.mlir").read_text(encoding="utf-8")))
    constants = [pair for body in flow.executables.values() for pair in rounded_constants(body, scalars)]
    with as_in_source(constants):
        return _exact_outputs(variant, flow, params, inputs)


def _exact_outputs(variant: Variant, flow: Program, params, inputs: list[Tensor]) -> list[Tensor] | None:
    """See :func:`exact_outputs`; None where an op on the way cannot be evaluated."""
    try:
        return exact_outputs(flow, variant.job["function"], params, inputs)
    except UncoveredOp:
        return None
