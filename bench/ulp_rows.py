"""What ``bench/ulps.py`` found, as rows of the table: intervals of the argument and a bound for each."""

from __future__ import annotations

import math
import platform
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from numtrace.evaluate.formats import float_format
from numtrace.evaluate.typed import accuracy as table

#: Exhaustive figures stand as they are; of a sample of f32, a quarter is added for the arguments between.
SAFETY = {"f32": 1.25, "f16": 1.0, "bf16": 1.0}
BINS = 8  # per binade: what an interval's ends are rounded to
#: A result counts as the function of a neighbour of its argument within this many roundings of it.
ARGUMENT_LIMIT = 2.5
#: Up to this many ulps a stretch of a better kind may be told from what is accurate at all.
SHARP = {"f32": 2.5, "f16": 1.0, "bf16": 1.0}
#: An accurate stretch between inaccurate ones counts if it is so many binades wide; narrower ones are luck.
NARROW = 3.0
#: What is taken off an error before the rest is put down to the argument.
ALLOWANCE = {"f32": 2.0, "f16": 0.55, "bf16": 0.55}


@dataclass
class Figures:
    """The greatest errors of one function in one type: per bin of the argument, then over all."""

    well: Tensor  # in ulps, where rounding the argument moves the result by no more than an ulp
    moved: Tensor  # elsewhere: as a relative change of the argument, beyond the allowance
    seen: Tensor  # which bins have an argument
    below: float = 0.0
    count: int = 0
    worst: tuple[float, tuple[float, ...], float] = (-1.0, (), 0.0)  # ulps, arguments, result expected
    notes: dict[str, str] = field(default_factory=dict)


def argument_limit(op: str, dtype: str) -> float:
    """Arguments are reduced in f32 in every type; the product in exp2 and powf is rounded to the type itself."""
    trigonometric = op in ("math.sin", "math.cos", "math.tan")
    return ARGUMENT_LIMIT * float_format("f32" if trigonometric else dtype).unit_roundoff


def bins_of(x: Tensor, dtype: str) -> Tensor:
    """Which bin each x is in: ordered as the numbers are, 8 to a binade; the middle one is for the denormals and 0."""
    lowest = float_format(dtype).emin
    fraction, exponent = torch.frexp(x.abs())
    place = (exponent - 1 - lowest) * BINS + torch.floor((fraction * 2 - 1) * BINS).int() + 1
    place = torch.where(x.abs() < 2.0**lowest, 0, place.clamp(max=half(dtype)))
    return (torch.where(x < 0, -place, place) + half(dtype)).long()


def half(dtype: str) -> int:
    fmt = float_format(dtype)
    return (fmt.emax - fmt.emin + 1) * BINS + 1


def edge(bin_: int, dtype: str) -> float:
    """The end of a positive bin that is nearest to zero."""
    if bin_ > half(dtype) - 1:
        return math.inf
    return math.ldexp(1 + (bin_ - 1) % BINS / BINS, float_format(dtype).emin + (bin_ - 1) // BINS)


def runs_of(op: str, dtype: str, found: Figures) -> list[list[float]]:
    """Neighbouring bins of one grade: (low, high, ulps, grade), grade 0 sharp, 1 accurate, 2 inaccurate."""
    ulps = torch.where(found.moved > 0, found.well.clamp(min=ALLOWANCE[dtype]), found.well)
    ulps = torch.where(found.moved > argument_limit(op, dtype), math.inf, ulps)
    middle, tiny, runs = half(dtype), float_format(dtype).min_normal, []
    for index in found.seen.nonzero()[:, 0].tolist():
        value, offset = float(ulps[index]), abs(index - middle)
        low, high = (edge(offset, dtype), edge(offset + 1, dtype)) if offset else (-tiny, tiny)
        if index < middle:
            low, high = -high, -low
        runs.append([low, high, value, 0 if value <= SHARP[dtype] else 1 if value <= table.LIMIT else 2])
    stretches = joined(runs, lambda a, b: (a[3] == 2) == (b[3] == 2))
    islands = [run for run in stretches[1:-1] if run[3] < 2 and binades(run) < NARROW]
    for run in runs:
        if any(island[0] <= run[0] and run[1] <= island[1] for island in islands):
            run[3] = 2
    runs = joined(runs, lambda a, b: a[3] == b[3])
    # A sharp stretch has to be worth its place: twice as good as what is beside it, and wide.
    runs = joined(runs, lambda a, b: max(a[3], b[3]) < 2 and max(a[2], b[2]) < 2 * min(a[2], b[2]))
    return joined(runs, lambda a, b: max(a[3], b[3]) < 2 and binades(a if a[2] < b[2] else b) < NARROW)


def joined(runs: list[list[float]], alike: Callable) -> list[list[float]]:
    """Neighbours that are ``alike`` made one; what lies between them unseen has no result in the normal range."""
    out: list[list[float]] = []
    for run in runs:
        if out and alike(out[-1], run):
            last = out[-1]
            out[-1] = [last[0], run[1], max(last[2], run[2]), max(last[3], run[3])]
        else:
            out.append(list(run))
    return out


def binades(run: list[float]) -> float:
    small, large = sorted(map(abs, run[:2]))
    return math.inf if run[0] * run[1] <= 0 else math.log2(large / small)


def up(value: float, factor: float) -> str:
    """Rounded up to two digits, as Python source."""
    value *= factor
    if not math.isfinite(value) or value == 0:
        return "_INF" if value else "0"
    scale = 10.0 ** (math.floor(math.log10(value)) - 1)
    return f"{math.ceil(value / scale - 1e-9) * scale:.2g}"


def source(op: str, dtype: str, found: Figures) -> str:
    """The row of the table."""
    runs = runs_of(op, dtype, found)
    number = lambda x: ("-" if x < 0 else "") + "_INF" if math.isinf(x) else f"{x:.9g}"  # noqa: E731
    parts = [
        ", ".join(
            f"({number(a)}, {number(b)}, {up(v, SAFETY[dtype] if v < math.inf else 1)})"
            for a, b, v, g in runs
            if (g == 2) == bad
        )
        for bad in (False, True)
    ]
    moved = float(found.moved[found.moved <= argument_limit(op, dtype)].max())
    keywords = "".join(
        f", {name}={up(value, factor)}"
        for name, value, factor in (("argument", moved, SAFETY[dtype]), ("below", found.below, 1.0))
        if value > 0
    )
    text = f'"{dtype}": _row([{parts[0]}], [{parts[1]}]{keywords}),'
    lines = textwrap.wrap(
        text, 100, break_long_words=False, initial_indent=" " * 8, subsequent_indent=" " * 12
    )
    lines += [f"        # {what}: {example}" for what, example in sorted(found.notes.items())]
    return "\n".join(lines)


def write(rows: dict[str, dict[str, str]]) -> None:
    """Replaces the table, and the line that says where it comes from."""
    from iree.compiler.version import VERSION

    path = Path(table.__file__)
    body = "\n".join(f'    "{op}": {{\n' + "\n".join(row.values()) + "\n    }," for op, row in rows.items())
    text = path.read_text()
    text = re.sub(r"(= \{\n)(?:.*\n)*?(\}\n# fmt: on)", lambda m: m[1] + body + "\n" + m[2], text)
    cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    where = f"IREE {VERSION}, torch {torch.__version__}, {platform.machine()} ({cpu[1] if cpu else 'unknown'}, AVX-512)"
    path.write_text(re.sub(r"(Measured with ).*", lambda m: m[1] + where + ".", text, count=1))
