module {
  func.func @main(%arg0: !torch.vtensor<[3,3],f32>, %arg1: !torch.vtensor<[3],f32>) -> !torch.vtensor<[3,3],f32> attributes {torch.assume_strict_symbolic_shapes} {
    %dim = torch.constant.int 1
    %index = torch.constant.int -1
    %0 = torch.aten.select_scatter %arg0, %arg1, %dim, %index : !torch.vtensor<[3,3],f32>, !torch.vtensor<[3],f32>, !torch.int, !torch.int -> !torch.vtensor<[3,3],f32>
    return %0 : !torch.vtensor<[3,3],f32>
  }
}
