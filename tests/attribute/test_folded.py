"""Tables that the compiler computed in f32: rounding as torch's own is right, another function is not."""

from __future__ import annotations

import math
import struct

import pytest
import torch

import numtrace.evaluate  # noqa: F401  (registers the dialects)
from numtrace.attribute.folded import folded_constants
from numtrace.evaluate.program import Program

SOURCE = """
func.func @main(%x: !torch.vtensor<[4],f32>) -> !torch.vtensor<[4],f32> {
  %n = torch.constant.int 4 loc("numtrace.1")
  %none = torch.constant.none loc("numtrace.2")
  %0 = torch.aten.arange %n, %none, %none, %none, %none
    : !torch.int, !torch.none, !torch.none, !torch.none, !torch.none -> !torch.vtensor<[4],si64> loc("numtrace.3")
  %f = torch.constant.float 3.000000e+01 loc("numtrace.4")
  %1 = torch.aten.mul.Scalar %0, %f
    : !torch.vtensor<[4],si64>, !torch.float -> !torch.vtensor<[4],f32> loc("numtrace.5")
  %2 = torch.aten.sin %1 : !torch.vtensor<[4],f32> -> !torch.vtensor<[4],f32> loc("numtrace.6")
  %one = torch.constant.int 1 loc("numtrace.7")
  %3 = torch.aten.add.Tensor %x, %2, %one
    : !torch.vtensor<[4],f32>, !torch.vtensor<[4],f32>, !torch.int -> !torch.vtensor<[4],f32> loc("numtrace.8")
  return %3 : !torch.vtensor<[4],f32> loc("numtrace.9")
}
"""
SINES = [math.sin(30.0 * k) for k in range(4)]


def flow(values: list[float], stamp: int = 6) -> Program:
    bits = ", ".join(f"0x{struct.unpack('<I', struct.pack('<f', value))[0]:08X}" for value in values)
    return Program.parse(
        f'util.global private @table = dense<[{bits}]> : tensor<4xf32> loc("numtrace.{stamp}")'
    )


def found(values: list[float], stamp: int = 6) -> dict:
    source = Program.parse(SOURCE)
    stored = {"table": torch.tensor(values, dtype=torch.float32).double()}
    return folded_constants(flow(values, stamp), source, source.functions["main"], stored)


def test_a_table_rounded_to_f32_has_its_exact_value() -> None:
    table = found(SINES)["table"]
    assert table.stamp == 6
    assert table.exact.tolist() == pytest.approx(SINES, abs=1e-15)
    assert 0 < table.max_abs < 2**-24


@pytest.mark.parametrize(
    "values",
    [
        [math.cos(30.0 * k) for k in range(4)],
        [value * (1 + 2**-18) for value in SINES],  # 64 units in the last place: no rounding of f32
        SINES[::-1],
    ],
)
def test_another_table_is_left_as_it_is(values: list[float]) -> None:
    assert not found(values)


def test_what_depends_on_an_input_is_not_folded() -> None:
    assert not found(SINES, stamp=8)


def test_a_table_without_elements_is_none() -> None:
    source = Program.parse("""
    util.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %one = arith.constant dense<1.0> : tensor<0xf32>
      %0 = math.exp %one : tensor<0xf32> loc("numtrace.6")
      util.return %x : tensor<4xf32>
    }
    """)
    program = Program.parse('util.global private @table = dense<> : tensor<0xf32> loc("numtrace.6")')
    assert folded_constants(program, source, source.functions["main"], {"table": torch.zeros(0)}) == {}


def transformed(table: torch.Tensor) -> dict:
    """What is made of a table of complex numbers that a lowering computed by itself."""
    rows = ", ".join(f"[{', '.join(f'({z.real:.9e}, {z.imag:.9e})' for z in row)}]" for row in table.tolist())
    shape = "x".join(map(str, table.shape))
    program = Program.parse(
        f'util.global private @table = dense<[{rows}]> : tensor<{shape}xcomplex<f32>> loc("numtrace.6")'
    )
    source = Program.parse(SOURCE)
    return folded_constants(program, source, source.functions["main"], {"table": table})


#: Of a transform of real numbers: 12 points, 7 frequencies.
ROOTS = torch.exp(-2j * torch.pi * torch.outer(torch.arange(12.0), torch.arange(7.0)).double() / 12)


def test_the_table_of_a_fourier_transform_has_its_exact_value() -> None:
    table = transformed(ROOTS.to(torch.complex64))["table"]
    assert torch.allclose(table.exact, ROOTS, rtol=0, atol=1e-14)
    assert 0 < table.max_abs < 2**-23


@pytest.mark.parametrize("wrong", [ROOTS * 0.5, ROOTS * (1 + 2**-18), ROOTS**0.5])
def test_another_table_of_complex_numbers_is_left_as_it_is(wrong: torch.Tensor) -> None:
    assert not transformed(wrong.to(torch.complex64))
