"""The job of ``numtrace passes --audit``: passes on small programs, and what each program means after each."""

from __future__ import annotations

import hashlib
import traceback
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import iree.compiler.version as compiler
import torch
from iree.compiler import ir, passmanager
from torch import Tensor

import numtrace.evaluate  # noqa: F401  (registers the ops)
from numtrace.errors import NumtraceError
from numtrace.evaluate.program import Program
from numtrace.evaluate.types import NATIVE, tensor_type
from numtrace.instrument.failure import one_line
from numtrace.instrument.stamp import stamp_module
from numtrace.worker.by_running import by_running
from numtrace.worker.channel import Channel
from numtrace.worker.meanings import Meanings
from numtrace.worker.modules import archives, entry

#: As in :mod:`numtrace.audit.document`, which this process does not import.
FAULT = "a fault of numtrace"
#: What a dynamic dimension is.
_DYNAMIC = 5
#: Integers are drawn from what 8 bits hold, signed.
_LOW, _HIGH = -128, 128


@dataclass(frozen=True, slots=True)
class Told:
    """What became of a program. ``outcome``: ``nothing``, ``keeps``, ``changes``, ``fails`` or ``untold``.

    ``max_abs`` and ``rel`` are the gap of the exact outputs where they differ; None where one side is NaN or Inf.
    ``changes`` is said only when compiled code shows it as well: else it is ``untold``.
    """

    outcome: str
    reason: str = ""
    max_abs: float | None = None
    rel: float | None = None


def audit(job: dict[str, Any], channel: Channel) -> None:
    """Sends ``told`` for each program and pass from ``job["start"]`` (program, pass) on, and ``audited`` last.

    Which pair is at work is said before by a stage: where the process dies, that one is why.
    """
    torch.set_flush_denormal(False)
    torch.set_num_threads(1)  # the programs are small
    context = ir.Context()
    managers: dict[str, passmanager.PassManager] = {}
    first, next_pass = job["start"]
    for number in range(first, len(job["programs"])):
        program = job["programs"][number]
        subject = Subject(context, program, Path(job["folder"]), job)
        for index in range(next_pass, len(job["pipelines"])):
            pipeline = job["pipelines"][index]
            channel.stage(program["name"], timed=True, at=[number, index])
            if pipeline not in managers:
                managers[pipeline] = passmanager.PassManager.parse(pipeline, context)
            told = subject.after(managers[pipeline])
            witness: dict[str, Any] = {}
            if told.outcome == "changes":
                channel.stage(
                    program["name"], timed=False, at=[number, index]
                )  # compiling takes its own time
                witness = subject.run()
                if not witness["confirmed"]:
                    told = replace(
                        told, outcome="untold", reason=f"its exact outputs differ, but {witness['witness']}"
                    )
            channel.send(
                "told", at=[number, index], **asdict(told), text=subject.text if witness else "",
                digest=subject.digest, **witness,
            )  # fmt: skip
        next_pass = 0
    channel.send("audited", iree_compiler=compiler.VERSION)


