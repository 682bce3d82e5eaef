"""Accepting a run's findings, and telling which accepted ones are gone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from numtrace.acceptance import accept, notices, vanished
from numtrace.dumps.known import Entry, KnownFile, Size, read
from numtrace.dumps.schema import (
    Environment,
    Finding,
    Model,
    Reference,
    Report,
    SemanticSplit,
    Site,
    Split,
    Target,
    Tool,
    Variant,
)
from numtrace.errors import OutputError, UsageError

_ENVIRONMENT = Environment(
    iree_compiler="3.13.0", iree_runtime="3.13.0", torch="2", cpu="c", flush_denormals=None, threads=None
)


def finding(op: str, max_abs: float = 0.5, **changes: Any) -> Finding:
    given = {"kind": "pass-semantics", "certainty": "proven", "op": op, "text": "", "max_abs": max_abs}
    return Finding(**given | changes)


def site(op: str, **changes: Any) -> Site:
    given = {"id": f"main/{op}", "dispatch": "d", "op": op, "ops": [op], "module": "", "location": ""}
    return Site(**given | {"dtype": "f32", "shape": [2], "match": "verified"} | changes)


def variant(passes: str, *findings: Finding, **changes: Any) -> Variant:
    given: dict[str, Any] = {
        "name": passes or "baseline", "passes": passes.split("+") if passes else [], "pipeline": None, "flags": [],
        "status": "ran", "split": Split(semantic=SemanticSplit(max_abs=0.0)), "sites": [site("conv")],
    }  # fmt: skip
    return Variant(findings=list(findings), **given | changes)


def report(*variants: Variant, model: str = "/models/net.mlir") -> Report:
    return Report(
        tool=Tool(name="numtrace", version="0"), environment=_ENVIRONMENT,
        model=Model(path=model, sha256="", function="main", inputs=[]),
        target=Target(backend="llvm-cpu", device="local-task"), reference=Reference(kind="self", dtype="f64"),
        tolerance=None, notices=[], planned=1, variants=list(variants),
    )  # fmt: skip


def entry(op: str = "conv", passes: str = "winograd", **changes: Any) -> Entry:
    size = Size(max_abs=0.5, rel_l2=None)
    given = {"kind": "pass-semantics", "op": op, "passes": passes.split("+") if passes else [], "size": size}
    return Entry(**given | {"model": "net.mlir"} | changes)


def test_what_is_written(tmp_path: Path) -> None:
    path = tmp_path / "known.json"
    explained = finding("mean", kind="codegen", certainty="explained")
    run = report(variant(""), variant("winograd", finding("conv", rel_l2=0.25, module="net"), explained))
    assert accept(run, path, note="issue 7").sentence(path) == f"{path}: 1 known finding (1 new)"
    assert read(path).entries == [
        Entry(
            kind="pass-semantics", op="conv", module="net", passes=["winograd"], certainty="proven",
            size=Size(max_abs=0.5, rel_l2=0.25), note="issue 7", model="net.mlir", iree="3.13.0",
        )
    ]  # fmt: skip


def test_the_same_with_more_passes_is_no_entry_a_larger_one_is(tmp_path: Path) -> None:
    path = tmp_path / "known.json"
    both = variant("demote-bf16+winograd", finding("conv"), finding("conv_1", 2.0))
    accept(report(both, variant("winograd", finding("conv"), finding("conv_1"))), path)
    assert [(one.op, one.passes) for one in read(path).entries] == [
        ("conv", ["winograd"]),
        ("conv_1", ["winograd"]),
        ("conv_1", ["demote-bf16", "winograd"]),
    ]


def test_merging_keeps_what_is_there_and_its_notes(tmp_path: Path) -> None:
    path = tmp_path / "known.json"
    accept(report(variant("winograd", finding("conv"))), path, note="issue 7")
    larger = report(variant("winograd", finding("conv", 2.0), finding("conv_1")))
    said = accept(larger, path, note="issue 8").sentence(path)
    assert "2 known findings (1 new)" in said and "conv has grown, and was left as it was" in said
    assert [(one.size.max_abs, one.note) for one in read(path).entries] == [
        (0.5, "issue 7"),
        (0.5, "issue 8"),
    ]
    assert "(1 updated, 1 known before)" in accept(larger, path, update=True).sentence(path)
    assert [(one.size.max_abs, one.note) for one in read(path).entries] == [
        (2.0, "issue 7"),
        (0.5, "issue 8"),
    ]
    assert "(2 known before)" in accept(larger, path, update=True).sentence(path)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="/proc is where nobody can make a file")
def test_a_file_that_cannot_be_written_is_called_no_directory() -> None:
    with pytest.raises(OutputError, match=r"cannot write /proc/x\.json: .*: give another --out$"):
        accept(report(variant("winograd", finding("conv"))), Path("/proc/x.json"))


def test_one_variant_and_none(tmp_path: Path) -> None:
    path = tmp_path / "known.json"
    run = report(variant(""), variant("winograd", finding("conv")), variant("other", finding("conv_1")))
    with pytest.raises(UsageError, match="no variant 'winograt' in this run; there are: baseline"):
        accept(run, path, variant="winograt")
    assert not path.exists()
    assert "0 known findings; the run has none to accept" in accept(run, path, variant="baseline").sentence(
        path
    )
    assert read(path).entries == []
    accept(run, path, variant="other")
    assert [one.op for one in read(path).entries] == ["conv_1"]


def test_a_file_that_is_no_list_of_known_findings_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "notes.json"
    path.write_text("{}")
    with pytest.raises(UsageError, match="is no file of known findings"):
        accept(report(variant("winograd", finding("conv"))), path)
    assert path.read_text() == "{}"


TAINTED = [site("conv", tainted=True)]


@pytest.mark.parametrize(
    ("given", "variants", "gone"),
    [
        (entry(), [variant("winograd", finding("conv"))], False),
        (entry(), [variant("winograd")], True),
        # grown is not gone
        (entry(), [variant("winograd", finding("conv", 9.0))], False),
        # its variant did not run
        (entry(), [variant("demote-bf16"), variant("demote-bf16+winograd")], False),
        (entry(), [variant("winograd", status="compile-failed", split=None)], False),
        (entry(), [variant("winograd", status="interrupted", split=None)], False),
        # it is still there with more passes
        (entry(), [variant("winograd"), variant("demote-bf16+winograd", finding("conv"))], False),
        # the pass changes nothing any more
        (entry(), [variant(""), variant("winograd", status="same-as", same_as="baseline", split=None)], True),
        (
            entry(passes="a+b"),
            [variant("a", finding("conv")), variant("a+b", status="same-as", same_as="a", split=None)],
            False,
        ),
        # it could not have been seen
        (entry(), [variant("winograd", sites=TAINTED)], False),
        (entry(), [variant("winograd", sites=[site("conv", match="uncovered")])], False),
        (entry(), [variant("winograd", sites=[site("conv"), site("add", tainted=True)])], True),
        (entry("(outputs)"), [variant("winograd", sites=TAINTED)], False),
        (entry(kind="codegen"), [variant("winograd", sites=[site("conv", code="unbounded")])], False),
        (entry(), [variant("winograd", sites=[site("conv", code="unbounded")])], True),
        # another model's
        (entry(model="other.mlir"), [variant("winograd")], False),
    ],
)
def test_what_is_gone(given: Entry, variants: list[Variant], gone: bool) -> None:
    found = vanished(variants, KnownFile(Path("k.json"), [given]), "/elsewhere/net.mlir")
    assert found == ([given] if gone else [])


def test_how_it_is_said() -> None:
    path = Path("known.json")
    assert notices([entry()], path) == ["known finding conv of winograd is gone: remove it from known.json"]
    four = [entry(f"conv_{i}") for i in range(4)]
    assert notices([*four, entry("mm", "")], path) == [
        "4 known findings of winograd are gone (conv_0, conv_1, conv_2 and 1 more): remove them from known.json",
        "known finding mm of the baseline is gone: remove it from known.json",
    ]
