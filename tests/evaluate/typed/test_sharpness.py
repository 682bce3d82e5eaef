"""Faults that must be caught, in really compiled code: operands silently narrowed to bf16, a running sum in f16.

``bench/sensitivity.py`` prints the table for every type and length.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from judged import Compiled, Judged
from kernels import convolution, matmul


@pytest.mark.parametrize("k", [64, 1152, 4608])
@pytest.mark.parametrize("element", ["f32", "f16"])
def test_operands_narrowed_to_bf16(tmp_path, k, element):
    """What the code makes of narrowed operands is what code that narrows them would make."""
    program = Compiled(matmul(16, k, 64, f"{element},{element},f32"), tmp_path)
    g = torch.Generator().manual_seed(k)
    a = torch.randn(16, k, generator=g).relu().to(torch.float16).to(getattr(torch, DTYPES[element]))
    b = (torch.randn(k, 64, generator=g) / k**0.5).to(a.dtype)
    (site,) = program.run(a, b)
    (narrow,) = program.run(a.bfloat16().to(a.dtype), b.bfloat16().to(b.dtype))
    near, far = site.typed(), site.typed(deterministic=True)
    assert site.against(near).ratio < 0.1
    fault = replace(site, made=narrow.made)
    assert fault.against(near).ratio > 5
    assert fault.against(far).ratio > 1  # proven, whatever the rounding errors


DTYPES = {"f32": "float32", "f16": "float16"}


def test_a_bias_of_a_thousandth(tmp_path):
    """On a convolution with K = 1152: a thousandth of the outputs' size is missing, in every element."""
    drawn = convolution("nchw", 128, 8, 10, "f32,f32,f32")
    g = torch.Generator().manual_seed(0)
    x, w = torch.randn(drawn.operands[0][0], generator=g), torch.randn(drawn.operands[1][0], generator=g) / 34
    (site,) = Compiled(drawn.text, tmp_path).run(x, w)
    assert site.near.ratio < 0.1
    size = float(site.made.std())
    assert _off(site, 1e-3 * size) > 1
    assert _off(site, 1e-5 * size) < 1  # that small it could be rounding


def _off(site: Judged, by: float) -> float:
    return replace(site, made=site.made - by).near.ratio
