"""A built-in model as files: MLIR and parameters, made on first use and cached.

Nothing heavy is imported unless a file has to be made.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from numtrace.errors import InputError, ModelError, UsageError
from numtrace.models.cache import Entry, cache_directory, file_sha256, fingerprint, obtain
from numtrace.models.checkpoint import check_file, fits, normalise_checkpoint
from numtrace.models.config import ATTENTION_FORMS, CONFIGS, NAMES, Config

if TYPE_CHECKING:
    from torch import Tensor, nn

#: The parameter scope of built-in models, as in ``--params model=FILE``.
SCOPE = "model"


@dataclass(frozen=True)
class BuiltinModel:
    """A program to compile, its parameter archives by scope, and its inputs as ``1x4x16x16xf32``."""

    mlir: Path
    parameters: dict[str, Path]
    input_types: list[str]
    notices: list[str] = field(default_factory=list)


def build(
    name: str, attention: str | None = None, cache: Path | None = None, params: Path | None = None
) -> BuiltinModel:
    """The files of the built-in model ``name``.

    ``attention`` is ``decomposed`` or ``op`` (None: the model's own); ``cache`` the directory to keep files in
    (default: the user's); ``params`` a checkpoint of the real model to use in place of the seeded weights.

    Raises `ModelError` for an unknown name, `UsageError` for an unknown form of attention or an option that the
    model does not have, `InputError` for a checkpoint that does not fit, `OutputError` when the cache cannot be
    written.
    """
    config = _config(name, attention)
    directory = cache_directory(cache)
    # Parameters first: when a checkpoint does not fit, nothing else need be made.
    archive = None
    if params is not None:
        archive = _checkpoint_archive(directory, config, name, Path(params))
    elif config.architecture is not None:
        archive = _seeded_archive(directory, config)
    program = _program(directory, config, name)
    return BuiltinModel(
        mlir=program.path,
        parameters={SCOPE: archive.path} if archive else {},
        input_types=list(config.input_types),
        notices=[*(archive.notices if archive else ()), *program.notices],
    )


def _config(name: str, attention: str | None) -> Config:
    if name not in CONFIGS:
        near = difflib.get_close_matches(name, NAMES, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise ModelError(f"no built-in model {name!r}: {hint}there are {', '.join(NAMES)}")
    config = CONFIGS[name]
    if attention is None:
        return config
    if attention not in ATTENTION_FORMS:
        raise UsageError(f"attention {attention!r} given, one of {', '.join(ATTENTION_FORMS)} expected")
    if config.attention is None:
        raise UsageError(f"{name} has no attention whose form could be chosen")
    return replace(config, attention=attention)  # type: ignore[type-var]


def _program(directory: Path, config: Config, name: str) -> Entry:
    key = _key([config.source, "../importers/torch_program.py"], ["torch", "iree-base-compiler"], config)
    return obtain(
        directory, "-".join(filter(None, [name, config.attention, f"{key}.mlir"])), partial(_export, config)
    )


def _seeded_archive(directory: Path, config: Config) -> Entry:
    """Seeded weights: one archive for all models of one architecture, whatever their latent's size."""
    key = _key([config.source, "weights.py"], ["torch", "safetensors"], config.architecture)
    return obtain(directory, f"weights-{key}.safetensors", partial(_draw, config))


def _checkpoint_archive(directory: Path, config: Config, name: str, params: Path) -> Entry:
    if not config.takes_checkpoint:
        raise UsageError(f"{name} has seeded parameters only; run it without --params")
    check_file(params)
    try:
        content = file_sha256(params)
    except OSError as error:
        raise InputError(f"cannot read {params}: {error.strerror or error}") from error
    key = _key([config.source, "checkpoint.py"], ["safetensors"], config.architecture, content, params.name)
    return obtain(directory, f"checkpoint-{key}.safetensors", partial(_normalise, config, name, params))


def _export(config: Config, path: Path) -> Sequence[str]:
    import torch

    from numtrace.importers.torch_program import export_fake
    from numtrace.instrument.dtypes import torch_dtype
    from numtrace.instrument.tensor_type import TensorType

    def make() -> nn.Module:
        # From the beginning: without values a module cannot be cast.
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch_dtype(config.dtype))
        try:
            return config.module()
        finally:
            torch.set_default_dtype(before)

    text = export_fake(make, [TensorType.parse(text) for text in config.input_types])
    path.write_text(text, encoding="utf-8")
    return ()


def _draw(config: Config, path: Path) -> Sequence[str]:
    from numtrace.models.weights import seeded_weights

    _save(seeded_weights(config), path)
    return ()


def _normalise(config: Config, name: str, params: Path, path: Path) -> Sequence[str]:
    from numtrace.models.weights import parameter_shapes

    try:
        checkpoint = normalise_checkpoint(params, parameter_shapes(config), name)
    except InputError as error:
        others = [
            other
            for other, one in CONFIGS.items()
            if one.takes_checkpoint and fits(params, parameter_shapes(one))
        ]
        if not others:
            raise
        raise InputError(f"{error}\nit fits {' and '.join(others)}: run that model") from error
    _save(checkpoint.tensors, path)
    return checkpoint.notices


def _save(tensors: dict[str, Tensor], path: Path) -> None:
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    try:
        save_file(tensors, path)
    except SafetensorError as error:  # its way to report a full disk
        raise OSError(str(error)) from error


def _key(sources: Sequence[str], packages: Sequence[str], *parts: object) -> str:
    """What a generated file depends on: the code that makes it, the packages that do, and ``parts``."""
    here = Path(__file__).parent
    return fingerprint(
        *(file_sha256(here / source) for source in sources),
        *(f"{package} {version(package)}" for package in packages),
        *parts,
    )
