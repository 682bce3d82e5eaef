func.func @main(%x: !torch.vtensor<[1,1,1,4],f32>, %s: !torch.vtensor<[4],f32>) -> !torch.vtensor<[1,1,1,2],f32> attributes {torch.onnx_meta.ir_version = 10 : si64, torch.onnx_meta.opset_version = 19 : si64} {
  %none = torch.constant.none
  %r = torch.operator "onnx.Resize"(%x, %none, %s) {torch.onnx.coordinate_transformation_mode = "align_corners", torch.onnx.mode = "linear"} : (!torch.vtensor<[1,1,1,4],f32>, !torch.none, !torch.vtensor<[4],f32>) -> !torch.vtensor<[1,1,1,2],f32>
  return %r : !torch.vtensor<[1,1,1,2],f32>
}
