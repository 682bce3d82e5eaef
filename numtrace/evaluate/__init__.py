"""The exact meaning of MLIR programs, in float64 on torch: one small file per dialect."""

from numtrace.evaluate import arith, dispatch, flow, linalg, linalg_ext, mathematics, structured, tensors  # noqa: F401
