"""The evaluator on PyTorch's own samples of its operators: ``python bench/opinfo.py FOLDER``.

OpInfo is what PyTorch tests its operators with. Each sample in float32 becomes a module that calls the operator; it
is exported, imported, and lowered by IREE to ``flow``. numtrace then says what the program means in exact arithmetic,
twice: as the source has it, and as ``flow`` does. Both are held against the operator itself, called in float64 on the
same numbers, which no code of numtrace takes part in.

A sample that IREE lowers and that does not agree must have its reason in ``opinfo_reasons.toml``: with samples that
have none, or with reasons that no sample has any more, the exit code is 1.

Needs ``pip install expecttest``, as PyTorch's test helpers do. Results are kept in FOLDER, one file an operator.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import warnings
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from iree.compiler import ir
from reasons import Reason, counts, explained, read
from torch.utils import _pytree as pytree

from numtrace.attribute.agreement import agrees
from numtrace.errors import CompileError, ModelError
from numtrace.evaluate.complex_numbers import as_parts
from numtrace.evaluate.types import widen
from numtrace.importers.imported import SCOPE
from numtrace.importers.torch_program import export, import_program
from numtrace.instrument import constants
from numtrace.instrument.compiler import phase
from numtrace.instrument.dtypes import to_torch
from numtrace.instrument.parameters import write_irpa
from numtrace.instrument.stamp import stamp_module
from numtrace.worker.meanings import Meanings
from numtrace.worker.modules import archives

#: The reasons of the samples that do not agree, by operator and number: ``nn.functional.gelu#1``.
TABLE = "opinfo_reasons.toml"
#: Samples of an operator that are tried, and seconds for all of them.
_SAMPLES, _PATIENCE = 4, 240
_FLAGS = ("--iree-hal-target-backends=llvm-cpu", "--iree-llvmcpu-target-cpu=host")
#: Operators whose values are random, or not a value of their inputs at all.
_NO_VALUE = (
    "bernoulli", "cauchy", "dropout", "empty", "exponential", "geometric", "log_normal", "multinomial", "normal",
    "rand", "rrelu", "uniform", "fractional_max_pool", "lowrank",
)  # fmt: skip


class Call(torch.nn.Module):
    """Calls an operator with what is given, tensors as inputs and everything else as it is."""

    def __init__(self, op: Any, sample: Any):
        super().__init__()
        self._op = op
        leaves, self._spec = pytree.tree_flatten(((sample.input, *sample.args), sample.kwargs))
        self._rest = [None if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        self._places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        self.inputs = [leaf.detach().clone() for leaf in leaves if isinstance(leaf, torch.Tensor)]

    def in_float64(self) -> Any:
        """What the operator makes of the inputs in float64, also where it is told to make float32."""
        rest = [torch.float64 if leaf is torch.float32 else leaf for leaf in self._rest]
        return self._called(rest, [widen(value) for value in self.inputs])

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self._called(self._rest, inputs)

    def _called(self, leaves: Sequence[Any], inputs: Sequence[torch.Tensor]) -> Any:
        leaves = list(leaves)
        for place, value in zip(self._places, inputs, strict=True):
            leaves[place] = value
        args, kwargs = pytree.tree_unflatten(leaves, self._spec)
        return self._op(*args, **kwargs)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="operators with this in their names")
    parser.add_argument("--again", action="store_true", help="also operators whose result is there")
    parser.add_argument("--report", action="store_true", help="print what is there and run nothing")
    chosen = parser.parse_args()
    from torch.testing._internal.common_methods_invocations import op_db

    chosen.folder.mkdir(parents=True, exist_ok=True)
    files = []
    for op in op_db:
        name = ".".join(part for part in (op.name, op.variant_test_name) if part)
        if any(word in name for word in _NO_VALUE) or torch.float32 not in op.dtypes:
            continue
        file = chosen.folder / f"{name}.json"
        files.append(file)
        if chosen.report or chosen.only not in name:
            continue
        if chosen.again or not file.exists():
            file.write_text(json.dumps(_in_a_process(op, chosen.folder / "work")))
            print(name, dict(Counter(outcome for outcome, _ in json.loads(file.read_text()))), flush=True)
    whole = not chosen.only and all(file.exists() for file in files)
    return report([file for file in chosen.folder.glob("*.json") if chosen.only in file.stem], whole)


def _in_a_process(op: Any, work: Path) -> list[tuple[str, str]]:
    """The outcomes of an operator's samples; a crash or a hang costs this operator only."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_outcomes, args=(op, work, sender))
    process.start()
    sender.close()
    found: list[tuple[str, str]] = []
    while receiver.poll(_PATIENCE):
        try:
            found.append(receiver.recv())
        except EOFError:
            break
    else:
        found.append(("hangs", f"more than {_PATIENCE} s"))
    process.kill()
    process.join()
    if process.exitcode not in (0, -9):
        found.append(("crashes", f"exit code {process.exitcode}"))
    return found


