"""A finished run opened again, to measure parts of what it did."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numtrace.instrument.parameters import ParameterArchives
from numtrace.worker.compilation import Variant
from numtrace.worker.modules import archives
from numtrace.worker.prepare import stored_inputs


@dataclass(frozen=True)
class Baseline:
    """The variant without passes: its ``record`` in the run's ``report``, and what it was run with."""

    report: dict[str, Any]
    record: dict[str, Any]
    variant: Variant
    params: ParameterArchives
    inputs: list[Any]

    @property
    def function(self) -> str:
        return self.report["model"]["function"]


def baseline(run: Path) -> Baseline:
    report = json.loads((run / "report.json").read_text())
    model, record = report["model"], report["variants"][0]
    job = {
        "folder": str(run / record["directory"]), "shared": str(run / "model"), "function": model["function"],
        "params": [[p["scope"], p["path"]] for p in model["parameters"]], "flags": report["target"]["flags"],
        "pipeline": "", "compile_timeout": 600, "reference": report["reference"]["kind"],
    }  # fmt: skip
    variant = Variant(job, None)  # type: ignore[arg-type]
    inputs = stored_inputs(variant.shared, 0, model["inputs"])
    return Baseline(report, record, variant, archives(job["params"]), inputs)
