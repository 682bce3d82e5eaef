"""The job of ``numtrace rerun``: one dispatch of a finished run, on its real inputs, compiled again and judged."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from iree.compiler import ir

from numtrace.evaluate.program import Program
from numtrace.instrument.runtime import run_module, shared_cores
from numtrace.worker.alone import Alone, Setting
from numtrace.worker.capture import Capture, Captured
from numtrace.worker.channel import Channel
from numtrace.worker.judge import Judge
from numtrace.worker.modules import archives, arguments, entry, load_globals
from numtrace.worker.prepare import stored_inputs
from numtrace.worker.routes import OWN, ROUTES, Route
from numtrace.worker.witness import witness


def rerun(job: dict[str, Any], channel: Channel) -> None:
    """Sends ``rerun``: what the dispatch made in the run, and what it makes alone, each against the exact value."""
    started = time.perf_counter()
    with shared_cores(job["threads"]):
        channel.stage("capture the inputs", timed=True)
        module = _flow(job)
        program = Program(module)
        captured = capture(job, program)
        channel.stage("evaluate")
        judge = Judge(program, captured, job["result"])
        channel.stage("compile and run it alone")
        with Alone(module, job["site"], captured.operands, _setting(job), Path(job["out"])) as alone:
            record = witness(alone, captured.results, judge, defined=judge.defined, routes=_routes(job))
    channel.send(
        "rerun",
        executable=alone.program.executable,
        entry=alone.program.entry,
        inputs=[str(type_) for type_ in alone.program.arguments],
        exact=judge.why,
        in_run=judge(captured.results),
        seconds=time.perf_counter() - started,
        **record,
    )


def dump_code(job: dict[str, Any], channel: Channel) -> None:
    """Compiles the dispatch alone, for what the compiler dumps, and sends ``dumped``. Nothing is run.

    Raises:
        CompileError: it does not compile, or an operand is only known when the program runs.
    """
    channel.stage("compile it alone")
    Alone(_flow(job), job["site"], [], _setting(job), Path(job["out"])).compile(OWN, job["flags"])
    channel.send("dumped")


def capture(job: dict[str, Any], program: Program) -> Captured:
    """The real inputs of ``job["site"]``, and what it made of them, from a run of the traced program."""
    params = archives(job["params"])
    function = entry(program, job["function"])
    inputs = stored_inputs(Path(job["shared"]), job["seed"], job["arguments"])
    walk = Capture(program, load_globals(program, params), function, arguments(function, inputs), job["site"])
    run_module(
        Path(job["folder"]) / "traced.vmfb",
        job["function"],
        inputs,
        [params.provider(scope) for scope in params.scopes],
        device=job["device"],
        callback=walk.receive,
    )
    return walk.captured


def _routes(job: dict[str, Any]) -> list[Route]:
    given = [Route("given", "with the flags given", drops=(), adds=tuple(job["more"]))] if job["more"] else []
    return [*given, *(ROUTES if job["routes"] else ())]


def _setting(job: dict[str, Any]) -> Setting:
    return Setting(job["flags"], job["device"], job["threads"], job["timeout"])


def _flow(job: dict[str, Any]) -> ir.Module:
    return ir.Module.parse((Path(job["folder"]) / "flow.mlir").read_text(encoding="utf-8"), ir.Context())
