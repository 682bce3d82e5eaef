func.func @main(%x: !torch.vtensor<[1,2,4,4],f32>) -> !torch.vtensor<[1,8,2,2],f32> attributes {torch.onnx_meta.ir_version = 10 : si64, torch.onnx_meta.opset_version = 28 : si64} {
  %r = torch.operator "onnx.SpaceToDepth"(%x) {torch.onnx.blocksize = 2 : si64, torch.onnx.mode = "CRD"} : (!torch.vtensor<[1,2,4,4],f32>) -> !torch.vtensor<[1,8,2,2],f32>
  return %r : !torch.vtensor<[1,8,2,2],f32>
}
