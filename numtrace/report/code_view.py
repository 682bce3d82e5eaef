"""The code of a dispatch: executable, who shares it, how it was lowered, its IR."""

from __future__ import annotations

from rich.text import Text

from numtrace.dumps.code import Code
from numtrace.report.figures import near, visible
from numtrace.report.layout import heading, labelled


def code_view(code: Code, width: int) -> list[Text]:
    """The lines; IR is neither wrapped nor cut."""
    lines = [heading(f"code of {code.entry}", width)]
    lines += labelled("executable", code.executable, width)
    lines += labelled("shared", f"with {', '.join(code.shared)}" if code.shared else "with none", width)
    lines += lowering_lines(code, width)
    lines += [Text(), *(Text("  ").append(visible(line)) for line in code.body)]
    if not code.body:
        lines += labelled("IR", "not found in the run's flow.mlir", width)
    return lines


def lowering_lines(code: Code, width: int) -> list[Text]:
    """Pipeline, tile sizes, microkernels, and where the compiler's files are; how to get them when unknown."""
    lowering = code.lowering
    if lowering is None:
        return labelled("lowering", "not dumped yet: add --codegen, or use numtrace rerun", width)
    lines = labelled("pipeline", lowering.pipeline or "none said", width)
    for op, configuration in lowering.configurations:
        lines += labelled("tiles", f"{op}: {configuration}", width)
    if lowering.ukernels is not None:
        lines += labelled("ukernels", ", ".join(lowering.ukernels) or "none", width)
    assert code.dumped is not None
    return lines + labelled("dumped", near(code.dumped), width)