class Subject:
    """One program, which passes are run on, one at a time."""

    def __init__(self, context: ir.Context, program: dict[str, str], folder: Path, job: dict[str, Any]):
        self._context, self._name, self._folder, self._job = context, program["name"], folder, job
        module = ir.Module.parse(program["text"], context)
        stamp_module(module)
        self._stamped = module.operation.get_asm(enable_debug_info=True)
        self._plain = module.operation.get_asm(enable_debug_info=False)
        self._normal = normal_form(ir.Module.parse(self._plain, context))
        for name in ("source.mlir", "input.mlir"):
            (folder / name).write_text(self._stamped, encoding="utf-8")
        self._after = folder / "after.mlir"
        self.inputs = drawn_inputs(Program(module), program["data"])
        self._meanings = Meanings("main", archives([]), "self", folder, self.inputs)
        self._original = self._meanings.of(folder / "input.mlir")
        self._known: dict[str, Told] = {}
        self._numbers: dict[str, int] = {}  # of the meanings, by digest
        self._witnessed: dict[str, dict[str, Any]] = {}
        #: The program after the last pass, without locations, and its digest.
        self.text, self.digest = self._plain, ""

    def after(self, manager: passmanager.PassManager) -> Told:
        """What became of the program by one pipeline."""
        module = ir.Module.parse(self._stamped, self._context)
        try:
            manager.run(module.operation)
        except ir.MLIRError as error:
            self.digest = "failed"
            return Told("fails", _said(error))
        self.text = module.operation.get_asm(enable_debug_info=False)
        self.digest = hashlib.sha256(self.text.encode()).hexdigest()[:16]
        if self.text == self._plain or normal_form(ir.Module.parse(self.text, self._context)) == self._normal:
            return Told("nothing")
        if self.digest not in self._known:
            self._after.write_text(module.operation.get_asm(enable_debug_info=True), encoding="utf-8")
            try:
                self._known[self.digest] = self._told()
            except Exception as error:  # one program more or less: the others are not numtrace's fault
                traceback.print_exc()
                self._known[self.digest] = Told("untold", f"{FAULT} ({type(error).__name__}: {error})")
        return self._known[self.digest]

    def _told(self) -> Told:
        if self._original is None:
            return Told("untold", self._meanings.unknown[self._folder / "input.mlir"])
        number = self._meanings.of(self._after)
        if number is None:
            return Told("untold", self._meanings.unknown[self._after])
        if number == self._original:
            return Told("keeps")
        self._numbers[self.digest] = number
        return Told("changes", "", *self._meanings.gap(self._original, number))

    def run(self) -> dict[str, Any]:
        """Whether a compiled run shows the change of the last pass too; see :func:`by_running`."""
        if self.digest not in self._witnessed:
            self._witnessed[self.digest] = self._run()
        return self._witnessed[self.digest]

    def _run(self) -> dict[str, Any]:
        assert self._original is not None  # else nothing had changed
        numbers = self._original, self._numbers[self.digest]
        before, after = (self._meanings.evaluations[number].outputs for number in numbers)
        try:
            return by_running(self._plain, self.text, self.inputs, before, after, self._folder, self._job)
        except NumtraceError as error:
            return {"confirmed": None, "witness": str(error)}


def normal_form(module: ir.Module) -> str:
    """The text of ``module`` with each constant once, at the beginning of its function, in the order of their texts.

    Any pass that walks a program with patterns puts constants elsewhere, which changes nothing.
    """
    for function in module.body.operations:
        constants: list[ir.Operation] = []

        def collect(op: ir.Operation, found: list[ir.Operation] = constants) -> ir.WalkResult:
            if op.name == "arith.constant":
                found.append(op)
            return ir.WalkResult.ADVANCE

        function.operation.walk(collect)
        kept: dict[str, ir.Operation] = {}
        for op in constants:
            text = f"{op.attributes['value']}"
            if text in kept:
                op.result.replace_all_uses_with(kept[text].result)
                op.erase()
            else:
                kept[text] = op
        for text in sorted(kept):
            kept[text].move_before(next(iter(_first_block(function).operations)))
    return module.operation.get_asm(enable_debug_info=False)


def _first_block(function: ir.OpView) -> ir.Block:
    return function.operation.regions[0].blocks[0]


def drawn_inputs(program: Program, data: str) -> list[Tensor]:
    """Arguments for ``main``: see :class:`numtrace.audit.program.Program`; the same at each call."""
    generator = torch.Generator().manual_seed(0)
    values = []
    for type_ in entry(program, "main").regions[0].argument_types:
        shape, element = tensor_type(type_)
        sizes = [_DYNAMIC if size is None else size for size in shape]
        dtype = NATIVE[element]
        if dtype == torch.bool:
            values.append(torch.randint(0, 2, sizes, generator=generator).to(dtype))
        elif not dtype.is_floating_point:
            values.append(torch.randint(_LOW, _HIGH, sizes, generator=generator).to(dtype))
        elif data == "normal":
            values.append(torch.randn(sizes, generator=generator).to(dtype))
        else:
            whole = torch.randint(1, 9, sizes, generator=generator)
            sign = torch.randint(0, 2, sizes, generator=generator) * 2 - 1
            values.append((whole * sign).to(dtype))
    return values


def _said(error: ir.MLIRError) -> str:
    """The compiler's own message, in one line."""
    lines = [line.strip() for line in str(error).splitlines()]
    found = next((line for line in lines if line.startswith("error:")), lines[0] if lines else "no message")
    return one_line(found.removeprefix("error:").split(": ", 1)[-1].strip())
