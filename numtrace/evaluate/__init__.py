"""The exact meaning of MLIR programs, in float64 on torch: one small file per dialect."""

from numtrace.evaluate import (  # noqa: F401
    arith,
    complex_numbers,
    control,
    dispatch,
    elements,
    flow,
    im2col,
    linalg,
    linalg_ext,
    mathematics,
    online_attention,
    onnx_ops,
    ordering,
    packing,
    quantization,
    scatter,
    structured,
    tensors,
    torch_conversion,
    torch_dialect,
)
