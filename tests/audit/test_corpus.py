"""The corpus: every program is MLIR, and means what its name says where that can be told by hand."""

from __future__ import annotations

import pytest
import torch
from iree.compiler import ir

from numtrace.audit.corpus import corpus
from numtrace.evaluate.machine import Machine
from numtrace.evaluate.program import Program
from numtrace.worker.audit import drawn_inputs, normal_form


@pytest.fixture(scope="module")
def context() -> ir.Context:
    return ir.Context()


def test_every_program_parses(context):
    for program in corpus():
        assert ir.Module.parse(program.text, context).operation.verify(), program.name


def evaluated(name: str) -> tuple[list[torch.Tensor], torch.Tensor]:
    program = next(one for one in corpus() if one.name == name)
    parsed = Program.parse(program.text)
    inputs = drawn_inputs(parsed, program.data)
    return inputs, Machine(parsed).run(parsed.functions["main"].regions[0], inputs)[0]


@pytest.mark.parametrize(
    ("name", "stride", "dilation", "filter_layout"),
    [
        ("conv_2d_nchw_fchw.strided_dilated", 2, 2, (0, 1, 2, 3)),
        ("generic_nchw_hwcf_nfhw.strided_dilated", 2, 2, (3, 2, 0, 1)),
        ("generic_nchw_chwf_nfhw.dilated", 1, 2, (3, 0, 1, 2)),
    ],
)
def test_convolutions_are_torchs(name, stride, dilation, filter_layout):
    (image, weights, start), result = evaluated(name)
    expected = torch.nn.functional.conv2d(
        image.double(), weights.double().permute(filter_layout), stride=stride, dilation=dilation
    )
    assert torch.equal(result, expected + start.double())


def test_whole_numbers_without_zero():
    (a, b, start), result = evaluated("matmul.transposed_b.started")
    assert set(a.unique().tolist()) <= {*range(-8, 0), *range(1, 9)}
    assert torch.equal(result, a.double() @ b.double().T + start.double())


def test_a_dynamic_dimension_gets_a_size():
    (a, _, _), result = evaluated("matmul.dynamic")
    assert a.shape == (5, 7) and result.shape == (5, 6)


def test_where_constants_stand_is_no_difference(context):
    text = """
    util.func public @main(%x: f32) -> f32 {{
      {}
      %a = arith.addf %x, %c : f32
      {}
      %b = arith.mulf %a, %d : f32
      util.return %b : f32
    }}"""
    one, other, same = "arith.constant 2.0 : f32", "arith.constant 3.0 : f32", "arith.constant 2.0 : f32"
    forms = [
        normal_form(ir.Module.parse(text.format(first, second), context))
        for first, second in (
            (f"%c = {one}", f"%d = {other}"),
            (f"%d = {other}\n%c = {one}", ""),
            (f"%c = {one}", f"%d = {same}"),
        )
    ]
    assert forms[0] == forms[1] != forms[2]
