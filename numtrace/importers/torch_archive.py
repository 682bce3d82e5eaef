"""``.pt2``: a program that ``torch.export.save`` wrote.

Such a file is trusted code, as a factory is: torch evaluates expressions of its JSON (``sympy.sympify`` of symbolic
sizes). Nothing in it is unpickled, though: an archive with members that would be is refused. Those are, in torch 2.13
(``torch/export/pt2_archive/_package.py``): weights and constants that the payload config marks with ``use_pickle``
(tensor subclasses), the ``custom_obj_`` and ``opaque_obj_`` constants, the ``<model>.pt`` files of older archives, and
sample inputs that ``torch.load(weights_only=True)`` does not take. Compiled code (AOTInductor) is refused as well.
"""

from __future__ import annotations

import io
import json
import pickle
from pathlib import Path
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.pt2_archive import constants
from torch.export.pt2_archive._package import PT2ArchiveReader, load_pt2

from numtrace.errors import ModelError
from numtrace.importers.blame import cause, tell
from numtrace.importers.imported import Imported, deliver
from numtrace.importers.torch_program import import_program
from numtrace.worker.channel import Channel

_SAVE = "write it with torch.export.save of torch 2.13"


def import_archive(job: dict[str, Any], channel: Channel) -> None:
    """The worker's job ``import-pt2``."""
    channel.stage("read the archive")
    deliver(read(Path(job["source"])), job, channel)


def read(path: Path) -> Imported:
    """Imports the program of a ``.pt2`` file.

    Raises:
        ModelError: no such file, no archive of torch.export, one that holds pickles or compiled code, or several
            programs.
    """
    return import_program(load(path))


def load(path: Path) -> ExportedProgram:
    """The program in a ``.pt2`` file, without unpickling anything. ModelError: as for :func:`read`."""
    if not path.is_file():
        raise ModelError(f"there is no file {path}")
    try:
        archive = PT2ArchiveReader(str(path))
        names = archive.get_file_names()
    except Exception as error:
        tell(error)
        raise ModelError(f"{path} is no archive of torch.export; {_SAVE}") from None
    model = _only_model(path, names)
    pickled = _pickled(archive, names, model)
    if pickled:
        raise ModelError(
            f"{path} holds {', '.join(pickled)}, which torch would unpickle, and a pickle runs code when it is read; "
            "save the program without tensor subclasses and custom objects, or give a factory (package.module:name)"
        )
    try:
        return load_pt2(str(path)).exported_programs[model]
    except Exception as error:
        tell(error)
        raise ModelError(f"torch cannot read {path}: {cause(error)}") from None


def _only_model(path: Path, names: list[str]) -> str:
    """The name of the one program; what else could run code when it is loaded is refused."""
    compiled = [name for name in names if name.startswith(constants.AOTINDUCTOR_DIR)]
    if compiled:
        raise ModelError(f"{path} holds compiled code ({compiled[0]}), which is not loaded; {_SAVE}")
    start, end = constants.MODELS_FILENAME_FORMAT.split("{}")
    models = [name[len(start) : -len(end)] for name in names if name.startswith(constants.MODELS_DIR)]
    if len(models) != 1:
        raise ModelError(
            f"{path} holds {len(models)} programs ({', '.join(models) or 'none'}); give one that has one"
        )
    return models[0]


def _pickled(archive: PT2ArchiveReader, names: list[str], model: str) -> list[str]:
    """The members that :func:`load_pt2` would unpickle without restriction."""
    found = [
        name
        for folder in (constants.WEIGHTS_DIR, constants.CONSTANTS_DIR)
        if (name := f"{folder}{model}.pt") in names
    ]
    prefixes = (constants.CUSTOM_OBJ_FILENAME_PREFIX, constants.OPAQUE_OBJ_FILENAME_PREFIX)
    for folder, form in (
        (constants.WEIGHTS_DIR, constants.WEIGHTS_CONFIG_FILENAME_FORMAT),
        (constants.CONSTANTS_DIR, constants.CONSTANTS_CONFIG_FILENAME_FORMAT),
    ):
        if form.format(model) not in names:
            continue  # load_pt2 says so, or there is an older file, which was found above
        for entry in json.loads(archive.read_string(form.format(model)))["config"].values():
            if entry["use_pickle"] or entry["path_name"].startswith(prefixes):
                found.append(folder + entry["path_name"])
    samples = constants.SAMPLE_INPUTS_FILENAME_FORMAT.format(model)
    if samples in names and not _is_plain(archive.read_bytes(samples)):
        found.append(samples)
    return found


def _is_plain(data: bytes) -> bool:
    """Whether it holds tensors and plain containers only."""
    try:
        if data:
            torch.load(io.BytesIO(data), weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, ValueError, EOFError):
        return False
    return True
