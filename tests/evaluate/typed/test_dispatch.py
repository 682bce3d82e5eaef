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


def test_a_dispatch_of_dynamic_sizes_has_its_bounds(tmp_path):
    """[[1, 2], [3, 4], [5, 6]] times [[1], [10]], and 0.1 more: its sizes are known when it runs."""
    a, b, out = "tensor<?x?xf32>", "tensor<?x1xf32>", "tensor<?x1xf32>"
    text = f"""
    func.func @main(%a: {a}, %b: {b}) -> {out} {{
      %c0 = arith.constant 0 : index
      %tenth = arith.constant 0.1 : f32
      %n = tensor.dim %a, %c0 : {a}
      %empty = tensor.empty(%n) : {out}
      %init = linalg.fill ins(%tenth : f32) outs(%empty : {out}) -> {out}
      %0 = linalg.matmul ins(%a, %b : {a}, {b}) outs(%init : {out}) -> {out}
      return %0 : {out}
    }}
    """
    program = Compiled(text, tmp_path)
    sites = program.run(torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), torch.tensor([[1.0], [10.0]]))
    assert sites[-1].made.shape == (3, 1)
    tenth = float(torch.tensor(0.1))
    assert sites[-1].typed().exact.flatten().tolist() == [21 + tenth, 43 + tenth, 65 + tenth]
    for site in sites:
        assert site.near.ratio <= 1 and site.far.ratio <= 1
    sites[-1].made[1] += 1e-4
    assert sites[-1].against(sites[-1].typed()).ratio > 1


def test_code_may_leave_anything_where_a_dispatch_writes_only_a_part(tmp_path):
    """Two columns of integers that are put together: the first dispatch leaves the second column as the memory was."""
    n, one, two = "tensor<?xi64>", "tensor<?x1xi64>", "tensor<?x2xi64>"
    text = f"""
    func.func @main(%a: {n}, %b: {n}) -> {two} {{
      %c0 = arith.constant 0 : index
      %n = tensor.dim %a, %c0 : {n}
      %x = tensor.expand_shape %a [[0, 1]] output_shape [%n, 1] : {n} into {one}
      %y = tensor.expand_shape %b [[0, 1]] output_shape [%n, 1] : {n} into {one}
      %0 = tensor.concat dim(1) %x, %y : ({one}, {one}) -> {two}
      return %0 : {two}
    }}
    """
    program = Compiled(text, tmp_path)
    sites = program.run(torch.tensor([1, 2, 3]), torch.tensor([4, 5, 6]))
    assert sites[-1].made.tolist() == [[1, 4], [2, 5], [3, 6]]
    first, last = sites
    first.made[:, 1] = 7
    assert first.near.ratio <= 1 and last.near.ratio <= 1
    first.made[:, 0] = 7
    assert first.against(first.typed()).ratio > 1
    last.made[0, 1] = 7
    assert last.against(last.typed()).ratio > 1
