"""What runs in a child process per variant: everything that touches IREE, and the evaluation beside the run.

``python -m numtrace.worker`` reads one job (JSON) from stdin and streams JSON lines to stdout. It needs only
torch, numpy, ml_dtypes and IREE, so that it can run in the environment of another IREE build.
"""
