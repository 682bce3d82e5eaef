"""From what frameworks write to what IREE reads: an MLIR file, its parameters, and example inputs.

One module per kind of source; which there are, and by what they are known, is in :mod:`numtrace.importers.sources`.
They run in a worker process, and may need the package of the framework besides what every worker needs.
"""
