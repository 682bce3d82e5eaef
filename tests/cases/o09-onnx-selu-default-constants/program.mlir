func.func @main(%x: !torch.vtensor<[6],f32>) -> !torch.vtensor<[6],f32> attributes {torch.onnx_meta.ir_version = 10 : si64, torch.onnx_meta.opset_version = 22 : si64} {
  %r = torch.operator "onnx.Selu"(%x) : (!torch.vtensor<[6],f32>) -> !torch.vtensor<[6],f32>
  return %r : !torch.vtensor<[6],f32>
}
