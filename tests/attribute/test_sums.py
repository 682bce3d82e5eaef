"""Sums by which two values are told apart, whatever their layout."""

from __future__ import annotations

import torch

from numtrace.attribute.sums import SummingMachine, alike, sums
from numtrace.evaluate.program import Program


def test_the_sums_of_a_value():
    assert sums(torch.tensor([1.0, -2.0, 3.0])) == (6.0, 2.0, 14.0, 20.0)  # 1 - 8 + 27


def test_a_transpose_a_reshape_and_zeros_around_it_are_alike():
    value = torch.randn(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for other in (value.T.contiguous(), value.reshape(12), torch.nn.functional.pad(value, (1, 1))):
        assert alike(sums(other), sums(value))


def test_a_small_change_is_seen_and_the_noise_of_float64_is_not():
    value = torch.randn(1000, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    changed = value.clone()
    changed[7] += 1e-6
    assert not alike(sums(changed), sums(value))
    assert alike(sums(value * (1 + 2.0**-52)), sums(value))
    assert not alike(sums(-value), sums(value))


def test_nan_is_like_nan_only():
    assert alike(sums(torch.tensor([1.0, torch.nan])), sums(torch.tensor([1.0, torch.nan])))
    assert not alike(sums(torch.tensor([1.0, torch.nan])), sums(torch.tensor([1.0, 2.0])))
    assert not alike(sums(torch.tensor([1.0, 2.0])), sums(torch.tensor([1.0, torch.nan])))


def test_the_last_value_of_each_source_op_is_kept_and_none_of_fused_ones():
    program = Program.parse("""
    util.func public @main(%a: tensor<2xf32>) -> tensor<2xf32> {
      %0 = arith.addf %a, %a : tensor<2xf32> loc("numtrace.1")
      %1 = arith.negf %0 : tensor<2xf32> loc("numtrace.1")
      %2 = arith.mulf %1, %1 : tensor<2xf32> loc(fused["numtrace.1", "numtrace.2"])
      %3 = arith.subf %2, %a : tensor<2xf32> loc("numtrace.3")
      util.return %3 : tensor<2xf32>
    }
    """)
    machine = SummingMachine(program, {})
    machine.run(program.functions["main"].regions[0], [torch.tensor([1.0, 2.0])])
    assert machine.sums.keys() == {1, 3}
    assert machine.sums[1] == sums(torch.tensor([-2.0, -4.0]))
    assert machine.sums[3] == sums(torch.tensor([3.0, 14.0]))
