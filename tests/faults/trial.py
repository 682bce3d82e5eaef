"""One program through numtrace's own job, and what it says of each piece of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from programs import FLAGS, Bench, Ran

from faults.piece import Piece, program
from faults.planting import NotPlanted, as_code, as_pass, compiled_to, edited
from numtrace.attribute.findings import EXPLAINED
from numtrace.attribute.verdict import judge


@dataclass(frozen=True)
class Said:
    """What numtrace says: the verdict, the pieces whose code it accuses and how sure, those that it finds changed.

    ``others`` is what it says of ops that are in no piece, or in more than one.
    """

    verdict: str
    reason: str
    accused: dict[int, str]
    changed: frozenset[int]
    others: tuple[str, ...]
    record: dict[str, Any]
    sites: list[dict[str, Any]]


def by_code(pieces: Sequence[Piece], planted: Sequence[int], folder: Path, flags: Sequence[str] = ()) -> Said:
    """The program as it is, its dispatches of the pieces ``planted`` run with wrong code."""
    substituted = as_code(pieces, planted, folder / "planting") if planted else []
    bench, spans = _bench(pieces, folder, [*flags, *substituted])
    return _said(bench, bench.run(), None, spans)


def by_pass(pieces: Sequence[Piece], planted: Sequence[int], folder: Path) -> Said:
    """The program with a pass that changes the pieces ``planted``."""
    bench, spans = _bench(pieces, folder, [])
    baseline = bench.run()
    ran = bench.run(as_pass(pieces, planted, folder / "planting"))
    replaced = _within(ran.record["changed"], bench.table(), spans)
    if missed := set(planted) - replaced:
        raise NotPlanted(f"the pass did not find {', '.join(str(pieces[n]) for n in missed)}")
    return _said(bench, ran, baseline, spans)


def by_stage(pieces: Sequence[Piece], planted: Sequence[int], stage: str, folder: Path) -> Said:
    """The program, wrong in the pieces ``planted`` from ``stage`` of IREE's own pipeline on: that file is exchanged."""
    wrong, _ = _bench(pieces, folder / "wrong", [], planted)
    bench, spans = _bench(pieces, folder / "right", [])
    if len(wrong.table()) != len(bench.table()):
        raise NotPlanted("the wrong program has another number of ops")
    exchanged = compiled_to(stage, wrong.folder / "model" / "input.mlir", folder / "planting")
    with edited(stage, lambda _: exchanged):
        ran = bench.run()
    return _said(bench, ran, None, spans)


def _bench(
    pieces: Sequence[Piece], folder: Path, flags: Sequence[str], planted: Sequence[int] = ()
) -> tuple[Bench, list[range]]:
    text, spans = program(pieces, planted)
    folder.mkdir(parents=True, exist_ok=True)
    inputs = []
    for piece in pieces:
        for _, type_, array in piece.inputs:
            path = folder / f"input{len(inputs)}.bin"
            array.tofile(path)
            inputs.append(f"{type_.removeprefix('tensor<').removesuffix('>')}=@{path}")
    bench = Bench(folder / "run", text, inputs=inputs, flags=[*FLAGS, *flags])
    return bench, spans


def _said(bench: Bench, ran: Ran, baseline: Ran | None, spans: Sequence[range]) -> Said:
    table = bench.table()
    amended = ran.record["amended"]
    sites = [site | {"match": "unmatched"} if site["id"] in amended else site for site in ran.sites]
    ran.record["differing"] = [site for site in sites if site["match"] == "differs"]
    judgement = judge(
        ran.record, sites, is_baseline=baseline is None, baseline=baseline and baseline.record, tolerant=False
    )
    owners = {site["id"]: _owners(site, table, spans) for site in sites}
    accused: dict[int, str] = {}
    others = []
    for finding in ran.record["findings"]:
        if finding["certainty"] == EXPLAINED:
            continue
        whose = set().union(*(owners[site] for site in finding["sites"]))
        if len(whose) != 1:
            others.append(f"{finding['op']} is accused, of pieces {sorted(whose)}")
        for n in whose:
            accused[n] = (
                "proven" if "proven" in (accused.get(n), finding["certainty"]) else finding["certainty"]
            )
    changed = frozenset(n for site in ran.record["differing"] for n in owners[site["id"]])
    others += [f"{site['op']} differs" for site in ran.record["differing"] if len(owners[site["id"]]) != 1]
    return Said(judgement.verdict, judgement.reason, accused, changed, tuple(others), ran.record, sites)


def _owners(site: dict[str, Any], table: list[dict[str, Any]], spans: Sequence[range]) -> set[int]:
    """The pieces that a site's ops are in."""
    return _within(site["stamps"], table, spans)


def _within(stamps: Sequence[int], table: list[dict[str, Any]], spans: Sequence[range]) -> set[int]:
    lines = [int(table[stamp]["location"].split(":")[1]) for stamp in stamps]
    return {n for n, span in enumerate(spans) for line in lines if line in span}
