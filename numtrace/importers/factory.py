"""``package.module:name``: a callable of the user's that makes a torch module and example inputs.

It takes no arguments and returns ``(module, args)`` or ``(module, args, kwargs)``, ``args`` a tuple or list of what
``module.forward`` takes by position (or one tensor), ``kwargs`` a dict of what it takes by name; or a
``torch.export.ExportedProgram``, for dynamic shapes and for decompositions of one's own.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.export import ExportedProgram

from numtrace.errors import ModelError
from numtrace.importers.blame import last_words, place, tell
from numtrace.importers.imported import Imported, deliver
from numtrace.importers.sources import split_factory
from numtrace.importers.torch_program import export, import_program
from numtrace.worker.channel import Channel

_TAKES = "it must return (module, args), (module, args, kwargs) or a torch.export.ExportedProgram"


def import_factory(job: dict[str, Any], channel: Channel) -> None:
    """The worker's job ``import-factory``. What the factory prints is in the job's log."""
    sys.path.insert(0, str(Path.cwd()))
    deliver(read(job["source"], channel), job, channel)


def read(source: str, channel: Channel) -> Imported:
    """Calls the factory ``source`` and imports what it returns.

    Raises:
        ModelError: there is no such factory, it failed or returned something else, or the module cannot be exported.
    """
    channel.stage(f"call {source}")
    found = _called(source)
    if isinstance(found, ExportedProgram):
        channel.stage("import the program")
        return import_program(found)
    module, args, kwargs = _parts(source, found)
    notices = []
    if module.training:
        module.eval()
        notices.append(f"the module of {source} was in training mode; it is imported as it is after .eval()")
    channel.stage("export the module")
    return import_program(export(module, args, kwargs), notices)


def _called(source: str) -> Any:
    factory = _found(source)
    if not callable(factory):
        raise ModelError(f"{source} is no callable but {type(factory).__name__}; {_TAKES}")
    return _blamed(f"{source} failed", factory)


def _found(source: str) -> Any:
    module, name = split_factory(source)

    def load() -> Any:
        return importlib.import_module(module)

    try:
        loaded = load()
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            return _blamed(f"{module} cannot be imported", load)
        raise ModelError(
            f"there is no Python module {error.name}, neither in the current directory nor installed; "
            "give package.module:factory"
        ) from None
    except (Exception, SystemExit):
        return _blamed(f"{module} cannot be imported", load)
    try:
        return attrgetter(name)(loaded)
    except AttributeError:
        raise ModelError(f"the module {module} has no {name}; give package.module:factory") from None


def _blamed(what: str, code: Callable[[], Any]) -> Any:
    """Runs ``code``, which is not numtrace's; whatever it raises is told in a sentence, and in full in the log."""
    try:
        return code()
    except MemoryError:
        raise
    except (Exception, SystemExit) as error:
        tell(error)
        raise ModelError(f"{what}: {last_words(error)}{place(error)}") from None


def _parts(source: str, found: Any) -> tuple[nn.Module, tuple[Any, ...], dict[str, Any]]:
    """Module, positional and keyword inputs, from what the factory returned."""
    if (
        not isinstance(found, (tuple, list))
        or len(found) not in (2, 3)
        or not isinstance(found[0], nn.Module)
    ):
        raise ModelError(f"{source} returned {_described(found)}; {_TAKES}")
    module, args, *rest = found
    kwargs = rest[0] if rest else {}
    if isinstance(args, torch.Tensor):
        args = (args,)
    if not isinstance(args, (tuple, list)) or not isinstance(kwargs, dict):
        raise ModelError(f"{source} returned {_described(found)}; args are a tuple, kwargs a dict")
    return module, tuple(args), kwargs


def _described(value: Any) -> str:
    if isinstance(value, (tuple, list)):
        return f"({', '.join(type(part).__name__ for part in value)})"
    return type(value).__name__
