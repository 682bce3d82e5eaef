"""Exact evaluations of whole programs: the reference, and outputs with nothing run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import MappingProxyType

import numpy as np
from torch import Tensor

from numtrace.attribute.decisions import decides
from numtrace.attribute.folded import Folded, folded_constants
from numtrace.attribute.matching import source_finals
from numtrace.attribute.near_ties import Snapping, Ties, decided_values
from numtrace.attribute.noise import measured
from numtrace.attribute.reference import Reference
from numtrace.attribute.scalars import (
    Constants,
    as_in_source,
    rounded_constants,
    set_to_source,
    source_scalars,
)
from numtrace.attribute.summary import Summary
from numtrace.errors import UncoveredOp
from numtrace.evaluate.machine import Machine, MakeMachine
from numtrace.evaluate.op import Op
from numtrace.evaluate.overflow import Watch
from numtrace.evaluate.program import Program
from numtrace.instrument.dtypes import to_torch
from numtrace.worker.compilation import Variant
from numtrace.worker.modules import arguments, entry, load_globals

#: Of a function what may be meant exactly, and how.
Guess = Callable[[Op], Constants]


def make_reference(
    variant: Variant,
    params,
    inputs: list[Tensor],
    wanted: list[int],
    stage: str | None = None,
    guess: Guess | None = None,
) -> Reference:
    """Evaluates what the source means; with a ``stage`` given, what the program there does.

    ``guess``: what of a body is taken as exact besides what the source states.
    """
    stage, program, function = _reference_program(variant, stage)
    if guess is not None:
        for body in (function, *program.initializers):
            set_to_source(guess(body))
    finals = source_finals(program, function, stage)
    return Reference(
        program, function, arguments(function, inputs), load_globals(program, params), finals, wanted
    )


def source_function(variant: Variant) -> Op:
    """The entry function as the source has it."""
    return _reference_program(variant, "source")[2]


def _reference_program(variant: Variant, stage: str | None = None) -> tuple[str, Program, Op]:
    """What the reference is evaluated from: its stage, and its function."""
    stage = stage or ("input" if variant.job["reference"] == "self" else "source")
    program = Program.parse((variant.shared / f"{stage}.mlir").read_text(encoding="utf-8"))
    function = entry(program, variant.job["function"])
    if stage == "input":
        # The reference keeps the source's scalars: the lowering to this stage has rounded them already.
        source = Program.parse((variant.shared / "source.mlir").read_text(encoding="utf-8"))
        scalars = source_scalars(source)
        for body in (function, *program.initializers):
            set_to_source(rounded_constants(body, scalars))
    return stage, program, function


def folded(variant: Variant, flow: Program, params) -> dict[str, Folded]:
    """The globals of ``flow`` that the compiler computed from scalars of the source, and rounded.

    An ONNX operator is taken apart before the input stage, and what is folded may be a part of it.
    """
    stage = "source" if variant.job["reference"] == "torch" else "input"
    source = Program.parse((variant.shared / f"{stage}.mlir").read_text(encoding="utf-8"))
    function = entry(source, variant.job["function"])
    return folded_constants(flow, source, function, load_globals(flow, params))


def watched(flow: Program, function: str, params, inputs: list[Tensor]) -> Watch:
    """What there is to note of a flow program's exact evaluation with these inputs, as far as it comes."""
    watch = Watch()
    with suppress(UncoveredOp):
        exact_outputs(flow, function, params, inputs, watch)
    return watch


def exact_outputs(
    flow: Program,
    function: str,
    params,
    inputs: list[Tensor],
    watch: Watch | None = None,
    exact: Mapping[str, Tensor] = MappingProxyType({}),
    make: MakeMachine | None = None,
) -> list[Tensor]:
    """The outputs of a flow program evaluated exactly from its inputs on.

    ``exact`` are globals to use for its own. ``make`` gives the machine for globals, where it is to be another than
    the plain one.
    """
    globals_ = load_globals(flow, params) | dict(exact)
    machine = make(globals_) if make else Machine(flow, globals_)
    machine.watch = watch
    for initializer in flow.initializers:
        machine.run(initializer.regions[0], [])
    body = entry(flow, function)
    outputs = machine.run(body.regions[0], arguments(body, inputs))
    return [value for value in outputs if isinstance(value, Tensor)]


def _exact_outputs(
    variant: Variant,
    flow: Program,
    params,
    inputs: list[Tensor],
    exact: Mapping[str, Tensor] = MappingProxyType({}),
    near_ties: bool = True,
) -> list[Tensor] | None:
    """See :func:`exact_outputs`; None where an op on the way cannot be evaluated.

    With ``near_ties``, decisions that hang on the rounding of float64 are the source's.
    """
    function = variant.job["function"]
    try:
        if not near_ties:
            return exact_outputs(flow, function, params, inputs, exact=exact)
        ties = measured_ties(variant, flow, params, inputs, exact)
        return exact_outputs(flow, function, params, inputs, exact=exact, make=partial(Snapping, flow, ties))
    except UncoveredOp:
        return None


def measured_ties(
    variant: Variant, flow: Program, params, inputs: list[Tensor], exact: Mapping[str, Tensor]
) -> Ties:
    """What the decisions of ``flow`` hang on in the source, and the noise of it; nothing where it takes none.

    Raises:
        UncoveredOp: an op of the source, or of ``flow``, cannot be evaluated.
    """
    if not decides([flow.body]):
        return Ties()
    stage, program, function = _reference_program(variant)
    given = arguments(function, inputs)
    source = decided_values(program, function, stage, given, load_globals(program, params), flow)

    def evaluate(make: MakeMachine) -> None:
        exact_outputs(flow, variant.job["function"], params, inputs, exact=exact, make=make)

    return measured(source, flow, evaluate)


def outputs_as_stored(
    variant: Variant,
    flow: Program,
    summary: Summary,
    tables: dict[str, Folded],
    params,
    inputs: list[Tensor],
) -> list[Tensor] | None:
    """The baseline's exact outputs with its constants as stored, to say what the rounded ones are worth."""
    if not variant.job["is_baseline"] or not (summary.constants or summary.places or tables):
        return None
    variant.channel.stage("measure the rounded constants")
    return _exact_outputs(variant, flow, params, inputs, near_ties=summary.near_ties > 0)


def baseline_outputs(variant: Variant, params, inputs: list[Tensor]) -> list[Tensor] | None:
    """The baseline's exact outputs, as its own worker left them; evaluated here when it could not run.

    None when the baseline did not get as far as ``flow``.
    """
    folder = variant.job["baseline_folder"]
    if folder is None:
        return None
    files = sorted(Path(folder).glob("exact*.npy"), key=lambda path: int(path.stem.removeprefix("exact")))
    if files:
        return [to_torch(np.load(file, allow_pickle=False)) for file in files]
    variant.channel.stage("evaluate the baseline")
    flow = Program.parse(Path(folder, "flow.mlir").read_text(encoding="utf-8"))
    scalars = source_scalars(Program.parse((variant.shared / "source.mlir").read_text(encoding="utf-8")))
    constants = [pair for body in flow.executables.values() for pair in rounded_constants(body, scalars)]
    tables = {name: table.exact for name, table in folded(variant, flow, params).items()}
    with as_in_source(constants):
        return _exact_outputs(variant, flow, params, inputs, tables)
