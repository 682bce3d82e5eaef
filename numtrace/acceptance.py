"""Accepting the findings of a run, and telling which accepted ones are gone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

import msgspec

from numtrace.attribute.findings import EXPLAINED, listed
from numtrace.attribute.known import FIGURES, recognise
from numtrace.dumps import known
from numtrace.dumps.known import Entry, KnownFile, Size
from numtrace.dumps.schema import Finding, Report, Site, Variant
from numtrace.errors import UsageError


@dataclass
class Accepted:
    """What :func:`accept` did, and the entries as they are now; the sets are of their places."""

    entries: list[Entry]
    new: set[int] = field(default_factory=set)
    kept: set[int] = field(default_factory=set)
    updated: set[int] = field(default_factory=set)
    #: Their findings are larger, and they were left as they were.
    outgrown: set[int] = field(default_factory=set)

    def add(self, entry: Entry) -> None:
        self.new.add(len(self.entries))
        self.entries.append(entry)

    def sentence(self, path: Path) -> str:
        """What to tell the user."""
        counts = {
            "new": self.new,
            "updated": self.updated,
            "known before": self.kept - self.new - self.updated,
        }
        said = ", ".join(f"{len(places)} {what}" for what, places in counts.items() if places)
        text = f"{path}: {len(self.entries)} known finding{'s' * (len(self.entries) != 1)}"
        text += f" ({said})" if said else "; the run has none to accept"
        if self.outgrown:
            names = listed([self.entries[place].op for place in sorted(self.outgrown)])
            text += f"; {names} has grown, and was left as it was: --update accepts the new size"
        return text


def accept(
    report: Report, path: Path, *, variant: str = "", note: str = "", update: bool = False
) -> Accepted:
    """Adds the findings of a run that count to the file ``path``; returns what was done.

    A finding that an entry holds already is not added again: not with more passes either. Entries keep their notes,
    and their sizes unless ``update``.

    Args:
        variant: only this variant's; all without.
        note: for new entries.

    Raises:
        UsageError: there is no such variant, or the file is there and is no file of known findings.
        OutputError: it cannot be written.
    """
    done = Accepted(known.read(path).entries if path.exists() else [])
    for one in sorted(_chosen(report, variant), key=lambda v: len(set(v.passes))):
        _accept(report, one, done, note, update)
    known.write(path, done.entries)
    return done


def _chosen(report: Report, name: str) -> list[Variant]:
    chosen = [variant for variant in report.variants if name in ("", variant.name)]
    if not chosen:
        there = ", ".join(variant.name for variant in report.variants) or "none"
        raise UsageError(f"no variant {name!r} in this run; there are: {there}")
    return chosen


def _accept(report: Report, variant: Variant, done: Accepted, note: str, update: bool) -> None:
    findings = plain(variant.findings)
    _, stands = recognise(findings, variant.passes, msgspec.to_builtins(done.entries))
    for index, finding in enumerate(findings):
        if finding["certainty"] == EXPLAINED:
            continue
        made = _entry(report, variant, finding, note)
        number = stands.get(index)
        if number is None:
            done.add(made)
            continue
        entry = done.entries[number]
        again, _ = recognise([finding], variant.passes, msgspec.to_builtins([entry]))
        own = set(entry.passes) == set(variant.passes)
        if update and own and (entry.size, entry.certainty) != (made.size, made.certainty):
            done.updated.add(number)
            done.entries[number] = msgspec.structs.replace(
                entry, size=made.size, certainty=made.certainty, model=made.model, iree=made.iree
            )
        elif not again[0].get("grown"):
            done.kept.add(number)
        elif own:
            done.outgrown.add(number)
        else:  # larger with more passes: a finding of theirs
            done.add(made)


def _entry(report: Report, variant: Variant, finding: dict[str, Any], note: str) -> Entry:
    before = finding["known"]
    return Entry(
        kind=finding["kind"],
        op=finding["op"],
        module=finding["module"],
        passes=sorted(set(variant.passes)),
        certainty=finding["certainty"],
        size=Size(**{key: finding[key] for key in FIGURES}),
        note=note or (before if isinstance(before, str) else ""),
        model=model_name(report.model.path),
        iree=report.environment.iree_compiler,
    )


def plain(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """Findings as :mod:`numtrace.attribute.known` takes them."""
    return [msgspec.to_builtins(finding) for finding in findings]


def model_name(path: str) -> str:
    """A model as a file of known findings names it: it may lie elsewhere on another machine."""
    return PurePath(path).name


def vanished(variants: Sequence[Variant], accepted: KnownFile, model: str) -> list[Entry]:
    """The entries of this model that no variant has, though the one with their passes ran.

    One that an evaluation could have missed is not said to be gone.
    """
    entries = accepted.plain()
    by_name = {variant.name: variant for variant in variants}
    found: set[int] = set()
    for variant in variants:
        program = by_name.get(variant.same_as or variant.name, variant)
        found |= set(recognise(plain(program.findings), variant.passes, entries)[1].values())
    gone = []
    for number, entry in enumerate(accepted.entries):
        if number in found or entry.model != model_name(model):
            continue
        ran = [v for v in variants if set(v.passes) == set(entry.passes) and v.status in ("ran", "same-as")]
        programs = [by_name.get(v.same_as or v.name, v) for v in ran]
        if programs and not any(_hidden(entry, program) for program in programs):
            gone.append(entry)
    return gone


def _hidden(entry: Entry, variant: Variant) -> bool:
    """Whether the finding could be there and not be seen."""
    if variant.status != "ran" or variant.split is None:
        return True
    there = [site for site in variant.sites if entry.op in (site.op, *site.ops)]
    return any(_unseen(entry, site) for site in there or variant.sites)


def _unseen(entry: Entry, site: Site) -> bool:
    unbounded = entry.kind == "codegen" and site.code == "unbounded" and entry.op in (site.op, *site.ops)
    return site.tainted or site.match == "uncovered" or unbounded


def notices(gone: Sequence[Entry], path: Path) -> list[str]:
    """What to say of accepted findings that are gone, by the passes that they were found with."""
    said = []
    groups: dict[tuple[str, ...], list[Entry]] = {}
    for entry in gone:
        groups.setdefault(tuple(entry.passes), []).append(entry)
    for passes, entries in groups.items():
        of = "+".join(passes) or "the baseline"
        names = listed([entry.op for entry in entries])
        if len(entries) == 1:
            said.append(f"known finding {names} of {of} is gone: remove it from {path}")
        else:
            said.append(f"{len(entries)} known findings of {of} are gone ({names}): remove them from {path}")
    return said