def _outcomes(op: Any, work: Path, sender: Any) -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    work.mkdir(exist_ok=True)
    for sample in islice(op.sample_inputs("cpu", torch.float32, requires_grad=False), _SAMPLES):
        try:
            sender.send(_outcome(Call(op.op, sample), work))
        except Exception as error:
            sender.send(("numtrace fails", f"{type(error).__name__}: {error}"))
    sender.close()


def _outcome(call: Call, work: Path) -> tuple[str, str]:
    try:
        expected = _tensors(call.in_float64())
    except Exception as error:
        return "not in float64", str(error)
    try:
        imported = import_program(export(call, tuple(call.inputs)))
    except ModelError as error:
        return "not imported", str(error)
    source, archive, inlined = (work / name for name in ("source.mlir", "w.irpa", "inlined.irpa"))
    inlined.unlink(missing_ok=True)
    try:
        module = ir.Module.parse(imported.text, ir.Context())
    except ir.MLIRError as error:  # torch-mlir's verifier refuses what torch allows
        return "not lowered", str(error)
    stamp_module(module)
    params = [(constants.SCOPE, str(inlined))] if constants.externalise(module, inlined) else []
    source.write_text(module.operation.get_asm(enable_debug_info=True))
    if imported.parameters:
        write_irpa(archive, imported.parameters)
        params.append((SCOPE, str(archive)))
    try:
        phase(source, work / "input.mlir", None, "input", _FLAGS, _PATIENCE)
        phase(work / "input.mlir", work / "flow.mlir", "input", "flow", _FLAGS, _PATIENCE)
    except CompileError as error:
        return "not lowered", str(error)
    inputs = [to_torch(value) for value in imported.inputs]
    meanings = Meanings("main", archives(params), "torch", work, inputs)
    first = meanings.of(source)
    if first is None:
        return "uncovered source", meanings.unknown[source]
    second = meanings.of(work / "flow.mlir")
    if second is None:
        return "uncovered flow", meanings.unknown[work / "flow.mlir"]
    for name, number in (("source", first), ("flow", second)):
        apart = _apart(meanings.evaluations[number].outputs, expected)
        if apart:
            return f"{name} differs", apart
    return "agrees", ""


def _tensors(made: Any) -> list[torch.Tensor]:
    return [as_parts(leaf) for leaf in pytree.tree_leaves(made) if isinstance(leaf, torch.Tensor)]


def _apart(made: list[torch.Tensor], expected: list[torch.Tensor]) -> str:
    """How two lists of tensors differ in exact arithmetic; nothing where they do not."""
    if [value.numel() for value in made] != [value.numel() for value in expected]:
        return f"shapes {[list(v.shape) for v in made]}, expected {[list(v.shape) for v in expected]}"
    for n, (a, b) in enumerate(zip(made, expected, strict=True)):
        b = b.reshape(a.shape)
        a, b = (value.to(torch.int64) if value.dtype == torch.bool else value for value in (a, b))
        if not agrees(a.double(), b.double()):
            gap = (a.double() - b.double()).abs().nan_to_num(torch.inf)
            return f"result {n}: up to {float(gap.max()):.3g} of {float(b.double().abs().max()):.3g}"
    return ""


def report(files: list[Path], whole: bool) -> int:
    """What the results of operators say together; ``whole``: they are those of all operators."""
    found = {
        f"{file.stem}#{number}": (outcome, why)
        for file in sorted(files)
        for number, (outcome, why) in enumerate(json.loads(file.read_text()))
    }
    outcomes = Counter(outcome for outcome, _ in found.values())
    judged = {name: outcome for name, (outcome, _) in found.items() if not outcome.startswith("not ")}
    apart = {name: outcome for name, outcome in judged.items() if outcome != "agrees"}
    told = explained(read(TABLE), apart, holds)
    stale = told.stale if whole else []
    for name in told.unexplained:
        outcome, why = found[name]
        print(f"{name}: {outcome}: {why[:200]}")
    for cases in stale:
        print(f"a reason without a case: {cases}")
    print(f"{len(files)} operators, {len(found)} samples: {counts(outcomes)}")
    print(f"of {len(judged)} that IREE lowers, {len(judged) - len(apart)} agree; the others: {told}")
    return int(bool(told.unexplained or stale))


def holds(reason: Reason, outcome: str) -> bool:
    return outcome == reason["outcome"]


if __name__ == "__main__":
    sys.exit(main())
