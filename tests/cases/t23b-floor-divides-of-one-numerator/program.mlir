func.func @main(%a: !torch.vtensor<[4],si32>, %b: !torch.vtensor<[4],si32>, %c: !torch.vtensor<[4],si32>) -> !torch.vtensor<[4],si32> {
  %one = torch.constant.int 1
  %r = torch.aten.floor_divide %a, %b : !torch.vtensor<[4],si32>, !torch.vtensor<[4],si32> -> !torch.vtensor<[4],si32>
  %s = torch.aten.floor_divide %a, %c : !torch.vtensor<[4],si32>, !torch.vtensor<[4],si32> -> !torch.vtensor<[4],si32>
  %t = torch.aten.bitwise_xor.Tensor %r, %s : !torch.vtensor<[4],si32>, !torch.vtensor<[4],si32> -> !torch.vtensor<[4],si32>
  return %t : !torch.vtensor<[4],si32>
}
