"""What the audit says of IREE's passes, each found fault against values that do not come from numtrace's evaluator."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest
import torch

from numtrace.audit.audit import Auditor, audit, exit_code
from numtrace.audit.corpus import corpus
from numtrace.audit.document import Audit, Finding, Refused, load, worse
from numtrace.audit.program import Program
from numtrace.evaluate.program import Program as Evaluated
from numtrace.report.progress import Progress
from numtrace.worker.audit import drawn_inputs

WINOGRAD = "iree-linalg-ext-convert-conv2d-to-winograd{replace-all-convs=true}"
IM2COL = "iree-linalg-ext-convert-conv-to-im2col-op"
TRANSPOSE = "iree-preprocessing-transpose-matmul-pass"


def program(name: str) -> Program:
    return next(one for one in corpus() if one.name == name)


def inputs(name: str) -> list[torch.Tensor]:
    """What the program is run with."""
    one = program(name)
    return drawn_inputs(Evaluated.parse(one.text), one.data)


@pytest.fixture(scope="module")
def document(tmp_path_factory) -> Audit:
    names = (
        "conv_2d_nchw_fchw.started", "conv_2d_nchw_fchw.from_zero", "conv_2d_nchw_fchw.strided",
        "generic_nchw_hwcf_nfhw.started", "matmul.unsigned", "matmul.i8", "attention.transposed_result",
    )  # fmt: skip
    patterns = [
        WINOGRAD.partition("{")[0],
        IM2COL,
        TRANSPOSE,
        "*-online-attention",
        "*-transform-interpreter",
    ]
    folder = tmp_path_factory.mktemp("audit")
    with Progress() as progress:
        made = audit(folder, progress, patterns=patterns, programs=[program(name) for name in names])
    assert load(folder / "audit.json") == made
    for row in made.passes:
        for finding in row.findings:
            assert finding.outcome != "changes" or (folder / finding.after).read_text().startswith(
                ("#map", "module")
            )
    return made


def outcomes(document: Audit, name: str) -> dict[str, Finding]:
    (row,) = (row for row in document.passes if row.name == name)
    return {finding.program: finding for finding in row.findings}


def counts(document: Audit, name: str) -> dict[str, int]:
    (row,) = (row for row in document.passes if row.name == name)
    return {outcome: count for outcome, count in row.counts.items() if count}


def test_winograd_leaves_out_what_the_convolution_starts_from(document):
    """So the result is off by the start itself, and by nothing where that is zero."""
    _, _, start = inputs("conv_2d_nchw_fchw.started")
    found = outcomes(document, WINOGRAD)
    assert list(found) == ["conv_2d_nchw_fchw.started"]
    assert found["conv_2d_nchw_fchw.started"].max_abs == pytest.approx(float(start.abs().max()), rel=1e-9)
    assert found["conv_2d_nchw_fchw.started"].confirmed
    assert counts(document, WINOGRAD) == {"changes": 1, "keeps": 1, "nothing": 5}


def test_the_op_of_im2col_reads_a_filter_of_another_layout_in_the_wrong_order(document):
    """Of an HWCF filter with an NCHW image, the weight of row y, column x and channel c is the one of x, c and y."""
    name = "generic_nchw_hwcf_nfhw.started"
    image, weights, start = (value.double() for value in inputs(name))
    right = torch.nn.functional.conv2d(image, weights.permute(3, 2, 0, 1)) + start
    wrong = torch.nn.functional.conv2d(image, weights.permute(3, 1, 2, 0)) + start
    found = outcomes(document, IM2COL)
    assert list(found) == [name]
    assert found[name].max_abs == pytest.approx(float((right - wrong).abs().max()), rel=1e-12)
    assert found[name].confirmed
    assert counts(document, IM2COL) == {"changes": 1, "keeps": 3, "nothing": 3}


def test_transposing_a_matmul_forgets_that_its_operands_are_unsigned(document):
    a, b = (value.numpy() for value in inputs("matmul.unsigned"))
    right = a.view(np.uint8).astype(np.int64) @ b.view(np.uint8).astype(np.int64)
    found = outcomes(document, TRANSPOSE)["matmul.unsigned"]
    signed = a.astype(np.int64) @ b.astype(np.int64)
    assert found.max_abs == np.abs(right - signed).max()
    assert found.confirmed
    assert list(outcomes(document, TRANSPOSE)) == ["matmul.unsigned"]


def test_a_spelling_that_does_the_same_is_told(document):
    same = {row.name: row.same_as for row in document.passes if row.name.startswith(TRANSPOSE)}
    assert same[TRANSPOSE] == ""
    assert TRANSPOSE in same.values()


def test_a_pass_that_fails_everywhere_lacks_something(document):
    refused = {one.name: one.reason for one in document.refused}
    assert "fails at every program" in refused["iree-preprocessing-transform-interpreter"]


def test_attention_in_parts_means_the_same(document):
    assert counts(document, "iree-linalg-ext-convert-attention-to-online-attention") == {
        "keeps": 1,
        "nothing": 6,
    }


def test_it_exits_with_1_but_not_where_all_was_known(document):
    assert exit_code(document) == 1
    assert worse(document, document) == []
    assert exit_code(document, []) == 0


def test_a_pass_that_can_no_longer_be_run_is_worse(document):
    lost = document.passes[0].name
    refused = [*document.refused, Refused(name=lost, reason="it fails at every program: no")]
    later = msgspec.structs.replace(document, passes=document.passes[1:], refused=refused)
    ((name, finding),) = worse(later, document)
    assert (name, finding.outcome, finding.reason) == (lost, "fails", "it fails at every program: no")
    assert worse(later, later) == []
    assert exit_code(later, [finding]) == 3


def test_bits_are_of_both_kinds():
    text = "func.func @main(%a: tensor<64xi1>) -> tensor<64xi1> { return %a : tensor<64xi1> }"
    (bits,) = drawn_inputs(Evaluated.parse(text), "whole")
    assert 16 < int(bits.sum()) < 48


def test_a_pass_that_takes_the_worker_down_costs_one_program_at_a_time(tmp_path: Path):
    """Nested on a function, this pass aborts; the one after it runs all the same."""
    crashing = "builtin.module(util.func(iree-global-optimization-hoist-constant-expressions))"
    fine = "builtin.module(util.func(iree-global-opt-generalize-linalg-named-ops{enable-generalize-matmul=true}))"
    with Progress() as progress:
        auditor = Auditor(tmp_path, progress, None, ())
        auditor.run([program("matmul.i8"), program("softmax.4x7_1")], [crashing, fine])
    told = {pair: event["outcome"] for pair, event in auditor.told.items()}
    assert told == {(0, 0): "crashes", (0, 1): "keeps", (1, 0): "crashes", (1, 1): "nothing"}
    assert "SIGABRT" in auditor.told[0, 0]["reason"]
