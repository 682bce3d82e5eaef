func.func @main(%x: !torch.vtensor<[1,1,3,2],f32>, %g: !torch.vtensor<[1,1,4,2],f32>) -> !torch.vtensor<[1,1,1,4],f32> attributes {torch.onnx_meta.ir_version = 10 : si64, torch.onnx_meta.opset_version = 22 : si64} {
  %r = torch.operator "onnx.GridSample"(%x, %g) {torch.onnx.mode = "nearest"} : (!torch.vtensor<[1,1,3,2],f32>, !torch.vtensor<[1,1,4,2],f32>) -> !torch.vtensor<[1,1,1,4],f32>
  return %r : !torch.vtensor<[1,1,1,4],f32>
}
