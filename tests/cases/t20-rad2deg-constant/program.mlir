module {
  func.func @main(%arg0: !torch.vtensor<[5],f32>) -> !torch.vtensor<[5],f32> attributes {torch.assume_strict_symbolic_shapes} {
    %0 = torch.aten.rad2deg %arg0 : !torch.vtensor<[5],f32> -> !torch.vtensor<[5],f32>
    return %0 : !torch.vtensor<[5],f32>
  }
}
