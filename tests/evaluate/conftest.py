"""Small programs, parsed and evaluated; every evaluation also checks that it left its operands alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import numtrace.evaluate  # noqa: F401  (registers the dialects)
from numtrace.evaluate.machine import Machine
from numtrace.evaluate.program import Program

Evaluate = Callable[..., list[Tensor]]


def _evaluate(text: str, *arguments: Tensor) -> list[Tensor]:
    program = Program.parse(text)
    machine = Machine(program)
    before = [argument.clone() for argument in arguments]
    results = machine.run(program.functions["main"].regions[0], arguments)
    for argument, copy in zip(arguments, before, strict=True):
        assert _bits(argument) == _bits(copy), "an op wrote to its operand"
    assert not machine.env, "values were kept after their last use"
    return results


def _bits(value: Tensor) -> bytes:
    return value.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


@pytest.fixture(scope="session")
def evaluate() -> Evaluate:
    """``evaluate(mlir_text, *arguments)``: the results of its function ``main``."""
    return _evaluate


@pytest.fixture
def small_stripes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every temporary is cut to a few points."""
    monkeypatch.setattr("numtrace.evaluate.structured.STRIPE", 7)
    monkeypatch.setattr("numtrace.evaluate.contraction.STRIPE", 7)
