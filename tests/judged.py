"""Small programs compiled by the real compiler, run, and every dispatch of them held against its bounds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from iree.compiler import ir
from torch import Tensor

import numtrace.evaluate
import numtrace.evaluate.typed  # noqa: F401
from numtrace.attribute.codegen import Distance, as_in_order, distance
from numtrace.attribute.lanes import COMPILED, REFERENCE, Lanes
from numtrace.errors import UncoveredOp
from numtrace.evaluate.complex_numbers import as_parts, part_type
from numtrace.evaluate.dispatch import entry_point
from numtrace.evaluate.op import Op
from numtrace.evaluate.program import Program
from numtrace.evaluate.tensors import defined
from numtrace.evaluate.typed.dispatch import typed_dispatch
from numtrace.evaluate.typed.machine import TypedMachine
from numtrace.evaluate.typed.value import Typed
from numtrace.evaluate.types import tensor_type
from numtrace.instrument.compiler import phase
from numtrace.instrument.runtime import run_module
from numtrace.instrument.traces import insert_traces
from numtrace.worker.modules import arguments, entry

FLAGS = ("--iree-hal-target-backends=llvm-cpu", "--iree-llvmcpu-target-cpu=host")


@dataclass(frozen=True)
class Judged:
    """One result of one dispatch: what was compiled, and what may be made of the inputs that it really got.

    Of complex numbers, their parts.
    """

    program: Program
    op: Op
    operands: list[Any]
    made: Tensor
    index: int

    @property
    def name(self) -> str:
        return entry_point(self.op).rpartition("::")[2]

    @property
    def dtype(self) -> str:
        return part_type(tensor_type(self.op.result_types[self.index])[1])

    def typed(self, **settings: bool) -> Typed:
        torch.set_flush_denormal(False)  # the runtime has set it on this thread
        made = typed_dispatch(TypedMachine(self.program, **settings), self.op, self.operands)
        return made[self.index].map(as_parts)

    def against(self, value: Typed) -> Distance:
        mask = defined(value.exact)
        return distance(self.made, value, self.dtype, None if mask is None else mask.reshape(-1))

    @cached_property
    def near(self) -> Distance:
        return self.against(self.typed())

    @cached_property
    def far(self) -> Distance:
        return self.against(self.typed(deterministic=True))

    @property
    def explained(self) -> bool:
        """Whether sums in the order of the IR, rounded at every step, are as far off (``Judge``)."""
        return as_in_order(self.made, self.typed(), self.typed(in_order=True).typed)


class Compiled:
    """A program compiled with traces."""

    def __init__(self, text: str, folder: Path, flags: Sequence[str] = ()):
        folder.mkdir(parents=True, exist_ok=True)
        source, flow, traced = (folder / name for name in ("source.mlir", "flow.mlir", "traced.mlir"))
        self.vmfb = folder / "traced.vmfb"
        source.write_text(text)
        flags = (*FLAGS, *flags)
        phase(source, flow, None, "flow", flags)
        self.program = Program.parse(flow.read_text())
        module = ir.Module.parse(flow.read_text(), ir.Context())
        insert_traces(module)
        traced.write_text(module.operation.get_asm(enable_debug_info=True))
        phase(traced, self.vmfb, "flow", None, flags)

    def run(self, *inputs: Tensor) -> list[Judged]:
        """Every site of one run, in order."""
        found: list[Judged] = []
        lanes = Lanes(self.program, {})
        walk = self._sites(lanes, list(inputs), found)
        next(walk)

        def receive(key: str, tensors: list[Tensor]) -> None:
            torch.set_flush_denormal(False)
            try:
                walk.send((key, tensors))
            except StopIteration:
                return

        run_module(self.vmfb, "main", list(inputs), [], callback=receive)
        torch.set_flush_denormal(False)
        return found

    def _sites(self, lanes: Lanes, inputs: list[Tensor], found: list[Judged]) -> Iterator[None]:
        main = entry(self.program, "main")
        functions = [(f"init{i}", body, []) for i, body in enumerate(self.program.initializers)]
        for name, body, values in [*functions, ("main", main, arguments(main, inputs))]:
            for ordinal, op in enumerate(lanes.walk(body, values)):
                if op.name != "flow.dispatch":
                    break
                key, tensors = yield
                assert key == f"{name}/{ordinal}", (key, name, ordinal)
                operands = [lanes.get(COMPILED, slot) for slot in op.operands]
                for index, tensor in enumerate(tensors):
                    found.append(Judged(self.program, op, operands, as_parts(tensor), index))
                    for lane in (COMPILED, REFERENCE):
                        lanes.set(lane, op.results[index], tensor)


def fault_free(site: Judged) -> str | None:
    """Why correct code would be accused at ``site``; None where it would not be.

    Rounding errors of a sum need not be independent (a sum of ones stagnates): over the probabilistic bound it must be
    as far off when summed in the order of the IR, and within the deterministic bound.
    """
    try:
        near = site.near
    except UncoveredOp:
        return None
    if near.ratio <= 1:
        return None
    if site.far.ratio <= 1 and site.explained:
        return None
    at = tuple(int(i) for i in torch.unravel_index(torch.tensor(near.at), site.made.shape))
    value = site.typed()
    return (
        f"{site.name}: {near.ratio:.4g} of the bound at {at}, {site.far.ratio:.4g} of the deterministic one: "
        f"{float(site.made[at])!r} where {float(value.typed[at])!r} ± {float(value.error[at]):.4g} was expected"
    )


def worst(sites: Sequence[Judged]) -> float:
    return max((site.near.ratio for site in sites), default=math.nan)
