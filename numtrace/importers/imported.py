"""What an importer makes of a source, and how it gets into files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from numtrace.instrument.parameters import write_irpa
from numtrace.worker.channel import Channel

#: The parameter scope of imported programs (``#flow.parameter.named<"model"::"…">``).
SCOPE = "model"
#: The name of their function.
FUNCTION = "main"


@dataclass(frozen=True)
class Imported:
    """A program as MLIR text, its parameters by key (of scope :data:`SCOPE`), and example inputs in order.

    Arrays are of numpy's or ml_dtypes' types. ``notices`` are for the user.
    """

    text: str
    parameters: Mapping[str, np.ndarray]
    inputs: Sequence[np.ndarray] = ()
    notices: Sequence[str] = field(default=())


def deliver(imported: Imported, job: dict[str, Any], channel: Channel) -> None:
    """Writes it to ``job["target"]`` (``x.mlir``), ``x.irpa`` and ``x.input0.npy``, …; sends ``imported``."""
    target = Path(job["target"])
    channel.stage("write the model")
    archive = target.with_suffix(".irpa")
    if imported.parameters:
        write_irpa(archive, imported.parameters)
    inputs = []
    for index, array in enumerate(imported.inputs):
        path = target.with_suffix(f".input{index}.npy")
        np.save(path, array)
        inputs.append(str(path))
    target.write_text(imported.text, encoding="utf-8")
    channel.send(
        "imported",
        params=[[SCOPE, str(archive)]] if imported.parameters else [],
        inputs=inputs,
        notices=list(imported.notices),
    )
