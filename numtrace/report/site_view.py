"""One site of one variant, with all that the document knows about it."""

from __future__ import annotations

from rich.text import Text

from numtrace.dumps.schema import Site, Variant
from numtrace.report.figures import bound_share, count, decimal, index, number, op_names, tensor_type, ulps
from numtrace.report.layout import Column, heading, labelled, table

_TERMS = ("total", "inherited", "introduced", "semantic", "rounding", "codegen")


def site_view(variant: Variant, site: Site, width: int) -> list[Text]:
    """Identity, match, every term with where it is largest, and the files to look at next."""
    match = site.match + (", tainted: downstream of an uncovered site" if site.tainted else "")
    lines = [heading(f"{site.id} of {variant.name}", width)]
    for label, text in (
        ("ops", op_names(site.op, site.ops)),
        ("module", site.module),
        ("location", site.location),
        ("dispatch", site.dispatch),
        ("tensor", tensor_type(site.shape, site.dtype)),
        ("match", match),
        ("layout", site.layout or ""),
        ("reason", site.reason or ""),
    ):
        lines += labelled(label, text, width)
    if site.nonfinite_first:
        lines += labelled("NaN or Inf", "first made here", width, "bold red")
    if site.near_ties:
        lines += labelled(
            "near ties",
            f"{site.near_ties}, decided by the rounding of float64: the source's value was taken"
            + (f"; {site.unsure} by nothing else than noise" if site.unsure else ""),
            width,
        )
    lines += [Text(), *_terms(site, width), Text()]
    if site.additivity is not None:
        added = f"the three terms add up to within {site.additivity:.3g} ulp of float64"
        lines += labelled("check", added, width)
    if site.code is not None:
        lines += labelled(
            "code", _code(site), width, "" if site.code in ("within", "unbounded") else "bold red"
        )
    for stage, file in variant.files.items():
        lines += labelled("file", f"{stage}: {file}", width)
    for file in site.kept:
        lines += labelled("kept", file, width)
    return lines


def _code(site: Site) -> str:
    if site.code == "unbounded":
        return f"no error bound: {site.unbounded_reason}"
    text = f"{bound_share(site.code, site.bound_ratio)} of the probabilistic bound: {site.code}"
    if site.code != "within":
        text += (
            f"; {site.over_bound} elements beyond it, the worst at {index(site.over_at)}; "
            f"{bound_share(site.code, site.proven_ratio)} of the deterministic one"
        )
    if site.free:
        text += f"; {site.free} elements that it says nothing of"
    return text


def _terms(site: Site, width: int) -> list[Text]:
    columns = [Column("term"), Column("max abs", right=True), Column("at", shrinks=True)]
    columns += [Column(t, right=True) for t in ("mean abs", "rel L2", "cosine", "max ulp", "NaN", "Inf")]
    for name in _TERMS:
        term = getattr(site, name)
        if not term:  # None: not computed; UNSET: this version does not know it
            continue
        cells = (
            name,
            number(term.max_abs),
            index(term.at),
            number(term.mean_abs),
            number(term.rel_l2),
            decimal(term.cosine, 6),
            ulps(term.max_ulp, site.dtype),
            count(term.nan),
            count(term.inf),
        )
        for column, cell in zip(columns, cells, strict=True):
            column.add(cell)
    if not columns[0].cells:
        return labelled("terms", "none were computed for this site", width)
    head, rows = table(columns, width, indent=2)
    return [head, *rows]
