"""One dispatch of a variant by itself: its program, its real inputs, and runs of it by any route."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from iree.compiler import ir
from torch import Tensor

from numtrace.instrument.compiler import phase
from numtrace.instrument.detached import run_detached, write_raw
from numtrace.instrument.encodings import without_encodings
from numtrace.instrument.standalone import FUNCTION, Standalone, standalone, with_pipeline
from numtrace.instrument.tensor_type import TensorType
from numtrace.worker.routes import Route


@dataclass(frozen=True, slots=True)
class Setting:
    """What a variant is compiled and run with; ``timeout`` in seconds is for one compilation or one run."""

    flags: Sequence[str]
    device: str
    threads: int
    timeout: float


class Alone:
    """A dispatch with its real inputs. A context manager: leaving deletes the inputs, the rest in ``folder`` stays.

    ``operands`` are all operands of the ``flow.dispatch``, scalars included, in the dtypes of the IR
    (:class:`numtrace.worker.capture.Captured`).
    """

    def __init__(
        self, flow: ir.Module, site: str, operands: Sequence[Tensor], setting: Setting, folder: Path
    ):
        scalars = {i: v.item() for i, v in enumerate(operands) if v.dim() == 0}
        self.program: Standalone = standalone(flow, site, scalars)
        self.setting, self.folder = setting, folder
        self._operands = operands
        folder.mkdir(parents=True, exist_ok=True)
        self._inputs: Path | None = None

    def __enter__(self) -> Alone:
        self._inputs = Path(tempfile.mkdtemp(prefix="inputs-", dir=self.folder))
        for number, index in enumerate(self.program.fed):
            write_raw(self._operands[index], self._inputs / f"{number}.bin")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._inputs is not None:
            shutil.rmtree(self._inputs, ignore_errors=True)

    @property
    def inputs(self) -> list[tuple[TensorType, Path]]:
        """The type of each input and the file that it is in, raw."""
        assert self._inputs is not None
        return [(type_, self._inputs / f"{i}.bin") for i, type_ in enumerate(self.program.arguments)]

    def compile(self, route: Route, flags: Sequence[str]) -> Path:
        """Compiles with exactly ``flags``; returns the folder with ``dispatch.vmfb`` and the compiler's ``code/``.

        Raises:
            CompileError, UsageError: the compiler failed, or does not know a flag.
        """
        folder = self.folder / route.name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        text = (
            without_encodings(self.program.text)
            if route.plain and self.program.encoded
            else self.program.text
        )
        if route.pipeline is not None:
            text = with_pipeline(text, self.program.entry, route.pipeline)
        # Paths of the source and of the dumps are in the code: the same program must come from the same ones to be
        # the same code, byte for byte.
        source = (self.folder if text is self.program.text else folder) / "dispatch.mlir"
        source.write_text(text, encoding="utf-8")
        code = self.folder / "code"
        shutil.rmtree(code, ignore_errors=True)
        dumps = [f"--iree-hal-dump-executable-{kind}-to={code}" for kind in _DUMPED]
        try:
            phase(source, folder / "dispatch.vmfb", "flow", None, [*flags, *dumps], self.setting.timeout)
        finally:
            if code.exists():
                code.rename(folder / "code")
        return folder

    def run(self, route: Route) -> list[Tensor]:
        """Runs what :meth:`compile` made, in a process of its own.

        Raises:
            RunError: it failed, crashed or took too long.
        """
        device = self.setting.device
        if route.to_backend is not None and not device.startswith("local"):
            device = "local-task"
        return run_detached(
            self.folder / route.name / "dispatch.vmfb",
            FUNCTION,
            self.inputs,
            self.program.results,
            device=device,
            threads=self.setting.threads,
            timeout=self.setting.timeout,
            flags=route.run_flags,
        )


_DUMPED = ("sources", "configurations", "intermediates", "binaries")
