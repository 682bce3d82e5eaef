"""Programs evaluated in both meanings at once."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from torch import Tensor

from numtrace.evaluate.program import Program
from numtrace.evaluate.typed.machine import TypedMachine
from numtrace.evaluate.typed.value import Typed, lift

Evaluated = Callable[..., Typed]


def _typed(text: str, *arguments: Tensor | Typed, **settings: bool) -> Typed:
    program = Program.parse(text)
    body = program.functions["main"].regions[0]
    values = [lift(value, type_) for value, type_ in zip(arguments, body.argument_types, strict=True)]
    (result,) = TypedMachine(program, **settings).run(body, values)
    return result


@pytest.fixture(scope="session")
def typed() -> Evaluated:
    """``typed(text, *arguments, deterministic=…, in_order=…)``: the one result of its function ``main``."""
    return _typed
