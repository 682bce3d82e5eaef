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


@dataclass
class Figures:
    """The greatest errors of one function in one type: per bin of the argument, then over all."""

    ulps: (
        Tensor  # no more than the allowance where rounding the argument moves the result by more than an ulp
    )
    moved: Tensor  # there, what is beyond the allowance: as a relative change of the argument
    seen: Tensor  # which bins have an argument
    below: float = 0.0
    count: int = 0
    worst: tuple[float, tuple[float, ...], float] = (-1.0, (), 0.0)  # ulps, arguments, result expected
    notes: dict[str, str] = field(default_factory=dict)


TRIGONOMETRIC = ("math.sin", "math.cos", "math.tan")


def argument_limit(op: str, dtype: str) -> float:
    """Arguments are reduced in f32 in every type; the product in exp2 and powf is rounded to the type itself."""
    return ARGUMENT_LIMIT * float_format("f32" if op in TRIGONOMETRIC else dtype).unit_roundoff


def excused(op: str, dtype: str, found: Figures) -> Tensor:
    """The bins where what is beyond the allowance may be put down to the argument.

    sin, cos and tan are of size 1 however large their argument is, and a good program gets all digits: what an
    error of the argument makes must leave half of the digits of a value of size 1, or be within LIMIT ulps of it.
    """
    allowed = found.moved <= argument_limit(op, dtype)
    if op in TRIGONOMETRIC:
        offset = (torch.arange(len(found.seen)) - half(dtype)).abs()
        size = torch.tensor([edge(int(bin_) + 1, dtype) for bin_ in offset], dtype=torch.float64)
        shift = torch.where(found.moved > 0, found.moved * size, 0.0)
        unit = float_format(dtype).unit_roundoff
        allowed &= shift <= max(table.LIMIT * unit, unit**0.5)
    return allowed


def allowance(op: str, dtype: str) -> float:
    """The ulps that are taken off an error before the rest is put down to the argument."""
    return 2.0 if dtype == "f32" or (op, dtype) == ("math.tan", "f16") else 0.55  # tan divides two roundings


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
    ulps = torch.where(excused(op, dtype, found), found.ulps, math.inf)
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
    for alike in (similar, narrow, similar):
        runs = joined(runs, alike)
    return runs


def similar(a: list[float], b: list[float]) -> bool:
    return max(a[3], b[3]) < 2 and max(a[2], b[2]) < 2 * min(a[2], b[2])


def narrow(a: list[float], b: list[float]) -> bool:
    """Whether the better of two accurate ones is."""
    return max(a[3], b[3]) < 2 and binades(a if a[2] < b[2] else b) < NARROW


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
    moved = float(found.moved[excused(op, dtype, found)].max())
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
    """Replaces the functions' part of the table, and the line that says where it comes from."""
    from iree.compiler.version import VERSION

    path = Path(table.__file__)
    text = path.read_text()
    for op, row in rows.items():
        block = f'    "{op}": {{\n' + "\n".join(row.values()) + "\n    },\n"
        present = re.search(rf'    "{op}": \{{\n(?:        .*\n)*    \}},\n', text)
        text = text.replace(
            present[0] if present else "}\n# fmt: on", block if present else block + "}\n# fmt: on"
        )
    cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    where = f"IREE {VERSION}, torch {torch.__version__}, {platform.machine()} ({cpu[1] if cpu else 'unknown'}, AVX-512)"
    path.write_text(re.sub(r"(Measured with ).*", lambda m: m[1] + where + ".", text, count=1))
