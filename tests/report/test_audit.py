"""The table of an audit, narrow and wide."""

from __future__ import annotations

from pathlib import Path

import pytest

from numtrace.audit.document import OUTCOMES, Audit, Audited, Finding, Refused, encode, load, worse
from numtrace.dumps.schema import Tool
from numtrace.errors import UsageError
from numtrace.report.audit import audit_lines, worse_lines

WINOGRAD = "iree-linalg-ext-convert-conv2d-to-winograd"


def row(name: str, *findings: Finding, same_as: str = "", **counts: int) -> Audited:
    return Audited(
        name=name, pipeline=f"builtin.module(util.func({name}))", findings=list(findings), same_as=same_as,
        counts={outcome: counts.get(outcome, 0) for outcome in OUTCOMES},
    )  # fmt: skip


CHANGED = Finding(
    program="conv_2d_nchw_fchw.started", outcome="changes", max_abs=8.0, rel=0.0186, confirmed=True, ran=8.0,
    witness="compiled, the two differ by 8", before="changes/w/a.before.mlir", after="changes/w/a.after.mlir",
)  # fmt: skip
FAILED = [
    Finding(
        program=f"matmul.{n}", outcome="fails", reason=f"specified type 'tensor<8x{n}xf32>' does not match"
    )
    for n in range(6)
]


@pytest.fixture
def document() -> Audit:
    return Audit(
        tool=Tool(name="numtrace", version="0.1.0"), iree_compiler="3.13.0", flags=[], programs=7, seconds=61.0,
        passes=[
            row("iree-global-opt-idle", nothing=7),
            row(WINOGRAD, nothing=7),
            row(f"{WINOGRAD}{{replace-all-convs=true}}", CHANGED, changes=1, keeps=2, nothing=4),
            row("iree-preprocessing-pad", *FAILED, fails=6, nothing=1),
            row("iree-preprocessing-pad{pad-size=4}", *FAILED, same_as="iree-preprocessing-pad", fails=6, nothing=1),
        ],
        refused=[Refused(name="iree-preprocessing-interpreter", reason="it fails at every program: no file")],
    )  # fmt: skip


def test_wide(document):
    text = "\n".join(line.plain for line in audit_lines(document, Path("out"), 120))
    assert (
        text
        == f"""\
numtrace 0.1.0 · audit of the preprocessing passes
  versions   iree 3.13.0
  passes     3, in 5 spellings
  programs   7, in 1 min 01 s

pass                                                  changes  crashes  fails  untold  keeps  nothing
iree-linalg-ext-…
  convert-conv2d-to-winograd{{replace-all-convs=true}}        1        ·      ·       ·      2        4
iree-preprocessing-…
  pad                                                       ·        ·      6       ·      ·        1

── {WINOGRAD}{{replace-all-convs=true}} ──────────────────────────────────────────────────
  changes                     max abs  relative  compiled and run
  conv_2d_nchw_fchw.started  8.00e+00  1.86e-02          8.00e+00
  before     out/changes/w/a.before.mlir
  after      out/changes/w/a.after.mlir

── iree-preprocessing-pad ──────────────────────────────────────────────────────────────────────────────────────────────
  the same   {{pad-size=4}}
  fails      matmul.0, matmul.1, matmul.2, matmul.3 and 2 more: specified type 'tensor<8x0xf32>' does not match

do nothing to any of these programs: iree-global-opt-idle
note: iree-preprocessing-interpreter is not run: it fails at every program: no file

changes the mathematics: {WINOGRAD} (once)
fails to compile: iree-preprocessing-pad (6 times)"""
    )


def test_narrow_lines_fit(document):
    assert max(len(line.plain) for line in audit_lines(document, Path("out"), 80)) <= 80


def test_what_is_worse_is_named(document):
    earlier = Audit(
        tool=document.tool, iree_compiler="3.12.0", flags=[], programs=7, seconds=1.0,
        passes=[document.passes[3]], refused=[],
    )  # fmt: skip
    found = worse(document, earlier)
    lines = [line.plain for line in worse_lines(found, 200)]
    assert lines == [
        "worse than in the earlier audit: 1",
        f"  {WINOGRAD}{{replace-all-convs=true}} · conv_2d_nchw_fchw.started: changes the mathematics, by 8.00e+00",
    ]
    assert worse(document, document) == []


def test_the_document_is_read_again(document, tmp_path):
    path = tmp_path / "audit.json"
    path.write_bytes(encode(document))
    assert load(path) == document
    path.write_text("{}")
    with pytest.raises(UsageError, match=r"not a document of numtrace passes --audit|reads numtrace.audit"):
        load(path)
