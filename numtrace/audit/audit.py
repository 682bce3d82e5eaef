"""``numtrace passes --audit``: the parent of the worker, which it starts again where a pass takes it down."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from numtrace import __version__
from numtrace.audit.corpus import corpus
from numtrace.audit.document import FAULT, OUTCOMES, Audit, Audited, Finding, Refused, encode
from numtrace.audit.program import Program
from numtrace.dumps import schema
from numtrace.dumps.files import write_bytes
from numtrace.dumps.names import file_name
from numtrace.errors import ExitCode, RunError
from numtrace.passes import listing, pipeline, registry
from numtrace.preparation import make_folder
from numtrace.report.progress import Progress
from numtrace.targets import with_defaults
from numtrace.workers import Worker, raised

#: Its file in the directory.
FILE = "audit.json"
#: Seconds that a pass may take with one program, and a compilation of one.
SECONDS = 60.0


class Auditor:
    """Runs pipelines on programs. ``told`` has what became of each pair, by program and pass number."""

    def __init__(self, folder: Path, progress: Progress, python: str | None, flags: Sequence[str]):
        self._folder, self._progress, self._python = folder, progress, python
        self.flags = with_defaults(tuple(flags))
        self.told: dict[tuple[int, int], dict[str, Any]] = {}
        #: The compiler's version, once it is known.
        self.iree = ""
        self._op = ""

    def run(self, programs: Sequence[Program], pipelines: Sequence[str]) -> None:
        """Every pipeline on every program; a crash or a hang is the outcome of that pair alone, if it comes again.

        Raises:
            NumtraceError: the worker cannot do it at all.
        """
        work = make_folder(self._folder / "work").absolute()
        decomposing = listing.decomposing(self._python)
        start = (0, 0)
        while start[0] < len(programs):
            job: dict[str, Any] = {
                "kind": "audit",
                "folder": str(work),
                "programs": [{"name": p.name, "text": p.text, "data": p.data} for p in programs],
                "pipelines": list(pipelines),
                "decomposing": decomposing,
                "start": start,
                "flags": self.flags,
                "device": "local-sync",
                "compile_timeout": SECONDS,
            }
            at = self._follow(job, work / "worker.log", len(programs))
            if at is None:
                return
            number, index = at
            # Alone, in a process that has done nothing else: what dies of what was before accuses no pass.
            alone = Auditor(self._folder, self._progress, self._python, self.flags)
            pair = {"programs": [job["programs"][number]], "pipelines": [pipelines[index]], "start": (0, 0)}
            alone._follow(job | pair, work / "alone.log", 1)
            self.told[at] = alone.told[0, 0]
            start = (number, index + 1) if index + 1 < len(pipelines) else (number + 1, 0)

    def _follow(self, job: dict[str, Any], log: Path, count: int) -> tuple[int, int] | None:
        """The pair that a worker died at, noted in ``told``; None when it went through to the end."""
        at: tuple[int, int] | None = None
        with Worker(job, log, self._python) as worker:
            try:
                for event in worker.events(SECONDS):
                    match event["event"]:
                        case "stage":
                            at = self._at(event, count)
                        case "told":
                            self.told[tuple(event["at"])] = event
                        case "audited":
                            self.iree = event["iree_compiler"]
                            return None
                        case _:
                            raise raised(event)
            except RunError as error:
                if at is None or error.kind not in ("crash", "time-out"):
                    raise
                self.told[at] = {"outcome": "crashes", "reason": _death(error), "digest": "crashed"}
                return at
        raise RunError("the worker ended without a result", kind="exit")

    def _at(self, event: dict[str, Any], count: int) -> tuple[int, int]:
        """The pair that is begun; the first of each op is told."""
        number, index = event["at"]
        op = event["name"].partition(".")[0]
        if op != self._op:
            self._op = op
            self._progress.stage(f"{op}, from program {number + 1} of {count} on")
        return number, index


def audit(
    folder: Path,
    progress: Progress,
    *,
    patterns: Sequence[str] = (),
    programs: Sequence[Program] | None = None,
    python: str | None = None,
    flags: Sequence[str] = (),
) -> Audit:
    """Runs the passes that match ``patterns`` over ``programs`` and leaves the document in ``folder``.

    Without patterns: the preprocessing passes that ``iree-opt`` lists, and numtrace's own. What changes a program is
    kept there as two files, before and after.

    Raises:
        NumtraceError: a pattern matches nothing, the folder cannot be written, or the worker cannot do it.
    """
    started = time.perf_counter()
    chosen = corpus() if programs is None else tuple(programs)
    texts = spellings(patterns, python)
    whole, refused = listing.runnable(texts, python)
    auditor = Auditor(make_folder(folder), progress, python, flags)
    names = list(whole)
    auditor.run(chosen, [whole[name] for name in names])
    rows: list[Audited] = []
    seen: dict[tuple[Any, ...], str] = {}
    for index, name in enumerate(names):
        told = [auditor.told[number, index] for number in range(len(chosen))]
        if why := _everywhere(told):
            refused[name] = why
            continue
        made = (name.partition("{")[0], *(event["digest"] for event in told))
        rows.append(_audited(folder, name, whole[name], chosen, told, seen.setdefault(made, name)))
    document = Audit(
        tool=schema.Tool(name="numtrace", version=__version__),
        iree_compiler=auditor.iree,
        flags=auditor.flags,
        programs=len(chosen),
        passes=rows,
        refused=[Refused(name=name, reason=reason) for name, reason in refused.items()],
        seconds=time.perf_counter() - started,
    )
    write_bytes(folder / FILE, encode(document))
    return document


def spellings(patterns: Sequence[str], python: str | None) -> list[str]:
    """What is run: the passes that match, without options and with each that can be tried; numtrace's own if all."""
    passes = listing.chosen(patterns or listing.PREPROCESSING, python)
    texts = [text for one in passes for text in one.spellings()]
    if not patterns:
        known = registry.registered().passes.values()
        texts += [text for one in known for text in one.pipelines[:1]]
    distinct: dict[str, str] = {}
    for text in texts:
        distinct.setdefault(pipeline.canonical(text), text)
    return sorted(distinct.values(), key=lambda text: text.partition("{"))


