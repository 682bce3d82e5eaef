"""Stages of a Fourier transform: all of them together are torch's."""

import pytest
import torch
from judged import Compiled

from numtrace.errors import UndefinedResult

REVERSED = [0, 4, 2, 6, 1, 5, 3, 7]


def stages(number: int, size: int, coefficients: bool, last: int | None = None, scale: float = 1.0) -> str:
    """The first stages, up to ``last``, of ``number`` rows of ``size`` elements; ``scale`` is of the coefficients."""
    rows = f"tensor<{number}x{size}xf32>"
    body, re, im = [], "%re", "%im"
    for stage in range(1, (last or size.bit_length() - 1) + 1):
        half = 2 ** (stage - 1)
        ins, types = [f"%s{stage}"], ["index"]
        body.append(f"%s{stage} = arith.constant {stage} : index")
        if coefficients:
            roots = scale * torch.exp(-1j * torch.pi / half * torch.arange(half))
            for name, part in (("c", roots.real), ("d", roots.imag)):
                elements = ", ".join(f"{value:.9e}" for value in part.tolist())
                body.append(f"%{name}{stage} = arith.constant dense<[{elements}]> : tensor<{half}xf32>")
                ins.append(f"%{name}{stage}")
                types.append(f"tensor<{half}xf32>")
        body.append(
            f"%r{stage}:2 = iree_linalg_ext.fft ins({', '.join(ins)} : {', '.join(types)}) "
            f"outs({re}, {im} : {rows}, {rows}) : {rows}, {rows}"
        )
        re, im = f"%r{stage}#0", f"%r{stage}#1"
    lines = "\n  ".join(body)
    return f"""
    func.func @main(%re: {rows}, %im: {rows}) -> ({rows}, {rows}) {{
      {lines}
      return {re}, {im} : {rows}, {rows}
    }}
    """


@pytest.mark.parametrize("coefficients", [True, False])
def test_all_stages_are_the_transform(evaluate, coefficients):
    """Of what stands in the order of reversed bits; that the coefficients are in f32 is nothing of its mathematics."""
    x = torch.randn(3, 8, dtype=torch.complex128, generator=torch.Generator().manual_seed(0))
    given = x[:, REVERSED]
    re, im = evaluate(stages(3, 8, coefficients), given.real.contiguous(), given.imag.contiguous())
    expected = torch.fft.fft(x)
    assert torch.allclose(re, expected.real, rtol=0, atol=1e-14)
    assert torch.allclose(im, expected.imag, rtol=0, atol=1e-14)


def test_other_coefficients_are_taken_as_they_are(evaluate):
    """(a, b) to a + 2b and a - 2b."""
    re, im = evaluate(stages(1, 2, True, scale=2.0), torch.tensor([[3.0, 5.0]]), torch.tensor([[0.0, 1.0]]))
    assert re.tolist() == [[13.0, -7.0]]
    assert im.tolist() == [[2.0, -2.0]]


def test_a_stage_that_does_not_fit_is_undefined(evaluate):
    with pytest.raises(UndefinedResult, match="stage 3 of 4 elements"):
        evaluate(stages(1, 4, True, last=3), torch.zeros(1, 4), torch.zeros(1, 4))


def test_what_is_compiled_is_within_its_bound(tmp_path):
    """And the bound is no wild one: what a fault of one part in a thousand makes is beyond it."""
    x, y = (torch.randn(9, 16, generator=torch.Generator().manual_seed(seed)) for seed in (1, 2))
    sites = Compiled(stages(9, 16, True), tmp_path).run(x, y)
    assert len(sites) >= 2
    for site in sites:
        assert site.near.ratio <= 1
        wrong = site.made * (1 + 1e-3)
        assert type(site)(site.program, site.op, site.operands, wrong, site.index).near.ratio > 1
    assert sites[-1].near.ratio > 0
