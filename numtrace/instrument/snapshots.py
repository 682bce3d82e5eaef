"""The module after each compiler pass that changed it, in the order in which the passes ran.

IREE prints them; the stream is split here. Printed one after another they are in order by construction, which
files of ``--mlir-print-ir-tree-dir`` are not: two functions are counted apart there, and two initializers
overwrite each other's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from numtrace.instrument.compiler import phase

#: One thread: a module in the hands of two passes cannot be printed whole.
_PRINTING = (
    "--mlir-print-ir-after-all",
    "--mlir-print-ir-after-change",
    "--mlir-print-ir-module-scope",
    "--mlir-disable-threading",
)
_HEADER = re.compile(
    r"^// -----// IR Dump After (?P<pass>.+?) \('(?P<op>[\w.]+)' operation(?:: (?P<symbol>@.*?))?\) //----- //\n",
    re.MULTILINE,
)
#: Passes that only run others, whose work is printed before.
_ADAPTORS = ("iree-op-pipeline-adaptor",)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The module in ``path`` as it is after the pass ``pipeline`` (with its options) ran on ``scope``.

    ``pipeline`` is empty for the end of a stage.
    """

    pipeline: str
    scope: str
    path: Path

    @property
    def name(self) -> str:
        """The pass without its options."""
        return self.pipeline.partition("{")[0]


def take(
    source: Path, target: Path, start: str | None, end: str, flags: Sequence[str], timeout: float | None
) -> list[Snapshot]:
    """Compiles ``source`` from phase ``start`` to ``end`` once more and keeps what every pass made of it.

    The files are put into the folder ``target``, numbered; the last snapshot is the end of the stage. A pass that
    changed nothing has none.

    Raises:
        CompileError: as without snapshots.
    """
    target.mkdir(parents=True, exist_ok=True)
    last = target / "end.mlir"
    printed = phase(source, last, start, end, [*flags, *_PRINTING], timeout)
    snapshots: list[Snapshot] = []
    before = ""
    for pipeline, scope, text in split(printed):
        if text == before:
            continue
        before = text
        name = pipeline.partition("{")[0]
        path = target / f"{len(snapshots):03}-{re.sub(r'[^A-Za-z0-9._-]', '_', name)}.mlir"
        path.write_text(text, encoding="utf-8")
        snapshots.append(Snapshot(pipeline, scope, path))
    return [*snapshots, Snapshot("", "builtin.module", last)]


def split(printed: str) -> Iterator[tuple[str, str, str]]:
    """Pass, the op that it ran on, and the module's text, for each module in what the compiler printed."""
    headers = list(_HEADER.finditer(printed))
    ends = [*(header.start() for header in headers[1:]), len(printed)]  # one, too, where there is no header
    for header, end in zip(headers, ends, strict=False):
        pipeline = _pipeline(header["pass"])
        if pipeline.startswith(_ADAPTORS):
            continue
        scope = " ".join(filter(None, (header["op"], header["symbol"])))
        yield pipeline, scope, _module(printed[header.end() : end])


def _pipeline(text: str) -> str:
    """``CSEPass: cse`` and, of older compilers, ``CSE (cse)``: the pass as a pipeline has it."""
    if old := re.fullmatch(r"\S+ \((.+)\)", text):
        return old[1]
    return text.partition(": ")[2] or text


def _module(text: str) -> str:
    """The module without the warnings that were printed after it; an empty line ends it, or its resources do."""
    module, gap, rest = text.partition("\n\n")
    if gap and rest.startswith("{-#"):
        resources, end, _ = rest.partition("#-}")
        return f"{module}\n\n{resources}{end}\n"
    return f"{module}\n"
