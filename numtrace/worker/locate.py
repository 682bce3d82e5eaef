"""The jobs after a crash: how far the program came, and whether it has a result at all.

:func:`locate` runs the traced program again and tells, dispatch by dispatch, how far it came. Nothing is evaluated;
the process is expected to die, and the parent reads from the events where.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from iree.compiler import ir

from numtrace.evaluate.device import evaluate_on
from numtrace.evaluate.program import stamps_of
from numtrace.instrument.runtime import run_module, shared_cores
from numtrace.worker.channel import Channel
from numtrace.worker.compilation import Variant
from numtrace.worker.exact import make_reference
from numtrace.worker.modules import archives
from numtrace.worker.prepare import stored_inputs


def locate(job: dict[str, Any], channel: Channel) -> None:
    """Sends ``order`` (sites and their ops, as in the IR), a ``reached`` per trace, and ``survived``."""
    folder, shared = Path(job["folder"]), Path(job["shared"])
    table = json.loads((shared / "ops.json").read_text(encoding="utf-8"))
    channel.send("order", sites=_order(folder / "flow.traced.mlir", table))
    params = archives(job["params"])
    providers = [params.provider(scope) for scope in params.scopes]

    def reached(key: str, tensors: list[torch.Tensor]) -> None:
        channel.send("reached", id=key)

    with shared_cores(job["threads"]):
        for seed in range(job["seed"], job["seed"] + job["seeds"]):
            channel.send("begin")
            inputs = stored_inputs(shared, seed, job["arguments"])
            run_module(
                folder / "traced.vmfb",
                job["function"],
                inputs,
                providers,
                device=job["device"],
                callback=reached,
            )
    channel.send("survived")


def explain(job: dict[str, Any], channel: Channel) -> None:
    """Evaluates the reference on the inputs of the crash; raises what is undefined in it, else sends ``defined``.

    Raises:
        UndefinedResult: an index out of range or a division by zero, which compiled code may die of.
    """
    evaluate_on(job["reference_device"])
    variant = Variant(job, channel)
    params = archives(job["params"])
    channel.stage("look for undefined results", timed=True)
    with shared_cores(job["threads"]):
        for seed in range(job["seed"], job["seed"] + job["seeds"]):
            make_reference(
                variant, params, stored_inputs(variant.shared, seed, job["arguments"]), []
            ).finish()
    channel.send("defined")


def _order(traced: Path, table: list[dict[str, Any]]) -> list[dict[str, str]]:
    module = ir.Module.parse(traced.read_text(encoding="utf-8"), ir.Context())
    sites: list[dict[str, str]] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "flow.tensor.trace":
            made_by = [table[stamp] for stamp in stamps_of(op.location) if stamp < len(table)]
            names = [made["name"] for made in made_by if not made["kind"].endswith(".func")]
            sites.append({"id": op.attributes["key"].value, "op": " + ".join(dict.fromkeys(names))})
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return sites
