func.func @main(%x: !torch.vtensor<[2,3],f32>, %t: !torch.vtensor<[2],si64>, %w: !torch.vtensor<[3],f32>) -> !torch.vtensor<[],f32> attributes {torch.onnx_meta.ir_version = 10 : si64, torch.onnx_meta.opset_version = 13 : si64} {
  %r = torch.operator "onnx.SoftmaxCrossEntropyLoss"(%x, %t, %w) {torch.onnx.reduction = "mean"} : (!torch.vtensor<[2,3],f32>, !torch.vtensor<[2],si64>, !torch.vtensor<[3],f32>) -> !torch.vtensor<[],f32>
  return %r : !torch.vtensor<[],f32>
}
