func.func @main(%x: !torch.vtensor<[2,2],f32>) -> !torch.vtensor<[],f32> attributes {torch.onnx_meta.ir_version = 10 : si64, torch.onnx_meta.opset_version = 22 : si64} {
  %r = torch.operator "onnx.Det"(%x) : (!torch.vtensor<[2,2],f32>) -> !torch.vtensor<[],f32>
  return %r : !torch.vtensor<[],f32>
}
