"""Which models have to be imported, told by their names alone: nothing is opened, and nothing heavy is loaded."""

from __future__ import annotations

import re
from pathlib import Path

#: By the end of a file's name: the kind of a source, as in the worker's job ``import-<kind>``.
_SUFFIXES = {".onnx": "onnx", ".pt2": "pt2"}

_FACTORY = re.compile(r"(?P<module>[^\W\d]\w*(?:\.[^\W\d]\w*)*):(?P<name>[^\W\d]\w*(?:\.[^\W\d]\w*)*)")


def kind_of(source: str) -> str | None:
    """``onnx``, ``pt2`` or ``factory`` (``package.module:name``); None for what is no source to import."""
    suffix = _SUFFIXES.get(Path(source).suffix.lower())
    if suffix:
        return suffix
    return "factory" if _FACTORY.fullmatch(source) and not Path(source).exists() else None


def short_name(source: str) -> str:
    """What files made of ``source`` are called: the file's name, or that of the factory."""
    match = _FACTORY.fullmatch(source)
    return match["name"].rpartition(".")[2] if match else Path(source).stem


def split_factory(source: str) -> tuple[str, str]:
    """Module and name of ``package.module:name``."""
    module, _, name = source.partition(":")
    return module, name
