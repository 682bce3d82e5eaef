"""The commands that look further into what a run found, to be pasted as they are."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from numtrace import models
from numtrace.dumps.schema import Report, Variant
from numtrace.passes import registry
from numtrace.request import Request


def next_steps(request: Request, report: Report, run: Path) -> list[str]:
    """One command for each kind of fault: the compiler pass that changed the meaning, the dispatch alone.

    Args:
        request: what was run.
        report: what was found.
        run: the run directory.
    """
    found: dict[str, str] = {}
    for variant in report.variants:
        for kind, command in _steps(request, variant, run):
            found.setdefault(kind, command)
    return list(found.values())


def _steps(request: Request, variant: Variant, run: Path) -> Iterator[tuple[str, str]]:
    new = [finding for finding in variant.findings if not finding.known or finding.grown]
    if variant.verdict in ("pass-bug", "lowering-bug"):
        yield variant.verdict, _bisection(request, variant)
    sites = [f.sites[0] for f in new if f.kind == "codegen" and f.certainty != "explained" and f.sites]
    if variant.verdict in ("codegen-bug", "codegen-suspect") and sites:
        words = ["numtrace", "rerun", str(run), "--variant", variant.name, "--site", sites[0], "--routes"]
        yield "codegen", shlex.join(words)


def _bisection(request: Request, variant: Variant) -> str:
    words = ["numtrace", "bisect"]
    if request.model != models.DEFAULT:
        words.append(request.model)
    named = registry.registered().passes
    for one in request.passes:
        if one.name in variant.passes:
            words += ["--pass", one.name if one.name in named else one.pipelines[0]]
    for scope, path in request.params:
        words += ["--params", f"{scope}={path}" if scope else str(path)]
    for given in request.inputs:
        words += ["--input", given]
    for option, value in (
        ("--function", request.function), ("--attention", request.attention), ("--python", request.python),
        ("--seed", str(request.seed) if request.seed else None),
    ):  # fmt: skip
        if value:
            words += [option, value]
    if request.flags:
        words += ["--", *request.flags]
    return shlex.join(words)
