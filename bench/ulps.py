"""The accuracy of IREE's code for math functions, measured: ``python bench/ulps.py [--quick] [--write] [FUNCTION …]``.

Each function is compiled by the real compiler for llvm-cpu by two routes, the host's CPU and a generic one without
vectorisation or FMA, and run: on all 2^16 arguments of f16 and bf16, and in f32 on every 251st bit pattern (17.1
million arguments in every binade; ``--step 1`` takes all 2^32) and on all arguments around the places where things
happen: the ends of the range, 1, the thresholds of overflow, multiples of pi/2. Two-argument functions get 2^24
seeded random pairs of every magnitude. The worst of both routes counts.

Compared with torch in float64, whose error (about 1 ulp of float64, 2^-29 ulp of f32) does not matter; that it
is that good is checked with mpmath at every worst argument and at 200 others of each function.

The table in numtrace/evaluate/typed/accuracy.py says what the figures mean; ``--write`` rewrites it.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import math
import os
import tempfile
from pathlib import Path

import mpmath
import torch
from torch import Tensor
from ulp_functions import (
    BINARY,
    DTYPES,
    SLOPES,
    UNARY,
    binary_arguments,
    program,
    references,
    unary_arguments,
)
from ulp_rows import Figures, allowance, argument_limit, bins_of, half, source, write

from numtrace.errors import CompileError
from numtrace.evaluate.formats import float_format, in_ulps, ulp
from numtrace.evaluate.typed import accuracy as table
from numtrace.instrument.compiler import compile_file
from numtrace.instrument.runtime import run_module

TARGET = ["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu"]
ROUTES = {
    "host": ["--iree-llvmcpu-target-cpu=host"],
    "scalar": [
        "--iree-llvmcpu-target-cpu=generic", "--iree-llvmcpu-target-vector-width-in-bytes=4",
        "--iree-llvmcpu-loop-vectorization=false", "--iree-llvmcpu-slp-vectorization=false",
    ],
}  # fmt: skip


#: tan is measured up to where its sin and cos turn out to be accurate in f32: beyond, it is poles all over.
TURNS = 8192.0


def measure(op: str, dtype: str, step: int, folder: Path) -> Figures:
    """Raises CompileError where the compiler has no code for the function."""
    reference, _ = references(op)
    operands = 2 if op in BINARY else 1
    fmt = float_format(dtype)
    (folder / "program.mlir").write_text(program(op, dtype, operands))
    for route, flags in ROUTES.items():
        with contextlib.redirect_stderr(io.StringIO()):  # a failing compiler prints all of its IR
            compile_file(folder / "program.mlir", folder / f"{route}.vmfb", [*TARGET, *flags])
    size = 2 * half(dtype) + 1
    found = Figures(*(torch.zeros(size, dtype=torch.float64) for _ in range(3)))
    chunks = unary_arguments(dtype, step) if operands == 1 else binary_arguments(op, dtype, (1 << 32) // step)
    for arguments in chunks:
        wide = [a.double() for a in arguments]
        exact = reference(*wide)
        at = wide[0] / wide[1] if op in ("math.atan2", "arith.remf", "arith.divf") else wide[0]
        usable = torch.isfinite(exact)
        for a in wide:
            usable &= torch.isfinite(a) & ((a.abs() >= fmt.min_normal) | (a == 0))
        largest = fmt.max_finite + 2.0 ** (fmt.emax - fmt.precision)  # what rounds to a finite number
        few = 1 + 16 * fmt.eps  # just above the normal range, an error of a few ulps may lead below it
        normal = usable & (exact.abs() >= fmt.min_normal * few) & (exact.abs() < largest)
        slope = SLOPES[op](exact, *wide) if op in SLOPES else torch.zeros_like(exact)
        if op == "math.tan":
            normal &= wide[0].abs() <= TURNS
            # Not with a pole within the roundings of the argument: anything can come out.
            normal &= (exact * wide[0]).abs() * 8 * argument_limit(op, dtype) < 1
        place = bins_of(at, dtype)[normal]
        found.seen.scatter_(0, place, 1.0)
        found.count += int(normal.sum())
        for route in ROUTES:
            got = run_module(folder / f"{route}.vmfb", "main", arguments, []).outputs[0].double()
            note(found, dtype, wide, exact, got)
            small = usable & (exact.abs() < fmt.min_normal * few)
            if small.any():
                found.below = max(found.below, float((got - exact).abs()[small].nan_to_num(0, 0).max()))
            # An infinity counts as the first number beyond the range: a threshold may be off by an ulp.
            got = torch.where(torch.isinf(got), got.sign() * 2.0 ** (fmt.emax + 1), got)
            error = (got - exact).abs().nan_to_num(math.inf)[normal]
            units = in_ulps(error, exact[normal], dtype)
            slack, most = slope[normal], allowance(op, dtype)
            well = slack * fmt.unit_roundoff <= ulp(exact[normal], dtype)
            rest = (error - most * ulp(exact[normal], dtype)).clamp(min=0) / slack
            found.ulps.scatter_reduce_(0, place, torch.where(well, units, units.clamp(max=most)), "amax")
            found.moved.scatter_reduce_(0, place, torch.where(well, 0.0, rest), "amax")
            remember_worst(found, units, [a[normal] for a in wide], exact[normal])
    return found


def remember_worst(found: Figures, units: Tensor, wide: list[Tensor], exact: Tensor) -> None:
    """Keeps the argument of the greatest error that is within the limit, for the check of the reference."""
    if units.numel():
        within = torch.where(units <= table.LIMIT, units, -1.0)
        index = int(within.argmax())
        if float(within[index]) > found.worst[0]:
            found.worst = (float(within[index]), tuple(float(a[index]) for a in wide), float(exact[index]))


def note(found: Figures, dtype: str, wide: list[Tensor], exact: Tensor, got: Tensor) -> None:
    """Keeps an example of what no number of ulps can say: NaN and infinities, flushed arguments and results."""
    fmt = float_format(dtype)
    small = torch.stack([(a.abs() < fmt.min_normal) & (a != 0) for a in wide]).any(0)
    finite = torch.stack([torch.isfinite(a) for a in wide]).all(0)
    beyond = exact.abs() >= fmt.max_finite + 2.0 ** (fmt.emax - fmt.precision)
    expected = torch.where(beyond, exact.sign() * math.inf, exact)
    off = ~((got == expected) | (torch.isnan(got) & torch.isnan(expected)))
    far = off & ~((got - expected).abs() <= 16 * ulp(expected.nan_to_num(0, 0, 0), dtype))
    below = (exact.abs() < fmt.min_normal) & (exact.abs() > fmt.min_subnormal)
    for text, where in {
        "a denormal argument is flushed": small & far,
        "a result below the normal range is flushed": ~small & below & (got == 0),
        "not NaN outside of the domain": ~small & finite & torch.isnan(exact) & off,
        "wrong at infinity or NaN": ~finite & far,
        "wrong where the exact value is infinite": ~small & finite & beyond & off,
    }.items():
        if bool(where.any()):
            index = int(where.nonzero()[-1])
            values = ", ".join(f"{float(a[index]):.6g}" for a in wide)
            example = f"f({values}) = {float(got[index]):.6g}, exact {float(exact[index]):.6g}"
            found.notes.setdefault(text, example)


def check_reference(op: str, dtype: str, found: Figures) -> None:
    """That float64 is good enough: against 60 digits, at the worst argument and at 200 others."""
    reference, precise = references(op)
    first = next(unary_arguments(dtype, 251 << 10) if op not in BINARY else binary_arguments(op, dtype, 300))
    others = (a[:: max(1, a.numel() // 200)].double().tolist() for a in first)
    for point in [found.worst[1], *zip(*others, strict=True)]:
        value = float(reference(*(torch.tensor(p, dtype=torch.float64) for p in point)))
        negative = op == "math.powf" and point[0] < 0
        if negative or not all(map(math.isfinite, (*point, value))) or abs(value) < 2.0**-140:
            continue
        with mpmath.workdps(400 if op == "arith.remf" else 60):
            error = abs(precise(*map(mpmath.mpf, point)) - value)
        if error > 8 * 2.0**-52 * abs(value):
            raise SystemExit(f"{op}{point}: float64 gives {value!r}, off by {float(error):.3g}: no reference")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("functions", nargs="*", metavar="FUNCTION", help="such as math.exp; all without")
    parser.add_argument("--quick", action="store_true", help="f32 on every 4093rd argument only")
    parser.add_argument("--step", type=int, default=251, help="f32 on every n-th bit pattern")
    parser.add_argument("--write", action="store_true", help="put them into the table in numtrace")
    options = parser.parse_args()
    os.nice(10)
    everything = [*(f"math.{name}" for name in UNARY), *BINARY]
    rows: dict[str, dict[str, str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for op in options.functions or everything:
            for dtype in DTYPES:
                try:
                    found = measure(op, dtype, 4093 if options.quick else options.step, Path(folder))
                except CompileError as error:
                    print(f"{op} {dtype}: not measured: {str(error)[:150]}", flush=True)
                    continue
                check_reference(op, dtype, found)
                row = source(op, dtype, found)
                print(f"{op}: {found.count} arguments, worst {found.worst}\n{row}", flush=True)
                if op != "arith.divf":
                    rows.setdefault(op, {})[dtype] = row
    if options.write:
        write(rows)


if __name__ == "__main__":
    main()
