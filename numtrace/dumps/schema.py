"""The report document, ``numtrace.report`` version 1: its top level, and its way to and from JSON."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from numtrace.dumps.finding import Finding
from numtrace.dumps.known import Entry
from numtrace.dumps.site import Match, Site, Term
from numtrace.dumps.variant import (
    Budget,
    BudgetLine,
    Constant,
    Coverage,
    Failure,
    Origin,
    Output,
    Repeats,
    SemanticSplit,
    Share,
    Split,
    Spread,
    Status,
    Timings,
    TorchError,
    Variant,
    Verdict,
)
from numtrace.errors import UsageError

__all__ = [
    "FORMAT",
    "VERSION",
    "Budget",
    "BudgetLine",
    "Constant",
    "Coverage",
    "Environment",
    "Failure",
    "Finding",
    "Input",
    "KnownFindings",
    "Match",
    "Model",
    "Origin",
    "Output",
    "Parameters",
    "Reference",
    "Repeats",
    "Report",
    "SemanticSplit",
    "Share",
    "Site",
    "Split",
    "Spread",
    "Status",
    "Target",
    "Term",
    "Timings",
    "Tolerance",
    "Tool",
    "TorchError",
    "Variant",
    "Verdict",
    "decode",
    "encode",
    "encode_line",
    "finite",
    "json_schema",
]

FORMAT = "numtrace.report"
VERSION = 1


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    version: str


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """What the numbers depend on besides the model."""

    iree_compiler: str
    iree_runtime: str
    torch: str
    cpu: str
    flush_denormals: bool | None
    threads: int | None
    python: str = ""
    platform: str = ""


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """What every variant is compiled for; ``flags`` are those common to all."""

    backend: str
    device: str
    cpu: str = ""
    flags: list[str] = []


class Input(msgspec.Struct, frozen=True, kw_only=True):
    """One argument; ``source`` is a file or how it was made (``seed 0``)."""

    shape: list[int]
    dtype: str
    source: str


class Parameters(msgspec.Struct, frozen=True, kw_only=True):
    """One parameter archive."""

    scope: str
    path: str


class Model(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    sha256: str
    function: str
    inputs: list[Input]
    parameters: list[Parameters] = []


class Reference(msgspec.Struct, frozen=True, kw_only=True):
    """``kind`` is ``torch``; ``onnx``, where the evaluator knows all of the source's operators; or ``self``, where it
    judges its own reading of what IREE begins with.

    ``semantic_floor``: relative differences of exact values from here on are a change of meaning.
    """

    kind: str
    dtype: str
    device: str = "cpu"
    """Of torch, where it was evaluated."""
    golden_max_abs: float | None = None
    """How far the user's own expected output is from this reference."""
    semantic_floor: float = 1e-11


class Tolerance(msgspec.Struct, frozen=True, kw_only=True):
    atol: float | None = None
    rtol: float | None = None
    psnr_db: float | None = None
    image: bool = False


class KnownFindings(msgspec.Struct, frozen=True, kw_only=True):
    """The file of accepted findings (``--known``), and those of them that are gone."""

    file: str
    entries: int
    vanished: list[Entry]


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The whole document. ``planned`` is how many variants the run set out to make."""

    format: str = FORMAT
    version: int = VERSION
    tool: Tool
    environment: Environment
    model: Model
    target: Target
    reference: Reference
    tolerance: Tolerance | None
    notices: list[str]
    planned: int
    variants: list[Variant]
    known: KnownFindings | msgspec.UnsetType = msgspec.UNSET
    """Left out without ``--known``."""


class _Head(msgspec.Struct):
    format: str = ""
    version: int = 0


def finite(value: float | None) -> float | None:
    """``value`` as a plain float, or ``None`` if it is NaN or infinite (count those beside it)."""
    return float(value) if value is not None and math.isfinite(value) else None


def encode(report: Report) -> bytes:
    """The document as JSON: indent 2, keys in the order of the schema, a newline at the end.

    Raises ``ValueError`` that names the key of a NaN or Inf (msgspec would write null without a word),
    ``TypeError`` or ``msgspec.ValidationError`` for a value that the schema does not allow.
    """
    return msgspec.json.format(msgspec.json.encode(_checked(report)), indent=2) + b"\n"


def encode_line(site: Site) -> bytes:
    """One site as one line of JSON; the same checks as ``encode``."""
    return msgspec.json.encode(_checked(site)) + b"\n"


def decode(data: bytes, source: str = "the report") -> Report:
    """Read a document. ``source`` is what to call it in an error. Raises ``UsageError``."""
    try:
        head = msgspec.json.decode(data, type=_Head)
    except msgspec.ValidationError:
        head = _Head()
    except msgspec.DecodeError as error:
        raise UsageError(
            f"{source} is not complete JSON ({error}); it was cut off or edited: run numtrace again"
        ) from None
    if head.format != FORMAT:
        raise UsageError(
            f'{source} is not a numtrace report: its "format" should be "{FORMAT}"; '
            "give the directory of a numtrace run"
        )
    if head.version != VERSION:
        raise UsageError(
            f"{source} has version {head.version} of the report document and this numtrace reads "
            f"version {VERSION}: use the numtrace that wrote it, or run again"
        )
    try:
        return msgspec.json.decode(data, type=Report)
    except msgspec.ValidationError as error:
        raise UsageError(f"{source} does not follow the schema of {FORMAT} {VERSION}: {error}") from None


def json_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of the document."""
    return msgspec.json.schema(Report)


def _checked(value: Report | Site) -> Any:
    """``value`` as dicts and lists, once it is known to be finite and to fit its own type."""
    plain = _clean(msgspec.to_builtins(value, order="deterministic"), "")
    msgspec.convert(plain, type(value))
    return plain


def _clean(value: Any, path: str) -> Any:
    """``value`` with strings that are valid UTF-8 (file names may not be); raises at a NaN or Inf."""
    if isinstance(value, dict):
        return {key: _clean(item, f"{path}.{key}" if path else key) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item, f"{path}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{path} is {value}: the document holds finite numbers or null, with a count beside")
    return value
