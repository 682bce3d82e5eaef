"""A second witness: the same dispatch, on the inputs that it really got, compiled in other ways.

Before code is accused, the dispatch is run twice by itself (is it deterministic, and does it make what the program
made?), and by every route that leaves out something its code relies on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from numtrace.errors import CompileError, RunError, UsageError
from numtrace.evaluate.complex_numbers import as_parts
from numtrace.worker.alone import Alone
from numtrace.worker.routes import OWN, ROUTES, Route

#: What a caller wants to know of the results of a dispatch.
Measure = Callable[[list[Tensor]], dict[str, Any]]


def witness(
    alone: Alone,
    traced: Sequence[Tensor],
    measure: Measure,
    *,
    defined: Sequence[Tensor | None] | None = None,
    routes: Sequence[Route] = ROUTES,
) -> dict[str, Any]:
    """Runs the dispatch twice as it is, then by each of ``routes``, and tells what came out.

    Args:
        traced: what the dispatch made in the program, one tensor per result.
        measure: is called with the results of every route.
        defined: per result a mask of the elements (of complex numbers, the parts) that the program defines; None: all.

    Returns ``deterministic`` (the two runs are equal bit for bit), ``as_traced`` (and equal to ``traced``, where
    defined), both None when the dispatch does not run alone, and ``routes``: first ``own``, then the others, each
    with ``name``, ``why``, ``flags``, ``status``, ``reason``, ``kind`` (of the error), ``as_own`` (equal to own's
    results bit for bit), ``measure`` and ``seconds``.

    The status is ``ran``, ``same-code`` (its executables are own's, byte for byte: it was not run), ``unfit`` (it
    says nothing of this dispatch), ``compile-failed`` or ``run-failed``. A route that crashes is no more than that:
    each compiler and each run is a process of its own.
    """
    own = _Visit(alone, OWN)
    results = own.results(measure)
    again = _again(alone) if results is not None else None
    record: dict[str, Any] = {
        "deterministic": None if again is None else same_bits(results, again, defined),
        "as_traced": None if results is None else same_bits(results, traced, defined),
        "routes": [own.record],
    }
    for route in routes:
        visit = _Visit(alone, route)
        why = route.unfit(alone.setting.flags, alone.program.encoded)
        if why is not None:
            visit.end("unfit", why)
        else:
            found = visit.results(measure, own)
            if found is not None and results is not None:
                visit.record["as_own"] = same_bits(found, results, defined)
        record["routes"].append(visit.record)
    return record


def same_bits(
    a: Sequence[Tensor] | None, b: Sequence[Tensor], defined: Sequence[Tensor | None] | None
) -> bool:
    """Whether two lists of tensors are the same bit for bit; ``defined`` as for :func:`witness`."""
    if a is None or len(a) != len(b):
        return False
    masks = defined if defined is not None else [None] * len(b)
    return all(_same(x, y, mask) for x, y, mask in zip(a, b, masks, strict=True))


def _same(a: Tensor, b: Tensor, mask: Tensor | None) -> bool:
    a, b = as_parts(a), as_parts(b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    equal = (_bytes(a) == _bytes(b)).all(dim=-1)
    return bool((equal if mask is None else equal | ~mask.reshape(-1)).all())


def _bytes(value: Tensor) -> Tensor:
    """The bytes of each element: (elements, bytes per element)."""
    flat = value.reshape(-1).clone(memory_format=torch.contiguous_format)
    return flat.view(torch.uint8).reshape(flat.numel(), flat.element_size())


def _again(alone: Alone) -> list[Tensor] | None:
    try:
        return alone.run(OWN)
    except RunError:
        return None


class _Visit:
    """One route: compiled, run, measured; :attr:`record` says how far it came."""

    def __init__(self, alone: Alone, route: Route):
        self._alone, self._route = alone, route
        flags = route.flags(alone.setting.flags)
        self._started = time.perf_counter()
        self.folder: Path | None = None
        self.record: dict[str, Any] = {
            "name": route.name, "why": route.why, "flags": flags, "status": "ran", "reason": None,
            "kind": None, "as_own": None, "measure": None, "seconds": 0.0,
        }  # fmt: skip

    def results(self, measure: Measure, own: _Visit | None = None) -> list[Tensor] | None:
        """What the route makes; None when it fails, or its code is that of ``own``."""
        try:
            self.folder = self._alone.compile(self._route, self.record["flags"])
            if own is not None and own.record["status"] == "ran" and self._same_code(own):
                self.end("same-code", "the compiler makes the same machine code of it")
                self.record["as_own"] = True
                return None
            results = self._alone.run(self._route)
        except (CompileError, UsageError) as error:
            self.end("compile-failed", str(error))
            self.record["kind"] = error.kind
            return None
        except RunError as error:
            self.end("run-failed", str(error))
            self.record["kind"] = error.kind
            return None
        self.record["measure"] = measure(results)
        self.end("ran", None)
        return results

    def end(self, status: str, reason: str | None) -> None:
        self.record |= {"status": status, "reason": reason, "seconds": time.perf_counter() - self._started}

    def _same_code(self, own: _Visit) -> bool:
        mine, theirs = _binaries(self.folder), _binaries(own.folder)
        return bool(mine) and mine == theirs


def _binaries(folder: Path | None) -> dict[str, bytes]:
    """The executables that the compiler made; none where the backend leaves no files of them."""
    if folder is None:
        return {}
    return {path.name: path.read_bytes() for path in sorted((folder / "code").glob("*.so"))}
