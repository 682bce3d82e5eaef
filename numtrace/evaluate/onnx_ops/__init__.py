"""ONNX operators as the importer leaves them: ``torch.operator "onnx.<name>"``, one small file per kind."""

from numtrace.evaluate.onnx_ops import (  # noqa: F401
    casts,
    constants,
    contraction,
    elementwise,
    indexing,
    layout,
    losses,
    normalization,
    pooling,
    quantized,
    recurrent,
    reductions,
    resize,
    sampling,
    spectra,
)
