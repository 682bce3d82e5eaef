"""Which function carries the meanings and the bound through which op."""

from __future__ import annotations

from collections.abc import Callable

_RULES: dict[str, Callable] = {}


def carries(*names: str) -> Callable[[Callable], Callable]:
    """Registers ``rule(op, machine, *operands)``, on :class:`~numtrace.evaluate.typed.value.Typed` operands.

    A second rule for the same op is an error.
    """

    def register(rule: Callable) -> Callable:
        for name in names:
            if name in _RULES:
                raise ValueError(f"two rules for {name}: {_RULES[name].__module__} and {rule.__module__}")
            _RULES[name] = rule
        return rule

    return register


def rule_of(name: str) -> Callable | None:
    """The rule for ``name``; None where the general ones must do."""
    return _RULES.get(name)
