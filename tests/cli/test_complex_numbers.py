"""Complex numbers between dispatches, through the command: as rotary embeddings and Fourier transforms have them."""

from __future__ import annotations

import numpy as np
import pytest
from commands import inside

ROTATED = """
func.func @main(%x: !torch.vtensor<[3,4,2],f32>, %w: !torch.vtensor<[4,5,2],f32>,
    %z: !torch.vtensor<[5,5,2],f32>, %t: !torch.vtensor<[3,5],f32>)
    -> !torch.vtensor<[3,5,2],f32> {
  %a = torch.aten.view_as_complex %x : !torch.vtensor<[3,4,2],f32> -> !torch.vtensor<[3,4],complex<f32>>
  %b = torch.aten.view_as_complex %w : !torch.vtensor<[4,5,2],f32> -> !torch.vtensor<[4,5],complex<f32>>
  %d = torch.aten.view_as_complex %z : !torch.vtensor<[5,5,2],f32> -> !torch.vtensor<[5,5],complex<f32>>
  %m = torch.aten.mm %a, %b : !torch.vtensor<[3,4],complex<f32>>, !torch.vtensor<[4,5],complex<f32>>
      -> !torch.vtensor<[3,5],complex<f32>>
  %c = torch.aten.cos %t : !torch.vtensor<[3,5],f32> -> !torch.vtensor<[3,5],f32>
  %s = torch.aten.sin %t : !torch.vtensor<[3,5],f32> -> !torch.vtensor<[3,5],f32>
  %r = torch.aten.complex %c, %s : !torch.vtensor<[3,5],f32>, !torch.vtensor<[3,5],f32>
      -> !torch.vtensor<[3,5],complex<f32>>
  %q = torch.aten.mm %m, %d : !torch.vtensor<[3,5],complex<f32>>, !torch.vtensor<[5,5],complex<f32>>
      -> !torch.vtensor<[3,5],complex<f32>>
  %y = torch.aten.mul.Tensor %q, %r : !torch.vtensor<[3,5],complex<f32>>, !torch.vtensor<[3,5],complex<f32>>
      -> !torch.vtensor<[3,5],complex<f32>>
  %v = torch.aten.view_as_real %y : !torch.vtensor<[3,5],complex<f32>> -> !torch.vtensor<[3,5,2],f32>
  return %v : !torch.vtensor<[3,5,2],f32>
}
"""


def test_complex_numbers_are_traced_and_held_against_the_source(tmp_path):
    (tmp_path / "rotated.mlir").write_text(ROTATED)
    draw = np.random.default_rng(0)
    x, w, z, t = (
        draw.standard_normal(s).astype(np.float32) for s in ((3, 4, 2), (4, 5, 2), (5, 5, 2), (3, 5))
    )
    arguments = []
    for name, value in (("x", x), ("w", w), ("z", z), ("t", t)):
        np.save(tmp_path / f"{name}.npy", value)
        arguments += ["--input", f"@{name}.npy"]
    result = inside("run", "rotated.mlir", *arguments, "--json", "--out", "run", cwd=tmp_path)
    assert result.code == 0, result.err
    (variant,) = result.document["variants"]
    coverage = variant["coverage"]
    assert coverage["sites"] == coverage["verified"] > 1
    assert coverage["uncovered"] == coverage["unbounded"] == 0

    # The reference is numpy's product of complex numbers.
    a, b, c = (value.astype(float) @ [1, 1j] for value in (x, w, z))
    rotated = a @ b @ c * np.exp(1j * t.astype(float))
    made = np.load(tmp_path / "run" / "variants" / "baseline" / "exact0.npy")
    assert made == pytest.approx(np.stack([rotated.real, rotated.imag], -1), rel=1e-12, abs=1e-12)
    # A site of complex numbers is one of their parts.
    first = variant["sites"][0]
    assert (first["dtype"], first["shape"]) == ("f32", [3, 5, 2])
    assert 0 < first["bound_ratio"] <= 1


TRANSFORMED = """
func.func @main(%x: !torch.vtensor<[3,N],f32>) -> !torch.vtensor<[3,M,2],f32> {
  %none = torch.constant.none
  %last = torch.constant.int -1
  %f = torch.aten.fft_rfft %x, %none, %last, %none
      : !torch.vtensor<[3,N],f32>, !torch.none, !torch.int, !torch.none -> !torch.vtensor<[3,M],complex<f32>>
  %v = torch.aten.view_as_real %f : !torch.vtensor<[3,M],complex<f32>> -> !torch.vtensor<[3,M,2],f32>
  return %v : !torch.vtensor<[3,M,2],f32>
}
"""


@pytest.mark.parametrize("size", [16, 12])
def test_a_fourier_transform(tmp_path, size):
    """In stages, or as one contraction with a table: that this is in f32 is no changed mathematics."""
    text = TRANSFORMED.replace("N", str(size)).replace("M", str(size // 2 + 1))
    (tmp_path / "transformed.mlir").write_text(text)
    x = np.random.default_rng(0).standard_normal((3, size)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    result = inside("run", "transformed.mlir", "--input", "@x.npy", "--json", "--out", "run", cwd=tmp_path)
    assert result.code == 0, result.err
    (variant,) = result.document["variants"]
    assert variant["coverage"]["uncovered"] == variant["coverage"]["unbounded"] == 0
    assert variant["sites"][-1]["match"] == "verified"
    expected = np.fft.rfft(x.astype(float))
    made = np.load(tmp_path / "run" / "variants" / "baseline" / "exact0.npy")
    assert made == pytest.approx(np.stack([expected.real, expected.imag], -1), rel=1e-12, abs=1e-12)
