func.func @main(%x: !torch.vtensor<[8],f32>) -> !torch.vtensor<[8],f32> {
  %n = torch.constant.int 8
  %true = torch.constant.bool true
  %none = torch.constant.none
  %false = torch.constant.bool false
  %cpu = torch.constant.device "cpu"
  %w = torch.aten.hann_window.periodic %n, %true, %none, %none, %cpu, %false : !torch.int, !torch.bool, !torch.none, !torch.none, !torch.Device, !torch.bool -> !torch.vtensor<[8],f32>
  %r = torch.aten.mul.Tensor %x, %w : !torch.vtensor<[8],f32>, !torch.vtensor<[8],f32> -> !torch.vtensor<[8],f32>
  return %r : !torch.vtensor<[8],f32>
}
