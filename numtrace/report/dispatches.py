"""What is known of one variant beyond its row: checks, coverage, and its worst dispatches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from rich.text import Text

from numtrace.attribute.findings import listed
from numtrace.dumps.schema import (
    Constant,
    Coverage,
    Failure,
    Report,
    Site,
    Split,
    Term,
    Timings,
    Variant,
)
from numtrace.report.figures import bound_share, number, op_names, tensor_type
from numtrace.report.findings import finding_lines
from numtrace.report.layout import Column, heading, labelled, table, table_width
from numtrace.report.variants import verdict_style, verdict_text

_SEMANTIC = ("inherited", "introduced", "semantic")
#: Narrower than this, a dispatch takes two lines.
_ONE_LINE = 120
_REASONS_SHOWN = 5
_MESSAGE_LINES = 12


def variant_details(report: Report, variant: Variant, width: int, top: int) -> list[Text]:
    """Coverage, checks, and the ``top`` worst dispatches by introduced and by semantic error."""
    lines = [Text(), heading(f"{variant.name}: {verdict_text(variant)}", width, verdict_style(variant))]
    if variant.error:
        lines += labelled("error", _failure(variant.error), width)
    lines += _facts(variant, width)
    if variant.sites:
        lines += _worst("introduced", variant.sites, lambda site: _size(site.introduced) > 0, width, top)
        lines += _semantic(variant, report.reference.semantic_floor, width, top)
    return lines


def _facts(variant: Variant, width: int) -> list[Text]:
    lines: list[Text] = []
    if variant.coverage:
        lines += labelled("sites", _coverage(variant.coverage), width)
    uncovered = Counter(site.reason or site.op for site in variant.sites if site.match == "uncovered")
    for reason, times in uncovered.most_common(_REASONS_SHOWN):
        lines += labelled("uncovered", f"{times} x {reason}", width, "yellow")
    if variant.split:
        lines += labelled("output", _split(variant.split), width)
    lines += finding_lines(variant.findings, width)
    for constant in variant.constants:
        lines += labelled("constant", _constant(constant), width)
    if variant.places:
        text = f"rounded by the lowering: index arithmetic on floats of {listed(variant.places)}"
        lines += labelled("places", text, width)
    if variant.nonfinite_origin:
        origin = variant.nonfinite_origin
        lines += labelled("NaN or Inf", f"first made by {origin.op}, at {origin.site}", width, "bold red")
    if variant.traced_equal is False:
        lines += labelled("trace", _traced(variant), width, "yellow")
    additivity = [site.additivity for site in variant.sites if site.additivity is not None]
    if additivity:
        text = f"the three terms add up to within {max(additivity):.3g} ulp of float64 at every site"
        lines += labelled("check", text, width)
    if variant.timings:
        lines += labelled("seconds", _timings(variant.timings), width)
    lines += labelled("files", variant.directory or "", width)
    return lines


def _failure(error: Failure) -> str:
    said = error.message.splitlines()
    shown = said[:_MESSAGE_LINES]
    if len(said) > len(shown):
        shown.append(f"… {len(said) - len(shown)} more lines")
    if error.location:
        shown.append(f"at {error.location}")
    return "\n".join([f"{error.kind}: {shown[0]}" if said else error.kind, *shown[1 if said else 0 :]])


def _constant(constant: Constant) -> str:
    beyond = ", beyond half an ulp" if constant.beyond_half_ulp else ""
    values = f"{constant.source!r} stored as {constant.stored!r}"
    more = f" and {len(constant.ops) - 1} more" if len(constant.ops) > 1 else ""
    return f"{constant.op}{more}: {values} (rel {number(constant.rel)}{beyond})"


def _coverage(coverage: Coverage) -> str:
    states = {
        "verified": coverage.verified,
        "moved": coverage.moved,
        "differs": coverage.differs,
        "ambiguous": coverage.ambiguous,
        "unmatched": coverage.unmatched,
        "uncovered": coverage.uncovered,
        "tainted": coverage.tainted,
        "without a bound": coverage.unbounded,
    }
    # What is rare is left out when there is none; the others are named.
    rare = ("moved", "ambiguous", "without a bound")
    shown = [f"{n} {state}" for state, n in states.items() if n or state not in rare]
    return f"{coverage.sites}: " + ", ".join(shown)


def _split(split: Split) -> str:
    semantic = split.semantic
    parts = {
        "execution": split.execution_max_abs,
        "pass semantics": semantic.pass_,
        "lowering semantics": semantic.lowering,
        "of which constants": semantic.constant,
    }
    return ", ".join(f"{name} {number(value)}" for name, value in parts.items() if value is not None)


def _timings(timings: Timings) -> str:
    parts = {
        "compile": timings.compile_s,
        "run": timings.run_s,
        "traced": timings.traced_s,
        "total": timings.total_s,
    }
    return ", ".join(f"{name} {value:.1f}" for name, value in parts.items() if value is not None)


def _semantic(variant: Variant, floor: float, width: int, top: int) -> list[Text]:
    def counts(site: Site) -> bool:
        # A constant is said by name, above; without a value of the source's to match, a difference is no error.
        if site.constant or site.match == "unmatched":
            return False
        return _size(site.semantic) > 0 and (site.match == "differs" or _relative(site.semantic) > floor)

    if any(counts(site) for site in variant.sites):
        return _worst("semantic", variant.sites, counts, width, top)
    compared = sum(site.match in ("verified", "ambiguous") for site in variant.sites)
    which = "all {} verified sites agree" if compared > 1 else "the {} verified site agrees"
    text = f"none: evaluated exactly, {which.format(compared)} with the reference to {floor:g}"
    if not compared:
        text = "not known: no site was verified against the reference"
    tainted = sum(site.tainted for site in variant.sites)
    if tainted:
        text += f"; tainted sites, which prove nothing: {tainted}"
    return [Text(), *labelled("semantic", text, width)]


def _size(term: Term | None) -> float:
    return (term.max_abs or 0.0) if term else 0.0


def _relative(term: Term | None) -> float:
    """Relative size of a term; without a relative norm (the reference is 0) any size counts."""
    if term is None:
        return 0.0
    return (term.max_abs or 0.0) if term.rel_l2 is None else term.rel_l2


def _worst(
    key: str, sites: Sequence[Site], counts: Callable[[Site], bool], width: int, top: int
) -> list[Text]:
    """The ``top`` sites that count, largest max abs of the term ``key`` first."""
    chosen = sorted((s for s in sites if counts(s)), key=lambda s: _size(getattr(s, key)), reverse=True)
    if not chosen:
        return [Text(), *labelled(key, "no such error at any site", width)]
    shown = chosen[:top]
    of = f" ({len(shown)} of {len(chosen)})" if len(chosen) > len(shown) else ""
    lines = [Text(), Text(f"  worst by {key} error, max abs{of}", style="bold")]
    site, kind, match = Column("site"), Column("tensor", shrinks=True), Column("match")
    ops, module = Column("ops", shrinks=True), Column("module", shrinks=True)
    shown_terms = ("inherited", "introduced", "rounding", "codegen") if key == "introduced" else _SEMANTIC
    terms = {name: Column(name, right=True) for name in shown_terms}
    bound = [Column("of bound", right=True)] if key == "introduced" else []
    for s in shown:
        site.add(s.id)
        kind.add(tensor_type(s.shape, s.dtype))
        ops.add(op_names(s.op, s.ops))
        module.add(s.module)
        style = "yellow" if s.tainted else "bold red" if s.match == "differs" else ""
        match.add(s.match + (" ~" if s.tainted else ""), style)
        for name, column in terms.items():
            term = getattr(s, name)
            column.add(number(term.max_abs if term else None), "bold" if name == key else "")
        for column in bound:
            guilty = s.code in ("suspect", "proven")
            column.add(bound_share(s.code, s.bound_ratio), "bold red" if guilty else "")
    if (
        width >= _ONE_LINE
        or table_width([site, ops, module, kind, *terms.values(), *bound, match]) <= width - 2
    ):
        head, rows = table([site, ops, module, kind, *terms.values(), *bound, match], width, indent=2)
        lines += [head, *rows]
    else:
        head, rows = table([site, kind, *terms.values(), *bound, match], width, indent=2)
        _, names = table([ops, module], width, indent=4)
        lines.append(head)
        lines += [line for pair in zip(rows, names, strict=True) for line in pair]
    if any(s.tainted for s in shown):
        lines.append(Text("  ~ tainted: downstream of an uncovered site", style="yellow"))
    return lines


def _traced(variant: Variant) -> str:
    repeats = variant.repeats
    if repeats is None:
        return "the traced output differs from the untraced one"
    away, apart = ("a NaN or Inf" if gap is None else number(gap) for gap in (repeats.traced, repeats.spread))
    return f"untraced runs differ by {apart} ({repeats.runs} of them); the traced one is {away} away from the nearest"
