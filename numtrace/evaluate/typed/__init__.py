"""The typed meaning of a dispatch, beside its exact one, and how far compiled code may be from it.

Each value is carried as a :class:`~numtrace.evaluate.typed.value.Typed`: what it is exactly, what it is when
every result is rounded to its IR type, and a bound on the distance between the latter and correct code.
"""

from numtrace.evaluate.typed import (
    arithmetic,
    casts,
    choices,
    complex_numbers,
    composite,
    control,
    dispatch,
    fourier,
    functions,
    moves,
    ordering,
    structured,
)

__all__ = [
    "arithmetic",
    "casts",
    "choices",
    "complex_numbers",
    "composite",
    "control",
    "dispatch",
    "fourier",
    "functions",
    "moves",
    "ordering",
    "structured",
]
