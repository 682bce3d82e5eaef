"""One variant in its worker: the job, the events as they come, and what a crash was about."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import Any

from numtrace.dumps.records import site_record
from numtrace.dumps.rundir import VariantFolder
from numtrace.errors import ExitCode, RunError
from numtrace.preparation import events
from numtrace.report.progress import Progress
from numtrace.request import Request
from numtrace.workers import placed


class Attempt:
    """Runs ``job`` for a variant that is kept in ``folder``. ``sites`` are its sites, as far as they came."""

    def __init__(self, job: dict[str, Any], folder: VariantFolder, request: Request, progress: Progress):
        self._job, self._folder, self._path = job, folder, Path(job["folder"])
        self._request, self._progress = request, progress
        self.sites: list[dict[str, Any]] = []

    def run(self) -> dict[str, Any]:
        """The event that ends the job; an ``error`` where it crashed or ran out of time."""
        try:
            return self._follow()
        except RunError as error:
            message = str(error)
            if error.kind == "crash" and (where := self._locate()):
                message += f"; {where}"
            if error.kind == "crash" and (why := self._explain()):
                message += f"; {why}"
            return {
                "event": "error",
                "error": "RunError",
                "kind": error.kind,
                "message": message,
                "exit_code": int(ExitCode.FAILED),
            }

    def _follow(self) -> dict[str, Any]:
        """Keeps the sites as they come and returns the event that ends the job."""
        total = 0
        with closing(events(self._job, self._path / "worker.log", self._request, self._progress)) as coming:
            for event in coming:
                match event["event"]:
                    case "stage":
                        total = event.get("sites", total)
                    case "site":
                        self.sites.append(event["record"])
                        self._folder.append_site(site_record(event["record"]))
                        self._progress.site(len(self.sites), max(total, len(self.sites)))
                    case _:
                        return event
        raise RunError("the worker ended without a result", kind="exit")

    def _again(self, kind: str) -> Generator[dict[str, Any], None, None]:
        """The events of another job on what the variant's own left in its folder."""
        log = self._path / f"{kind}.log"
        return events(self._job | {"kind": kind}, log, self._request, self._progress)

    def _locate(self) -> str | None:
        """In which dispatch the program dies, by running its traced form again; else None."""
        if not (self._path / "traced.vmfb").exists():
            return None
        order: list[dict[str, str]] = []
        reached: list[str] = []
        try:
            with closing(self._again("locate")) as coming:
                for event in coming:
                    match event["event"]:
                        case "order":
                            order = event["sites"]
                        case "begin":
                            reached = []
                        case "reached":
                            reached.append(event["id"])
                        case _:
                            return None
        except RunError:
            pass
        ids = [site["id"] for site in order]
        if ids[: len(reached)] == reached and len(reached) < len(order):
            site = order[len(reached)]
            return f"it dies in dispatch {site['id']}" + (f", {site['op']}" if site["op"] else "")
        return f"it dies after dispatch {reached[-1]}" if reached else None

    def _explain(self) -> str | None:
        """What is undefined with these inputs, which a crash may come of; None when nothing is.

        In the source, where that is what is evaluated. Where it is the input stage, the source may well have a result:
        StableHLO leaves out a scatter's updates that are out of bounds, what IREE makes of it has no such rule.
        """
        where = "at the input stage" if self._job["reference"] == "self" else "in the source"
        try:
            with closing(self._again("explain")) as coming:
                for event in coming:
                    if event["event"] == "error" and event["kind"] == "undefined":
                        return f"{where} {placed(event)}"
        except RunError:
            pass
        return None
