"""Which function evaluates which op. A new op is one small function with ``@evaluates("dialect.op")``."""

from __future__ import annotations

from collections.abc import Callable

from numtrace.errors import UncoveredOp

_FUNCTIONS: dict[str, Callable] = {}
_FAMILIES: dict[str, Callable] = {}


def evaluates(*names: str) -> Callable[[Callable], Callable]:
    """Registers ``fn(op, machine, *operands)``, which returns the result, a tuple of results, or None.

    A second function for the same op is an error: two meanings of one op would be a matter of import order.
    """

    def register(fn: Callable) -> Callable:
        for name in names:
            if name in _FUNCTIONS:
                raise ValueError(
                    f"two evaluations of {name}: {_FUNCTIONS[name].__module__} and {fn.__module__}"
                )
            _FUNCTIONS[name] = fn
        return fn

    return register


def evaluates_family(*prefixes: str) -> Callable[[Callable], Callable]:
    """Registers ``fn`` for every op whose name begins with one of ``prefixes`` and has no function of its own."""

    def register(fn: Callable) -> Callable:
        if taken := _FAMILIES.keys() & set(prefixes):
            raise ValueError(f"two evaluations of the family {', '.join(sorted(taken))}")
        _FAMILIES.update(dict.fromkeys(prefixes, fn))
        return fn

    return register


def lookup(name: str) -> Callable:
    """The function for ``name``.

    Raises:
        UncoveredOp: there is none.
    """
    fn = _FUNCTIONS.get(name)
    if fn is None:
        fn = next((family for prefix, family in _FAMILIES.items() if name.startswith(prefix)), None)
    if fn is None:
        raise UncoveredOp(name)
    return fn


def covered() -> frozenset[str]:
    """The names of all ops that can be evaluated."""
    return frozenset(_FUNCTIONS)


def without(name: str) -> Callable:
    """Takes the function of ``name`` out and returns what puts it back (for tests of missing coverage)."""
    fn = _FUNCTIONS.pop(name)
    return lambda: _FUNCTIONS.__setitem__(name, fn)
