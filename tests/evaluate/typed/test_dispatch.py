"""A whole dispatch: what it is given, and denormals among it."""

from __future__ import annotations

import torch
from judged import Compiled
from kernels import elementwise

BODY = "    %r = arith.addf %a, %b : E"


def test_denormal_operands_may_be_read_as_zero(tmp_path):
    """Really compiled: 1e-40 + 0 is flushed, and that is within the bound, as 1e-40 would be."""
    program = Compiled(elementwise(BODY, 4, "f32"), tmp_path)
    x = torch.tensor([1e-40, -1e-40, 1.0, 0.0])
    (site,) = program.run(x, torch.zeros(4))
    value = site.typed()
    assert value.exact.tolist() == x.double().tolist()
    assert site.made.tolist() == [0.0, 0.0, 1.0, 0.0]
    assert site.near.ratio <= 1
    assert value.bound[0].item() >= 2.0**-126 > 1e-40
    assert value.bound[2].item() < 2.0**-22


def test_a_wrong_element_is_told_from_rounding(tmp_path):
    program = Compiled(elementwise(BODY, 4, "f32"), tmp_path)
    (site,) = program.run(torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.full((4,), 0.1))
    assert site.near.ratio <= 1 and site.far.ratio <= 1
    site.made[2] += 1e-6
    assert site.against(site.typed()).ratio > 2 and site.against(site.typed()).at == 2
