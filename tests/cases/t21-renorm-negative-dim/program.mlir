module {
  func.func @main(%arg0: !torch.vtensor<[2,2],f32>) -> !torch.vtensor<[2,2],f32> attributes {torch.assume_strict_symbolic_shapes} {
    %int2 = torch.constant.int 2
    %int-1 = torch.constant.int -1
    %float5.000000e-01 = torch.constant.float 5.000000e-01
    %0 = torch.aten.renorm %arg0, %int2, %int-1, %float5.000000e-01 : !torch.vtensor<[2,2],f32>, !torch.int, !torch.int, !torch.float -> !torch.vtensor<[2,2],f32>
    return %0 : !torch.vtensor<[2,2],f32>
  }
}
