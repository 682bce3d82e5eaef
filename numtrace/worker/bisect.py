"""The job of ``numtrace bisect``: the first stage at which the exact meaning changes, and the pass in it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from numtrace.attribute.changes import computing
from numtrace.attribute.excerpt import excerpts
from numtrace.attribute.rewrite import changed_ops, suspects
from numtrace.attribute.steps import Search, Step, find_steps
from numtrace.errors import CompileError
from numtrace.evaluate.device import evaluate_on
from numtrace.evaluate.program import Program
from numtrace.instrument.failure import name_ops
from numtrace.instrument.runtime import shared_cores
from numtrace.instrument.snapshots import Snapshot, take
from numtrace.worker.channel import Channel
from numtrace.worker.compilation import Variant
from numtrace.worker.meanings import Meanings
from numtrace.worker.modules import archives, entry
from numtrace.worker.prepare import stored_inputs
from numtrace.worker.stages import Stage, stages
from numtrace.worker.variant import torch_error


def bisect(job: dict[str, Any], channel: Channel) -> None:
    """Sends ``bisected``: the stages with their meanings, and the steps found."""
    evaluate_on(job["reference_device"])
    variant = Variant(job, channel)
    torch.set_flush_denormal(False)
    inputs = stored_inputs(variant.shared, job["seed"], job["arguments"])
    bisection = Bisection(variant, _meanings(variant, inputs))
    try:
        with shared_cores(job["threads"]):
            bisection.run()
    except CompileError as error:
        raise name_ops(error, variant.table) from None
    channel.send("bisected", stages=bisection.stages, steps=bisection.steps)


def _meanings(variant: Variant, inputs: list[Tensor]) -> Meanings:
    job, params = variant.job, archives(variant.job["params"])

    def own_error(program: Program, exact: list[Tensor]) -> float | None:
        found = torch_error(variant, program, params, inputs, exact)
        return None if found is None else found["max_abs"]

    # With a pass given, the constants that the lowering before it rounded are no matter of the pass.
    weigh = None if job["passes"] else own_error
    return Meanings(job["function"], params, job["reference"], variant.shared, inputs, weigh)


class Bisection:
    """Goes through the stages and, where the meaning changes, through the snapshots between two of them."""

    def __init__(self, variant: Variant, meanings: Meanings):
        self.variant, self.meanings = variant, meanings
        self.stages: list[dict[str, Any]] = []
        self.steps: list[dict[str, Any]] = []

    def run(self) -> None:
        before: tuple[Stage, int] | None = None
        for stage in stages(self.variant):
            meaning = self._stage(stage, None if before is None else before[1])
            if meaning is None:
                continue
            if before is not None and (meaning != before[1] or self.variant.job["every"]):
                self._search(before[0], stage)
                if self.steps and not self.variant.job["every"]:
                    return
            before = (stage, meaning)

    def _stage(self, stage: Stage, before: int | None) -> int | None:
        self.variant.channel.stage(f"evaluate {stage.name}", timed=True)
        started = time.perf_counter()
        meaning = self.meanings.of(stage.path)
        max_abs, rel = (0.0, 0.0) if None in (meaning, before) else self.meanings.gap(before, meaning)  # type: ignore[arg-type]
        self.stages.append(
            {
                "name": stage.name,
                "file": str(stage.path),
                "known": meaning is not None,
                "changed": None not in (meaning, before) and meaning != before,
                "max_abs": max_abs,
                "rel": rel,
                "reason": self._why(stage.path),
                "seconds": time.perf_counter() - started,
            }
        )
        return meaning

    def _search(self, before: Stage, after: Stage) -> None:
        """The passes between two stages; an evaluated stage lies at both ends."""
        variant = self.variant
        variant.channel.stage(f"compile to {after.name}, with a snapshot after each pass")
        folder = variant.folder / "snapshots" / after.name
        flags = [*variant.flags, *variant.pass_flags]
        taken = take(before.path, folder, before.phase, after.name, flags, variant.timeout)
        row = [Snapshot("", "builtin.module", before.path), *taken]
        search = self.search(row)
        for step in search.steps:
            self.steps.append({"stage": after.name, **self.describe(row, step, search)})

    def search(self, row: list[Snapshot]) -> Search:
        """The steps in a row of snapshots; the first and the last must have a meaning."""

        def meaning(position: int) -> int | None:
            snapshot = row[position]
            if 0 < position < len(row) - 1:
                name = f"evaluate after {snapshot.name}, {position} of {len(row) - 1}"
                self.variant.channel.stage(name, timed=True)
            return self.meanings.of(snapshot.path)

        return find_steps(len(row), meaning, every=self.variant.job["every"])

    def describe(self, row: list[Snapshot], step: Step, search: Search) -> dict[str, Any]:
        """One step: the passes it may be, the source ops, and their IR before and after."""
        before, after = row[step.before], row[step.after]
        max_abs, rel = self.meanings.gap(search.known[step.before], search.known[step.after])  # type: ignore[arg-type]
        text, text_after = (snapshot.path.read_text(encoding="utf-8") for snapshot in (before, after))
        program, sums, table = Program.parse(text), self.meanings.sums, self.variant.table
        changed = computing(changed_ops(program, Program.parse(text_after)), table)
        function = entry(program, self.meanings.function)
        ops = suspects(program, function, changed, sums[before.path], sums[after.path])
        old, new = excerpts(text, text_after, {ops[0]}) if ops else ("", "")
        return {
            "passes": [
                {"pass": s.name, "pipeline": s.pipeline, "on": s.scope}
                for s in row[step.before + 1 : step.after + 1]
            ],
            "ops": [
                {key: table[stamp][key] for key in ("name", "kind", "module", "location")} for stamp in ops
            ],
            "changed": len(changed),
            "max_abs": max_abs,
            "rel": rel,
            "before": {"file": str(before.path), "ir": old},
            "after": {"file": str(after.path), "ir": new},
            "snapshots": len(row),
            "evaluated": len(search.known),
            "exhaustive": search.exhaustive,
            "unknown": [
                {"pass": row[position].name, "reason": self._why(row[position].path)}
                for position, meaning in sorted(search.known.items())
                if meaning is None
            ],
        }

    def _why(self, path: Path) -> str:
        return self.meanings.unknown.get(path, "")