def exit_code(document: Audit, findings: Sequence[Finding] | None = None) -> ExitCode:
    """1 for changed mathematics, 3 for failures, 4 for programs without a value, else 0.

    Of all findings, or of those that are worse than before.

    70 if numtrace itself failed at a program, which is no statement about a pass.
    """
    if findings is None:
        findings = [finding for row in document.passes for finding in row.findings]
    outcomes = {finding.outcome for finding in findings}
    if any(finding.reason.startswith(FAULT) for row in document.passes for finding in row.findings):
        return ExitCode.INTERNAL
    if "changes" in outcomes:
        return ExitCode.FINDING
    if outcomes & {"crashes", "fails"}:
        return ExitCode.FAILED
    return ExitCode.INCONCLUSIVE if "untold" in outcomes else ExitCode.OK


def _everywhere(told: Sequence[dict[str, Any]]) -> str:
    """Why it fails if it does so at every program for one reason: it lacks an option, such as a file."""
    reasons = {event.get("reason", "") if event["outcome"] == "fails" else "" for event in told}
    return (
        f"it fails at every program: {min(reasons)}"
        if len(reasons) == 1 and len(told) > 1 and any(reasons)
        else ""
    )


def _audited(
    folder: Path,
    name: str,
    whole: str,
    programs: Sequence[Program],
    told: Sequence[dict[str, Any]],
    first: str,
) -> Audited:
    counts = Counter(event["outcome"] for event in told)
    findings = []
    for program, event in zip(programs, told, strict=True):
        if event["outcome"] in ("keeps", "nothing"):
            continue
        files = {"before": "", "after": ""}
        if event.get("text"):
            place = folder / "changes" / file_name(name)
            for side, text in (("before", program.text), ("after", event["text"])):
                path = place / f"{program.name}.{side}.mlir"
                write_bytes(path, text.encode())
                files[side] = path.relative_to(folder).as_posix()
        keys = ("outcome", "reason", "max_abs", "rel", "confirmed", "ran", "witness")
        said = {key: event[key] for key in keys if key in event}
        findings.append(msgspec.convert({"program": program.name, **said, **files}, Finding))
    return Audited(
        name=name,
        pipeline=whole,
        counts={outcome: counts[outcome] for outcome in OUTCOMES},
        findings=findings,
        same_as="" if first == name else first,
    )


def _death(error: RunError) -> str:
    return (
        str(error).partition(" at: ")[0] if error.kind == "crash" else f"it ran longer than {SECONDS:.0f} s"
    )
