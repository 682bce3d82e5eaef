func.func @main(%a: !torch.vtensor<[4],si32>, %b: !torch.vtensor<[4],si32>) -> !torch.vtensor<[4],si32> {
  %r = torch.aten.floor_divide %a, %b : !torch.vtensor<[4],si32>, !torch.vtensor<[4],si32> -> !torch.vtensor<[4],si32>
  return %r : !torch.vtensor<[4],si32>
}
