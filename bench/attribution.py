"""What attribution costs, as ratios from one run: ``python bench/attribution.py [--full] [MODEL …]``.

For each model, on the same machine in the same process: the plain program, the traced program with a callback that
does nothing, the traced program with every site judged, torch's float64 forward, and the evaluator's. Beside the
ratios it checks that every element of every site was judged, in float64, so that no ratio is bought by leaving
something out. The goals are those of the project's first issue.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numtrace.interpreter import ENVIRONMENT

GOALS = {
    "traced / untraced": 1.1,
    "attributed / untraced": 4.0,
    "evaluator / torch float64": 1.3,
    "exact and typed / exact": 1.3,
    "peak memory, GB": 8.0,
}


def measure(run: Path) -> dict[str, Any]:
    """The figures of the baseline of a finished run; called in a process of its own, for its peak memory."""
    import torch
    from runs import baseline

    from numtrace.attribute import site_records, trajectory
    from numtrace.instrument.runtime import run_module, shared_cores
    from numtrace.worker.exact import exact_outputs, folded, make_reference
    from numtrace.worker.variant import make_trajectory, trace_callback

    opened = baseline(run)
    variant, params, inputs, function = opened.variant, opened.params, opened.inputs, opened.function
    providers = [params.provider(scope) for scope in params.scopes]

    def play(name: str, callback: Callable | None = None) -> float:
        started = time.perf_counter()
        run_module(variant.folder / name, function, inputs, providers, callback=callback)
        return time.perf_counter() - started

    with shared_cores(opened.report["environment"]["threads"]):
        repeats = 3 if opened.record["timings"]["run_s"] < 5 else 1
        untraced = min(play("plain.vmfb") for _ in range(repeats))
        traced = min(play("traced.vmfb", lambda key, tensors: None) for _ in range(repeats))

        looked = Looked(site_records.site_terms)
        site_records.site_terms = looked
        flow = variant.program("flow")
        tables = folded(variant, flow, params)
        walk, _ = make_trajectory(variant, flow, tables, params, inputs, [])
        walk._records._emit = looked.sites.append
        attributed = play("traced.vmfb", trace_callback(walk))

        site_records.site_terms = looked.site_terms
        both = Both(trajectory.typed_dispatch)
        trajectory.typed_dispatch, site_records.typed_dispatch = both, both.again
        walk, _ = make_trajectory(variant, flow, tables, params, inputs, [])
        walk._records._emit = lambda record: None
        play("traced.vmfb", trace_callback(walk))

        started = time.perf_counter()
        make_reference(variant, params, inputs, []).finish()
        torch_float64 = time.perf_counter() - started
        started = time.perf_counter()
        exact_outputs(flow, function, params, inputs)
        evaluator = time.perf_counter() - started
        assert torch.get_default_dtype() == torch.float32
    looked.check(opened.record["coverage"]["sites"])
    return {
        "untraced_s": untraced,
        "traced / untraced": traced / untraced,
        "attributed / untraced": attributed / untraced,
        "evaluator / torch float64": evaluator / torch_float64,
        "exact and typed / exact": both.typed / both.exact,
        "peak memory, GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "overhead per site, ms": 1000 * (attributed - untraced) / len(looked.sites),
        "sites": len(looked.sites),
        "elements": looked.elements,
    }


class Looked:
    """Stands in front of ``site_terms`` and counts what it is given."""

    def __init__(self, site_terms: Callable):
        self.site_terms = site_terms
        self.sites: list[dict[str, Any]] = []
        self.elements = 0

    def __call__(self, compiled, exact_compiled, exact_reference, reference, dtype, typed):
        import torch

        assert typed is not None and typed.dtype == compiled.dtype, "a site without its typed value"
        for exact in (exact_compiled, exact_reference, reference):
            assert exact.shape == compiled.shape, "an exact value has another shape than the site"
            assert exact.dtype == torch.float64 or not compiled.is_floating_point(), exact.dtype
        self.elements += compiled.numel()
        return self.site_terms(compiled, exact_compiled, exact_reference, reference, dtype, typed)

    def check(self, sites: int) -> None:
        assert len(self.sites) == sites, f"{len(self.sites)} sites were judged, the run had {sites}"
        assert self.elements == sum(math.prod(site["shape"]) for site in self.sites)
        assert not any(site["match"] == "uncovered" for site in self.sites)


class Both:
    """Stands in front of ``typed_dispatch``, which evaluates both meanings, and times the exact one alone beside it."""

    def __init__(self, typed_dispatch: Callable):
        self._typed_dispatch = typed_dispatch
        self.exact = self.typed = 0.0

    def __call__(self, machine, op, operands):
        from numtrace.evaluate.dispatch import evaluate_dispatch
        from numtrace.evaluate.machine import Machine

        started = time.perf_counter()
        evaluate_dispatch(Machine(machine.program), op, operands)
        between = time.perf_counter()
        values = self._typed_dispatch(machine, op, operands)
        self.exact += between - started
        self.typed += time.perf_counter() - between
        return values

    def again(self, machine, op, operands):
        """As a site whose wide bound is not enough asks: more of the typed meaning, and no more of the exact one."""
        started = time.perf_counter()
        values = self._typed_dispatch(machine, op, operands)
        self.typed += time.perf_counter() - started
        return values


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", default=["sdxl-vae-tiny", "sdxl-vae-128"])
    parser.add_argument("--full", action="store_true", help="add sdxl-vae, 512x512: minutes")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(arguments.measure)))
        return
    names = arguments.models + (["sdxl-vae"] if arguments.full else [])
    figures = [_figures(name) for name in names]
    print(f"{'':28}" + "".join(f"{name:>16}" for name in names) + f"{'goal':>8}")
    for key in figures[0]:
        row = "".join(f"{f[key]:16,.2f}" if isinstance(f[key], float) else f"{f[key]:16,}" for f in figures)
        print(f"{key:28}{row}{GOALS.get(key, ''):>8}")


def _figures(name: str) -> dict[str, Any]:
    environment = os.environ | ENVIRONMENT
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder, "run")
        numtrace = [
            sys.executable,
            "-c",
            "from numtrace.cli import main; main()",
            "run",
            name,
            "--out",
            str(run),
        ]
        subprocess.run(numtrace, check=True, stdout=subprocess.DEVNULL)
        command = [sys.executable, __file__, "--measure", str(run)]
        result = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment)
        return json.loads(result.stdout)


if __name__ == "__main__":
    main()
