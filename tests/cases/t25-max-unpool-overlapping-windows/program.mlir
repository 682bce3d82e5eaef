module {
  func.func @main(%arg0: !torch.vtensor<[1,1,2,2],f32>, %arg1: !torch.vtensor<[1,1,2,2],si64>) -> !torch.vtensor<[1,1,5,5],f32> attributes {torch.assume_strict_symbolic_shapes} {
    %int5 = torch.constant.int 5
    %int5_0 = torch.constant.int 5
    %0 = torch.prim.ListConstruct %int5, %int5_0 : (!torch.int, !torch.int) -> !torch.list<int>
    %1 = torch.aten.max_unpool2d %arg0, %arg1, %0 : !torch.vtensor<[1,1,2,2],f32>, !torch.vtensor<[1,1,2,2],si64>, !torch.list<int> -> !torch.vtensor<[1,1,5,5],f32>
    return %1 : !torch.vtensor<[1,1,5,5],f32>
  }
}
