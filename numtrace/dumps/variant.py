"""What the report document says about one variant: what was done, what came out, what it means."""

from __future__ import annotations

from typing import Literal

import msgspec

from numtrace.dumps.finding import Finding
from numtrace.dumps.site import Site

Status = Literal["ran", "compile-failed", "run-failed", "same-as", "interrupted"]
Verdict = Literal[
    "compile-failed",
    "run-failed",
    "lowering-bug",
    "pass-bug",
    "codegen-bug",
    "codegen-suspect",
    "inconclusive",
    "over-tolerance",
    "no-effect",
    "ok",
]
"""In the order in which they are tried: the first that applies is the variant's."""


class Output(msgspec.Struct, frozen=True, kw_only=True):
    """Compiled result against the reference, over the elements finite in both.

    ``psnr_db`` and ``u8_max`` (8-bit steps) are ``None`` unless the result is an image in [0, 1];
    ``allclose`` is ``None`` unless a tolerance was given; ``max_ulp`` is in units of ``dtype``.
    """

    max_abs: float | None
    at: list[int] | None = None
    mean_abs: float | None = None
    rel_l2: float | None = None
    max_ulp: float | None = None
    allclose: bool | None = None
    psnr_db: float | None = None
    u8_max: int | None = None
    nonfinite: int = 0
    torch_same_dtype_max_abs: float | None = None
    golden_max_abs: float | None = None
    """Against the user's own expected output (``--expected``)."""
    dtype: str = ""
    shape: list[int] = []


class SemanticSplit(msgspec.Struct, frozen=True, kw_only=True):
    """Max abs at the output of R − reference, and of its parts by who changed the meaning."""

    max_abs: float | None
    pass_: float | None = msgspec.field(name="pass", default=None)
    lowering: float | None = None
    constant: float | None = None


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """Signed part of the squared output error that is explained to first order."""

    share: float | None


class Split(msgspec.Struct, frozen=True, kw_only=True):
    """C − reference at the output = execution + pass semantics + lowering semantics."""

    semantic: SemanticSplit
    execution_max_abs: float | None = None
    rounding: Share | msgspec.UnsetType | None = msgspec.UNSET
    codegen: Share | msgspec.UnsetType | None = msgspec.UNSET
    remainder: Share | msgspec.UnsetType | None = msgspec.UNSET


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """How many sites there are, and how many in each state; the states add up to ``sites``."""

    sites: int
    evaluated: int
    verified: int = 0
    moved: int = 0
    differs: int = 0
    ambiguous: int = 0
    unmatched: int = 0
    uncovered: int = 0
    tainted: int = 0
    unbounded: int = 0


class Timings(msgspec.Struct, frozen=True, kw_only=True):
    """Wall-clock seconds; ``traced_s`` includes the evaluation inside the trace."""

    compile_s: float | None = None
    run_s: float | None = None
    traced_s: float | None = None
    total_s: float | None = None


class Constant(msgspec.Struct, frozen=True, kw_only=True):
    """A scalar that a lowering stored with rounding: both values, and the relative difference.

    ``ops`` are the source ops that use it, ``op`` is the first of them.
    """

    op: str
    ops: list[str] = []
    source: float
    stored: float
    rel: float
    beyond_half_ulp: bool


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Where the first NaN or Inf was made."""

    site: str
    op: str


class TorchError(msgspec.Struct, frozen=True, kw_only=True):
    """Torch's own error in the variant's dtype, against the same float64 reference."""

    dtype: str
    max_abs: float | None


class Repeats(msgspec.Struct, frozen=True, kw_only=True):
    """Plain runs of a program that does not give the same values each time, and the traced one beside them.

    ``spread``: how far two of them are apart, max abs; ``traced``: how far the traced output is from the nearest of
    them; null for a NaN or Inf on one side. ``within``: that is no more than twice the spread.
    """

    runs: int
    spread: float | None
    traced: float | None
    within: bool


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """Max abs at the output for each seed; the variant's numbers are those of the worst."""

    seeds: list[int]
    max_abs: list[float | None]


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Why a variant has no numbers. ``kind`` is a word (crash, time-out, compiler-error, …)."""

    kind: str
    message: str
    location: str | None = None


class BudgetLine(msgspec.Struct, frozen=True, kw_only=True):
    """Share of one op in the squared output error."""

    op: str
    module: str
    share: float | None


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """The error budget; ``abs_sum`` is Σ|share|, since shares are signed."""

    sum: float | None
    abs_sum: float | None
    by_op: list[BudgetLine]


class Variant(msgspec.Struct, frozen=True, kw_only=True):
    """The model compiled with some passes, in command-line order; the baseline has none.

    ``flags`` are those that the variant's passes add to the run's own (``Report.target``).
    ``directory`` and the values of ``files`` (stage or kind → file) are relative to the run directory.
    """

    name: str
    passes: list[str]
    pipeline: str | None
    flags: list[str]
    status: Status
    same_as: str | None = None
    verdict: Verdict | None = None
    reason: str = ""
    error: Failure | None = None
    ops_changed: int | None = None
    output: Output | None = None
    outputs: list[Output] = []
    torch_same_dtype: TorchError | None = None
    spread: Spread | None = None
    split: Split | None = None
    findings: list[Finding] = []
    constants: list[Constant] = []
    places: list[str] = []
    """Source ops whose index arithmetic on floats was found to be rounded, as the constants are."""
    coverage: Coverage | None = None
    traced_equal: bool | None = None
    """Output of the traced program bit-equal to that of a plain single-shot compile."""
    repeats: Repeats | None = None
    """Where it is not: what other plain runs gave; none where those are bit-equal."""
    nonfinite_origin: Origin | None = None
    timings: Timings | None = None
    directory: str | None = None
    files: dict[str, str] = {}
    sites: list[Site] = []
    budget: Budget | msgspec.UnsetType | None = msgspec.UNSET
