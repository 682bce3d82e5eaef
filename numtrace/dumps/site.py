"""What the report document says about one site: its identity, its match, its error terms."""

from __future__ import annotations

from typing import Literal

import msgspec

Code = Literal["within", "suspect", "proven", "unbounded"]
Match = Literal["verified", "differs", "ambiguous", "unmatched", "uncovered", "moved"]


class Term(msgspec.Struct, frozen=True, kw_only=True):
    """One error term of a site, summarised over its elements.

    The statistics are over the elements that are defined and finite in every term; ``nan`` and ``inf``
    count the others. A statistic that has no value (no such element, zero norm) is ``None``.
    ``rel_l2`` is the term's L2 norm over the reference's; ``max_ulp`` is in units of the site's dtype;
    ``cosine`` is between the two sides of the difference, not of the difference itself.
    """

    max_abs: float | None
    at: list[int] | None = None
    """Index of ``max_abs``, in the shape of the site."""
    mean_abs: float | None = None
    rel_l2: float | None = None
    cosine: float | None = None
    max_ulp: float | None = None
    nan: int = 0
    inf: int = 0


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """One traced tensor: ``function/ordinal.result``, ``init3/0.0`` in an initializer, ``#k`` in a loop.

    ``ops`` are the source ops of the dispatch that made it (``op`` is the root), ``location`` is what
    the model's file said about the root, ``shape`` is as traced.
    """

    id: str
    dispatch: str
    op: str
    ops: list[str]
    module: str
    location: str
    dtype: str
    shape: list[int]
    match: Match
    tainted: bool = False
    """Downstream of an uncovered site: its semantic term proves nothing."""
    layout: str | None = None
    """How the site's elements lie relative to the source value it was matched with."""
    reason: str | None = None
    """Why the site is uncovered (or unmatched), in words."""
    nonfinite_first: bool = False
    """The first site of the variant that holds a NaN or Inf that the reference does not."""
    constant: bool = False
    """The semantic term is that of a scalar which the lowering rounded (see the variant's ``constants``)."""
    near_ties: int = 0
    """Elements that hang on the rounding of float64 (a decision, numbers that cancel): the source's were taken."""
    unsure: int = 0
    """Of those, how many differ visibly where nothing but noise speaks for the program."""
    total: Term | None = None
    inherited: Term | None = None
    introduced: Term | None = None
    semantic: Term | None = None
    additivity: float | None = None
    """Largest |total − inherited − introduced − semantic| over the largest term there, in units of 2^−52."""
    kept: list[str] = []
    """Files with whole tensors of this site, relative to the run directory."""

    rounding: Term | None = None
    """d_Q(x_C) - d_R(x_C): what the types of the IR ask for."""
    codegen: Term | None = None
    """C - d_Q(x_C): what the code adds to that."""
    code: Code | None = None
    """What the bounds say of the code; null at a site that was not evaluated."""
    bound_ratio: float | None = None
    """The greatest |codegen| over the probabilistic bound; null also where it is infinite, see ``over_bound``."""
    proven_ratio: float | None = None
    """The same over the deterministic bound, where ``code`` is suspect or proven."""
    over_bound: int = 0
    """Elements beyond the probabilistic bound."""
    over_at: list[int] | None = None
    """Index of the worst of them."""
    free: int = 0
    """Elements of which the bound says nothing: a near tie of an index, an overflow in doubt."""
    free_share: float = 0.0
    """What part of the squared codegen error is theirs."""
    disagreeing: int = 0
    """Elements that are NaN or infinite in the compiled value or in the exact one on the same inputs, not in both."""
    unbounded_reason: str | None = None
    """Why there is no bound."""

    # Parts of later work: left out of the document until something sets them.
    share: float | msgspec.UnsetType | None = msgspec.UNSET
