"""A second witness on a pass that changes what a program means: the program compiled and run, before it and after."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from torch import Tensor

from numtrace.attribute.magnitude import largest
from numtrace.errors import CompileError, RunError
from numtrace.evaluate.program import Program
from numtrace.evaluate.types import tensor_type
from numtrace.instrument.compiler import compile_file
from numtrace.instrument.detached import run_detached, write_raw
from numtrace.instrument.tensor_type import TensorType
from numtrace.worker.modules import entry

#: Compiled values within this part of the exact change of their own exact values show the change, by themselves.
_PART = 0.25


def by_running(
    before: str,
    after: str,
    inputs: list[Tensor],
    exact_before: list[Tensor],
    exact_after: list[Tensor],
    folder: Path,
    job: dict[str, Any],
) -> dict[str, Any]:
    """``confirmed``: whether compiled code makes the exact values of both programs, and so differs as they do.

    None where one of the two does not compile or run; ``witness`` says it in words. The programs are compiled with
    the job's flags, in a process of its own each, and know nothing of the evaluator.
    """
    how = "compiled"
    try:
        ran_before = _run("before", before, inputs, exact_before, folder, job)
        try:
            ran_after = _run("after", after, inputs, exact_after, folder, job)
        except CompileError:
            if not job["decomposing"]:
                raise
            # An op that IREE has no code for, such as im2col, is taken apart by other passes first.
            more = [f"--iree-preprocessing-pass-pipeline={job['decomposing']}"]
            ran_after = _run("after", after, inputs, exact_after, folder, job, more)
            how = "decomposed by IREE and compiled"
    except (CompileError, RunError) as error:
        return {"confirmed": None, "witness": f"no run to confirm it: {error}"}
    change = _gap(exact_before, exact_after)
    errors = _gap(ran_before, exact_before), _gap(ran_after, exact_after)
    seen = _gap(ran_before, ran_after)
    confirmed = change > 0 and max(errors) <= _PART * change
    apart = "" if confirmed else f", and from their own exact values by {errors[0]:.3g} and {errors[1]:.3g}"
    said = f"{how}, the two differ by {seen:.3g}{apart}"
    return {"confirmed": confirmed, "witness": said, "ran": seen if isfinite(seen) else None}


def _run(
    name: str,
    text: str,
    inputs: list[Tensor],
    exact: list[Tensor],
    folder: Path,
    job: dict[str, Any],
    more: Sequence[str] = (),
) -> list[Tensor]:
    source, vmfb = folder / f"{name}.run.mlir", folder / f"{name}.vmfb"
    source.write_text(text, encoding="utf-8")
    compile_file(source, vmfb, [*job["flags"], *more], timeout=job["compile_timeout"])
    function = entry(Program.parse(text), "main")
    given = []
    for index, (value, type_) in enumerate(zip(inputs, function.regions[0].argument_types, strict=True)):
        path = folder / f"in{index}.bin"
        write_raw(value, path)
        given.append((TensorType(tuple(value.shape), tensor_type(type_)[1]), path))
    returned = function.regions[0].ops[-1].operand_types
    results = [
        TensorType(tuple(value.shape), tensor_type(type_)[1])
        for value, type_ in zip(exact, returned, strict=True)
    ]
    return run_detached(
        vmfb, "main", given, results, device=job["device"], threads=1, timeout=job["compile_timeout"]
    )


def _gap(a: list[Tensor], b: list[Tensor]) -> float:
    """The largest difference; infinite for a NaN on one side."""
    worst = 0.0
    for x, y in zip(a, b, strict=True):
        difference = (x.double() - y.double().reshape(x.shape)).nan_to_num(
            nan=float("inf"), posinf=float("inf")
        )
        worst = max(worst, largest(difference))
    return worst
