"""What the report document says of one finding: a fault, or what looked like one and is accounted for."""

from __future__ import annotations

from typing import Literal

import msgspec

Kind = Literal["codegen", "pass-semantics", "lowering-semantics"]
Certainty = Literal["proven", "suspect", "explained"]


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """The same dispatch alone, compiled another way; ``code`` is null where it did not run."""

    name: str
    status: str
    reason: str | None = None
    code: str | None = None
    bound_ratio: float | None = None


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One fault. Code that several dispatches share is one; so is a source op whose mathematics was changed.

    ``sites`` are its sites, the worst first, and the figures those of the worst: of the codegen term, or of the
    semantic one. A semantic finding is ``suspect`` where nothing of it reaches the outputs. A finding is
    ``explained`` where the error is accounted for by what the IR allows, such as the order of a sum: it makes no
    verdict.
    """

    kind: Kind
    certainty: Certainty
    op: str
    text: str
    ops: list[str] = []
    module: str = ""
    dispatch: str = ""
    sites: list[str] = []
    roots: list[str] = []
    """The root ops of the sites, where code is shared."""
    dtype: str = ""
    max_abs: float | None = None
    rel_l2: float | None = None
    nonfinite: int = 0
    """Elements there that are NaN or Inf on either side."""
    output_max_abs: float | None = None
    """Of a semantic finding: the difference at the outputs, of all of its kind together; null for a NaN or Inf."""
    output_rel_l2: float | None = None
    known: bool | str = False
    """Accepted before (``--known``): the note on it, or true. It makes no verdict."""
    grown: str = ""
    """What was accepted and is larger now, in words: it counts."""
    bound_ratio: float | None = None
    proven_ratio: float | None = None
    over_bound: int = 0
    elements: int = 0
    gone_by: list[str] = []
    """Routes by which the same dispatch is within its bound."""
    stays_by: list[str] = []
    """Routes by which it is as far off."""
    deterministic: bool | None = None
    """Two runs of it alone are equal bit for bit; null where it did not run alone."""
    as_traced: bool | None = None
    """Alone it makes what it made in the program."""
    in_order: bool = False
    """Summing in the order of the IR is as far off."""
    confirmed: bool = False
    """Torch's reference agrees with numtrace's reading of the dispatch."""
    unheard: str | None = None
    """Why there is no second witness."""
    routes: list[Route] = []
