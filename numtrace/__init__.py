"""numtrace: which compiler pass and which op brought how much of a model's numerical error."""

__version__ = "0.1.0"
