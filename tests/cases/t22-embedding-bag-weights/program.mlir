module {
  func.func @main(%arg0: !torch.vtensor<[3],si64>, %arg1: !torch.vtensor<[3,2],f32>, %arg2: !torch.vtensor<[2],si64>, %arg3: !torch.vtensor<[3],f32>) -> !torch.vtensor<[2,2],f32> attributes {torch.assume_strict_symbolic_shapes} {
    %false = torch.constant.bool false
    %int0 = torch.constant.int 0
    %false_0 = torch.constant.bool false
    %false_1 = torch.constant.bool false
    %none = torch.constant.none
    %result0, %result1, %result2, %result3 = torch.aten.embedding_bag.padding_idx %arg1, %arg0, %arg2, %false, %int0, %false_0, %arg3, %false_1, %none : !torch.vtensor<[3,2],f32>, !torch.vtensor<[3],si64>, !torch.vtensor<[2],si64>, !torch.bool, !torch.int, !torch.bool, !torch.vtensor<[3],f32>, !torch.bool, !torch.none -> !torch.vtensor<[2,2],f32>, !torch.vtensor<[0],si64>, !torch.vtensor<[2],si64>, !torch.vtensor<[2],si64>
    return %result0 : !torch.vtensor<[2,2],f32>
  }
}
