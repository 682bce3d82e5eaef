func.func @main(%a: !torch.vtensor<[2,2,4],ui8>, %sa: !torch.vtensor<[1],f32>, %za: !torch.vtensor<[1],ui8>, %b: !torch.vtensor<[2,4,3],ui8>, %sb: !torch.vtensor<[1],f32>, %zb: !torch.vtensor<[1],ui8>, %sy: !torch.vtensor<[1],f32>, %zy: !torch.vtensor<[1],ui8>) -> !torch.vtensor<[2,2,3],ui8> attributes {torch.onnx_meta.ir_version = 10 : si64, torch.onnx_meta.opset_version = 21 : si64} {
  %r = torch.operator "onnx.QLinearMatMul"(%a, %sa, %za, %b, %sb, %zb, %sy, %zy) : (!torch.vtensor<[2,2,4],ui8>, !torch.vtensor<[1],f32>, !torch.vtensor<[1],ui8>, !torch.vtensor<[2,4,3],ui8>, !torch.vtensor<[1],f32>, !torch.vtensor<[1],ui8>, !torch.vtensor<[1],f32>, !torch.vtensor<[1],ui8>) -> !torch.vtensor<[2,2,3],ui8>
  return %r : !torch.vtensor<[2,2,3],ui8>
}
