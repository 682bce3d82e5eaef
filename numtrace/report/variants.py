"""The table of variants: the numbers at the output, the verdict, and one sentence for what is not ok."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from rich.text import Text

from numtrace.dumps.schema import Output, Report, Status, Variant, Verdict
from numtrace.report.figures import count, decimal, number
from numtrace.report.layout import Column, paragraph, table, table_width

_STYLES = {
    "ok": "green",
    "no-effect": "cyan",
    "inconclusive": "yellow",
    "over-tolerance": "yellow",
    "codegen-suspect": "yellow",
}
_NO_OUTPUT = Output(max_abs=None)


def verdict_style(variant: Variant) -> str:
    """Bold red for faults and failures, yellow where a person must judge."""
    if variant.verdict is None:
        return "yellow"
    return _STYLES.get(variant.verdict, "bold red")


def verdict_text(variant: Variant) -> str:
    text = variant.verdict or variant.status
    return f"{text} (same as {variant.same_as})" if variant.same_as else text


def variants_table(report: Report, variants: Sequence[Variant], width: int) -> list[Text]:
    """One row a variant; where the names leave no room, two lines a variant.

    PSNR, 8-bit steps and torch's own error have a column only if some variant has them.
    """
    lines = _rows(variants, width) if variants else []
    done = sum(variant.status != "interrupted" for variant in report.variants)
    if done < report.planned:
        missing = f"{done} of {report.planned} variants finished, the run was cut short"
        lines.append(Text(missing, style="yellow"))
    return lines


def _rows(variants: Sequence[Variant], width: int) -> list[Text]:
    name, verdict = Column("variant"), Column("verdict")
    for variant in variants:
        name.add(variant.name, "bold")
        verdict.add(verdict_text(variant), verdict_style(variant))
    numbers = _numbers(variants)
    if table_width([name, *numbers, verdict]) <= width:
        head, whole = table([name, *numbers, verdict], width)
        blocks = [[line] for line in whole]
    else:
        head, number_rows = table(numbers, width, indent=2)
        _, name_rows = table([name, verdict], width)
        rows = zip(variants, name_rows, number_rows, strict=True)
        blocks = [[above, below] if one.output else [above] for one, above, below in rows]
    lines = [head]
    for variant, block in zip(variants, blocks, strict=True):
        lines += block + _remarks(variant, width)
    return lines


def _numbers(variants: Sequence[Variant]) -> list[Column]:
    outputs = [variant.output or _NO_OUTPUT for variant in variants]
    columns = [
        _column("max abs", [number(output.max_abs) for output in outputs]),
        _column("mean abs", [number(output.mean_abs) for output in outputs]),
        _column("rel L2", [number(output.rel_l2) for output in outputs]),
    ]
    if any(output.psnr_db is not None for output in outputs):
        columns.append(_column("PSNR dB", [decimal(output.psnr_db, 1) for output in outputs]))
    if any(output.u8_max is not None for output in outputs):
        columns.append(_column("8-bit", [count(output.u8_max) for output in outputs]))
    if any(output.golden_max_abs is not None for output in outputs):
        columns.append(_column("golden", [number(output.golden_max_abs) for output in outputs]))
    if any(variant.torch_same_dtype for variant in variants):
        columns.append(_column("torch's own", [_torch(variant) for variant in variants]))
    return [*columns, _column("ops changed", [count(variant.ops_changed) for variant in variants])]


def _column(title: str, cells: list[str]) -> Column:
    column = Column(title, right=True)
    for cell in cells:
        column.add(cell)
    return column


def _torch(variant: Variant) -> str:
    own = variant.torch_same_dtype
    return f"{number(own.max_abs)} {own.dtype}" if own else number(None)


def _remarks(variant: Variant, width: int) -> list[Text]:
    lines: list[Text] = []
    if variant.verdict != "ok" or any(finding.known for finding in variant.findings):
        reason = variant.reason
        if not reason and variant.error:
            reason = variant.error.message.partition("\n")[0]
        lines += paragraph(reason, width, indent=4)
    if variant.spread:
        known = [value for value in variant.spread.max_abs if value is not None]
        seeds = f"over {len(variant.spread.seeds)} seeds: max abs "
        between = f"{number(min(known))} to {number(max(known))}" if known else "not known"
        lines += paragraph(seeds + between, width, indent=4, style="dim")
    if variant.output and variant.output.nonfinite:
        lines += paragraph(f"{variant.output.nonfinite} elements are NaN or Inf", width, 4, "bold red")
    return lines


def closing(variants: Sequence[Variant], width: int) -> list[Text]:
    """The names under each verdict once more, for a terminal that has scrolled: worst first."""
    names: dict[str, list[Variant]] = {}
    for variant in variants:
        names.setdefault(variant.verdict or variant.status, []).append(variant)
    order = [*get_args(Verdict), *get_args(Status)]
    lines: list[Text] = []
    for verdict in sorted(names, key=order.index):
        text = f"{verdict}: " + ", ".join(variant.name for variant in names[verdict])
        lines += paragraph(text, width, style=verdict_style(names[verdict][0]))
    return lines
