#m = affine_map<(i) -> (i)>
func.func @main(%a: tensor<4xi32>, %b: tensor<4xi32>, %c: tensor<4xi32>) -> tensor<4xi32> {
  %e = tensor.empty() : tensor<4xi32>
  %r = linalg.generic {indexing_maps = [#m, #m, #m], iterator_types = ["parallel"]} ins(%a, %b : tensor<4xi32>, tensor<4xi32>) outs(%e : tensor<4xi32>) {
  ^bb0(%x: i32, %y: i32, %o: i32):
    %0 = arith.sitofp %x : i32 to f32
    %1 = arith.sitofp %y : i32 to f32
    %2 = arith.divf %0, %1 : f32
    %3 = math.floor %2 : f32
    %4 = arith.fptosi %3 : f32 to i32
    linalg.yield %4 : i32
  } -> tensor<4xi32>
  %s = linalg.generic {indexing_maps = [#m, #m, #m, #m], iterator_types = ["parallel"]} ins(%a, %c, %r : tensor<4xi32>, tensor<4xi32>, tensor<4xi32>) outs(%e : tensor<4xi32>) {
  ^bb0(%x: i32, %y: i32, %z: i32, %o: i32):
    %0 = arith.sitofp %x : i32 to f32
    %1 = arith.sitofp %y : i32 to f32
    %2 = arith.divf %0, %1 : f32
    %3 = math.floor %2 : f32
    %4 = arith.fptosi %3 : f32 to i32
    %5 = arith.xori %4, %z : i32
    linalg.yield %5 : i32
  } -> tensor<4xi32>
  return %s : tensor<4xi32>
}
