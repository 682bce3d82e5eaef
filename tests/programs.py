"""Small programs that tests compile for real, and a way to run one variant of them without the command line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numtrace.instrument.parameters import write_irpa
from numtrace.passes import probe, registry
from numtrace.worker.prepare import prepare
from numtrace.worker.read import read
from numtrace.worker.variant import run_variant

FLAGS = ["--iree-hal-target-backends=llvm-cpu", "--iree-llvmcpu-target-cpu=host"]


def conv_program(init: str, *, channels: int = 8, size: int = 12) -> str:
    """One 3x3 convolution, NCHW, of an image that is padded; ``init`` is ``zero``, ``bias`` or a number."""
    c, n = channels, size
    image, out = f"tensor<1x{c}x{n + 2}x{n + 2}xf32>", f"tensor<1x{c}x{n}x{n}xf32>"
    weight = f"tensor<{c}x{c}x3x3xf32>"
    value = "0.0" if init in ("zero", "bias") else init
    bias = (
        f"""
    %b = util.global.load @bias : tensor<{c}xf32>
    %init = linalg.broadcast ins(%b : tensor<{c}xf32>) outs(%empty : {out}) dimensions = [0, 2, 3]"""
        if init == "bias"
        else f"""
    %init = linalg.fill ins(%value : f32) outs(%empty : {out}) -> {out}"""
    )
    return f"""
util.global private @w = #flow.parameter.named<"model"::"w"> : {weight}
util.global private @bias = #flow.parameter.named<"model"::"bias"> : tensor<{c}xf32>
util.func public @main(%x: {image}) -> {out} {{
    %w = util.global.load @w : {weight}
    %value = arith.constant {value} : f32
    %empty = tensor.empty() : {out}{bias}
    %y = linalg.conv_2d_nchw_fchw {{dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}}
        ins(%x, %w : {image}, {weight}) outs(%init : {out}) -> {out}
    util.return %y : {out}
}}
"""


@dataclass
class Ran:
    """What a variant's worker sent."""

    record: dict[str, Any]
    sites: list[dict[str, Any]]
    prepared: dict[str, Any]

    def matches(self) -> dict[str, int]:
        states = [site["match"] for site in self.sites]
        return {state: states.count(state) for state in set(states)}


class Recorder:
    """Stands for the channel to the parent: keeps the events."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def send(self, event: str, **fields: Any) -> None:
        self.events.append({"event": event, **json.loads(json.dumps(fields))})

    def stage(self, name: str, **fields: Any) -> None:
        pass


class Bench:
    """Prepares a program once and runs variants of it in this process, the baseline first."""

    def __init__(
        self,
        folder: Path,
        text: str,
        arrays: dict[str, Any] | None = None,
        params: Sequence[tuple[str, str]] = (),
        inputs: Sequence[str] = (),
        flags: Sequence[str] = FLAGS,
    ):
        self.folder = folder
        (folder / "model").mkdir(parents=True)
        model = folder / "program.mlir"
        model.write_text(text)
        self.params = [list(param) for param in params]
        if arrays:
            write_irpa(folder / "weights.irpa", arrays)
            self.params.append(["model", str(folder / "weights.irpa")])
        self._job = {
            "folder": str(folder / "model"), "shared": str(folder / "model"), "model": str(model), "function": None,
            "params": self.params, "inputs": [*inputs], "expected": [], "seed": 0, "seeds": 1, "flags": [*flags],
            "device": "local-task", "reference_device": "cpu", "threads": 2, "compile_timeout": 120.0,
            "tolerance": None, "known": {},
        }  # fmt: skip
        recorder = Recorder()
        read(self._job, recorder)
        prepare(self._job | {"read": recorder.events[-1]}, recorder)
        self.prepared = recorder.events[-1]
        self.baseline: Ran | None = None

    def job(self, folder: Path, *passes: str, flags: Sequence[str] = ()) -> dict[str, Any]:
        """What every job on the prepared program has in common; ``folder`` is its own."""
        passing = ("function", "arguments", "results", "reference", "params")
        return self._job | {key: self.prepared[key] for key in passing} | {
            "folder": str(folder),
            "passes": list(passes),
            "pipeline": probe.join([registry.get(name) for name in passes]),
            "flags": [*self._job["flags"], *flags],
        }  # fmt: skip

    def table(self) -> list[dict[str, Any]]:
        """The source ops by their stamp."""
        return json.loads((self.folder / "model" / "ops.json").read_text())

    def run(self, *passes: str, flags: Sequence[str] = ()) -> Ran:
        """Runs the variant with ``passes`` (none: the baseline) and returns what its worker sent."""
        folder = self.folder / (
            "-".join(str(i) for i, _ in enumerate(passes)) + "v" + str(len(list(self.folder.iterdir())))
        )
        folder.mkdir()
        base = self.baseline
        job = self.job(folder, *passes, flags=flags) | {
            "is_baseline": not passes and not flags,
            "baseline_folder": None if base is None else base.record["folder"],
            "baseline_constant": None if base is None else base.record["split"]["semantic"]["constant"],
        }
        recorder = Recorder()
        run_variant(job, recorder)
        ran = Ran(
            recorder.events[-1] | {"folder": str(folder)},
            [e["record"] for e in recorder.events if e["event"] == "site"],
            self.prepared,
        )
        ran.record["differing"] = [site for site in ran.sites if site["match"] == "differs"]
        if not passes and not flags:
            self.baseline = ran
        return ran
