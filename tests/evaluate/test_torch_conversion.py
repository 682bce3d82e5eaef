"""Programs that are partly torch dialect, as between two lowering passes."""

import torch

UNSIGNED = """
func.func @main(%a: !torch.vtensor<[2],ui8>) -> !torch.vtensor<[2],ui8> {
  %0 = torch_c.to_builtin_tensor %a : !torch.vtensor<[2],ui8> -> tensor<2xi8>
  %e = tensor.empty() : tensor<2xi32>
  %1 = linalg.generic {
      indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%0 : tensor<2xi8>) outs(%e : tensor<2xi32>) {
  ^bb0(%x: i8, %o: i32):
    %2 = arith.KIND %x : i8 to i32
    linalg.yield %2 : i32
  } -> tensor<2xi32>
  %3 = arith.trunci %1 : tensor<2xi32> to tensor<2xi8>
  %4 = torch_c.from_builtin_tensor %3 : tensor<2xi8> -> !torch.vtensor<[2],ui8>
  return %4 : !torch.vtensor<[2],ui8>
}
"""


def test_an_unsigned_tensor_has_no_sign_below_torch_and_has_one_above(evaluate):
    """200 is the byte of -56: what reads it as signed sees -56, and torch sees 200 again."""
    values = torch.tensor([3, 200], dtype=torch.uint8)
    (result,) = evaluate(UNSIGNED.replace("KIND", "extui"), values)
    assert (result.dtype, result.tolist()) == (torch.uint8, [3, 200])
    below = UNSIGNED.replace("KIND", "extsi").replace(
        "  %3 = arith.trunci", "  return %1 : tensor<2xi32>\n}\n//"
    )
    below = below[: below.index("//")].replace("-> !torch.vtensor<[2],ui8> {", "-> tensor<2xi32> {")
    (signed,) = evaluate(below, values)
    assert signed.tolist() == [3, -56]


def test_scalars_are_numbers_above_and_tensors_below(evaluate):
    text = """
    func.func @main(%a: !torch.vtensor<[2],f32>) -> !torch.vtensor<[2],f32> {
      %two = torch.constant.int 2
      %half = torch.constant.float 5.000000e-01
      %0 = torch_c.to_i64 %two
      %1 = arith.addi %0, %0 : i64
      %2 = torch_c.from_i64 %1
      %3 = torch_c.to_f64 %half
      %4 = arith.mulf %3, %3 : f64
      %5 = torch_c.from_f64 %4
      %6 = torch.aten.mul.Scalar %a, %2 : !torch.vtensor<[2],f32>, !torch.int -> !torch.vtensor<[2],f32>
      %7 = torch.aten.mul.Scalar %6, %5 : !torch.vtensor<[2],f32>, !torch.float -> !torch.vtensor<[2],f32>
      return %7 : !torch.vtensor<[2],f32>
    }
    """
    (result,) = evaluate(text, torch.tensor([1.0, 3.0]))
    assert result.tolist() == [1.0, 3.0]  # · (2 + 2) · (0.5 · 0.5)
