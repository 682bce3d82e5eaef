"""The head of a report: what was run, on what, against which reference."""

from __future__ import annotations

from pathlib import PurePath

from rich.text import Text

from numtrace.dumps.schema import Report, Tolerance
from numtrace.report.figures import number, tensor_type, visible
from numtrace.report.layout import labelled, paragraph


def header(report: Report, width: int) -> list[Text]:
    """A handful of lines, so that the table of variants is on the first screen."""
    inputs = ", ".join(f"{tensor_type(i.shape, i.dtype)} ({i.source})" for i in report.model.inputs)
    model = f"{PurePath(report.model.path).name} @{report.model.function}"
    title = f"{report.tool.name} {report.tool.version} · {model}"
    lines = [Text(visible(title), style="bold")]
    lines += labelled("input", inputs, width)
    lines += labelled("target", _target(report), width)
    passes = dict.fromkeys(name for variant in report.variants for name in variant.passes)
    lines += labelled("passes", ", ".join(passes) or "none", width)
    lines += labelled("versions", _versions(report), width)
    lines += labelled("floats", _floats(report), width)
    lines += labelled("reference", _reference(report), width)
    lines += labelled("tolerance", _tolerance(report.tolerance), width)
    return lines


def notices(report: Report, width: int) -> list[Text]:
    return [line for notice in report.notices for line in paragraph(f"note: {notice}", width, style="yellow")]


def _target(report: Report) -> str:
    target = report.target
    where = f"{target.backend} on {target.device}" + (f", cpu {target.cpu}" if target.cpu else "")
    return " · ".join([where, *([" ".join(target.flags)] if target.flags else [])])


def _versions(report: Report) -> str:
    environment = report.environment
    compiler, runtime = environment.iree_compiler, environment.iree_runtime
    iree = f"iree {compiler}" if compiler == runtime else f"iree-compiler {compiler} · iree-runtime {runtime}"
    return f"{iree} · torch {environment.torch}"


def _floats(report: Report) -> str:
    environment = report.environment
    parts = {True: ["denormals flushed"], False: ["denormals kept"], None: []}[environment.flush_denormals]
    if environment.threads is not None:
        parts.append(f"{environment.threads} thread{'s' if environment.threads != 1 else ''}")
    return " · ".join([*parts, environment.cpu])


def _reference(report: Report) -> str:
    reference = report.reference
    text = f"{reference.kind} {reference.dtype}"
    if reference.kind == "self":
        text = f"self ({reference.dtype}): the evaluator reads the source itself, no second opinion"
    elif reference.kind == "onnx":
        text = f"the source's ONNX operators, evaluated in {reference.dtype}"
    if reference.device != "cpu":
        text += f" on {reference.device}"
    if reference.golden_max_abs is not None:
        text += f"; your golden differs from it by {number(reference.golden_max_abs)}"
    return text


def _tolerance(tolerance: Tolerance | None) -> str:
    if tolerance is None:
        return "none given: ok says nothing about the size of the error"
    parts = []
    if tolerance.atol is not None:
        parts.append(f"atol {tolerance.atol:g}")
    if tolerance.rtol is not None:
        parts.append(f"rtol {tolerance.rtol:g}")
    if tolerance.psnr_db is not None:
        parts.append(f"PSNR at least {tolerance.psnr_db:g} dB")
    if tolerance.image:
        parts.append("at most one 8-bit step")
    return ", ".join(parts)
