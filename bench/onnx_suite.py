"""numtrace on the ONNX backend node tests: ``python bench/onnx_suite.py FOLDER``, after ``bench/onnx_cases.py FOLDER``.

Of every case that plain ``iree-compile`` accepts it says:

* evaluator: whether numtrace's reference, the exact meaning of the source's operators where the evaluator knows them
  and otherwise of the program that IREE begins with, is what the suite expects, within the suite's tolerance;
* compiled: whether the output of the compiled program is, as ``iree-run-module`` returns it;
* numtrace's verdict, with the suite's output as ``--expected`` and its tolerance as ``--atol`` and ``--rtol``. ``ok``
  beside a wrong output is a fault of numtrace.

What is not right in all three must have its reason in ``onnx_reasons.toml``: with cases that have none, with reasons
that no case has any more, or with an ``ok`` beside a wrong output the exit code is 1.

Results are kept beside the cases; those of the same numtrace commit are not made again.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from reasons import Reason, counts, explained, read
from rich.console import Console

from numtrace.dumps.schema import Report, Tolerance
from numtrace.errors import NumtraceError
from numtrace.report.progress import Progress
from numtrace.request import Request
from numtrace.session import Session

#: The reasons of the cases that are not right.
TABLE = "onnx_reasons.toml"
#: Seconds for one case.
_PATIENCE = 600.0
#: Seconds after which a program of a few elements has hung.
_HANGS = 30.0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="cases with this in their names")
    parser.add_argument(
        "--share", default="0/1", help="I/N: every N-th case from the I-th, for several at once"
    )
    parser.add_argument("--again", action="store_true", help="also cases whose result is there")
    parser.add_argument("--pending", action="store_true", help="only cases that are not known to be right")
    parser.add_argument("--report", action="store_true", help="print what is there and run nothing")
    chosen = parser.parse_args()
    first, step = map(int, chosen.share.split("/"))
    cases = [
        path.parent for path in sorted(chosen.folder.glob("*/case.json")) if chosen.only in path.parent.name
    ]
    accepted = [case for case in cases if json.loads((case / "case.json").read_text())["accepted"]]
    version = _commit()
    for case in [] if chosen.report else accepted[first::step]:
        kept = _kept(case)
        if chosen.pending and kept is not None and _is_right(kept):
            continue
        if chosen.again or kept is None or kept["commit"] != version:
            result = {"commit": version} | judged(case)
            (case / "result.json").write_text(json.dumps(result, indent=1))
            print(_line(case, result), flush=True)
    return report(accepted)


def judged(case: Path) -> dict[str, Any]:
    """What numtrace says of a case, and what is right."""
    about = json.loads((case / "case.json").read_text())
    wanted = [np.load(case / f"expected{n}.npy") for n in range(len(about["expected"]))]
    inputs = [text.replace("@", f"@{case}/") for text in about["inputs"]]
    started = time.perf_counter()
    result: dict[str, Any] = {"compiled": _compiled(case, inputs, wanted, about)}
    out = case / "run"
    shutil.rmtree(out, ignore_errors=True)
    request = Request(
        model=str(case / "model.mlir"), inputs=tuple(inputs), out=out, run_timeout=_PATIENCE, threads=1,
        flags=tuple(about.get("flags", ())), tolerance=Tolerance(atol=about["atol"], rtol=about["rtol"]),
        expected=tuple(case / f"expected{n}.npy" for n in range(len(wanted))),
    )  # fmt: skip
    exact: list[np.ndarray] = []
    with Progress(Console(file=io.StringIO())) as progress:
        session = Session(request, progress)
        try:
            (variant,) = session.run().variants
            result |= {"verdict": variant.verdict, "reason": variant.reason}
            result["unbounded"] = variant.coverage.unbounded if variant.coverage else 0
            exact = _exact(out / "variants" / "baseline", about["expected"])
            if not exact:
                exact = _evaluated(out / "model", session.report(), about["expected"])
        except NumtraceError as error:
            result |= {"verdict": "error", "reason": str(error)}
    result["evaluator"] = right(exact, wanted, about) if len(exact) == len(wanted) else "uncovered"
    result["seconds"] = round(time.perf_counter() - started, 2)
    shutil.rmtree(out, ignore_errors=True)
    return result


def _exact(folder: Path, types: list[str]) -> list[np.ndarray]:
    """The reference that a run left, in the suite's types; of a program that returned others there is none."""
    paths = [folder / f"reference{n}.npy" for n in range(len(types))]
    found = [np.load(path) for path in paths if path.exists()]
    return [rounded(value, type_) for value, type_ in zip(found, types, strict=False)]


def _evaluated(folder: Path, report: Report, types: list[str]) -> list[np.ndarray]:
    """The reference where a run left none, since the program fails or has no sites; nothing where it is not known."""
    from numtrace.errors import UncoveredOp
    from numtrace.evaluate.program import Program
    from numtrace.instrument.dtypes import to_torch
    from numtrace.worker.exact import exact_outputs
    from numtrace.worker.modules import archives

    stage = "source" if report.reference.kind == "onnx" else "input"
    program = Program.parse((folder / f"{stage}.mlir").read_text(encoding="utf-8"))
    params = archives((one.scope, one.path) for one in report.model.parameters)
    count = len(list((folder / "inputs" / "0").glob("*.npy")))
    inputs = [to_torch(np.load(folder / "inputs" / "0" / f"{n}.npy")) for n in range(count)]
    try:
        values = exact_outputs(program, report.model.function, params, inputs)
    except UncoveredOp:
        return []  # on the way of the source; an undefined result is one too
    made = [value.double() if value.is_floating_point() else value for value in values]
    return [rounded(value.numpy(), type_) for value, type_ in zip(made, types, strict=False)]


def _compiled(case: Path, inputs: list[str], wanted: list[np.ndarray], about: dict[str, Any]) -> str:
    """Whether the compiled program's outputs are right; kept, since it does not depend on numtrace."""
    kept, program = case / "compiled.txt", case / "model.vmfb"
    if not kept.exists() or kept.stat().st_mtime < program.stat().st_mtime:
        made = _plainly_run(case, inputs, about["expected"])
        kept.write_text(right(made, wanted, about) if made else "did not run")
    return kept.read_text()


def rounded(value: np.ndarray, dtype: str) -> np.ndarray:
    """A value in the type of the suite's output: floats rounded once, integers, which IREE has no signs of, wrapped.

    A fraction for an integer stays one: it is no value of the type.
    """
    target = np.dtype(getattr(ml_dtypes, dtype, dtype))
    if target.kind in "iu" and value.dtype.kind == "f" and not np.array_equal(value, np.trunc(value)):
        return value
    with np.errstate(all="ignore"):
        return (value.astype(np.int64) if target.kind in "iu" else value).astype(target)


def _plainly_run(case: Path, inputs: list[str], types: list[str]) -> list[np.ndarray] | None:
    """The outputs of the compiled program, without numtrace; None when it does not return any."""
    raw = [type_ if hasattr(ml_dtypes, type_) else None for type_ in types]
    outputs = [case / f"made{n}.{'bin' if type_ else 'npy'}" for n, type_ in enumerate(raw)]
    command = [
        "iree-run-module", f"--module={case / 'model.vmfb'}", "--device=local-task",
        *(f"--input={text}" for text in inputs), *(f"--output=@{path}" for path in outputs),
    ]  # fmt: skip
    # In a session of its own: the command is a script that starts the program, which may hang.
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    ) as process:
        try:
            if process.wait(timeout=_HANGS):
                return None
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return None
    made = [
        np.fromfile(path, getattr(ml_dtypes, type_)) if type_ else np.load(path)
        for path, type_ in zip(outputs, raw, strict=True)
    ]
    return [rounded(value, type_) for value, type_ in zip(made, types, strict=True)]


def right(made: list[np.ndarray], wanted: list[np.ndarray], about: dict[str, Any]) -> str:
    """``yes``, or how far off; by the suite's own comparison."""
    for n, (value, want) in enumerate(zip(made, wanted, strict=True)):
        value = value.reshape(want.shape) if value.size == want.size else value
        if value.shape != want.shape:
            return f"output {n} has shape {value.shape} instead of {want.shape}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value, want = value.astype(np.float64), want.astype(np.float64)
            close = np.isclose(value, want, rtol=about["rtol"], atol=about["atol"], equal_nan=True)
            gap = np.abs(value - want)
        if not close.all():
            return f"output {n}: {int((~close).sum())} of {close.size} off by up to {gap[~close].max():.3g}"
    return "yes"


def report(accepted: list[Path]) -> int:
    results = {case.name: kept for case in accepted if (kept := _kept(case)) is not None}
    verdicts = Counter(result["verdict"] for result in results.values())
    evaluator = Counter(_of_evaluator(result) for result in results.values())
    not_right = {name: result for name, result in results.items() if not _is_right(result)}
    told = explained(read(TABLE), not_right, holds)
    wrong = [name for name, result in results.items() if result["compiled"] != "yes"]
    false_ok = [name for name in wrong if results[name]["verdict"] == "ok"]
    stale = told.stale if len(results) == len(accepted) else []
    for name in told.unexplained:
        print(_line(Path(name), results[name]))
    for cases in stale:
        print(f"a reason without a case: {cases}")
    commits = Counter(result["commit"] for result in results.values())
    if len(commits) > 1:
        print(f"results of several commits: {counts(commits)}")
    print(f"{len(accepted)} cases accepted by iree-compile, {len(results)} judged: {counts(verdicts)}")
    print(f"evaluator: {counts(evaluator)}")
    print(
        f"compiled output beyond the suite's tolerance: {len(wrong)}; of these ok: {len(false_ok)}", *false_ok
    )
    print(f"not right in all: {told}")
    return int(bool(false_ok or told.unexplained or stale))


def _is_right(result: dict[str, Any]) -> bool:
    return (result["evaluator"], result["compiled"], result["verdict"]) == ("yes", "yes", "ok")


def _of_evaluator(result: dict[str, Any]) -> str:
    return {"yes": "agrees", "uncovered": "uncovered"}.get(result["evaluator"], "differs")


def holds(reason: Reason, result: dict[str, Any]) -> bool:
    """A reason is one for what it names: another verdict of the same case has none."""
    return result["verdict"] in reason["verdicts"] and _of_evaluator(result) == reason["evaluator"]


def _line(case: Path, result: dict[str, Any]) -> str:
    return (
        f"{case.name}: {result['verdict']}, evaluator {result['evaluator']}, compiled {result['compiled']}: "
        f"{(result['reason'] or '')[:160]}"
    )


def _kept(case: Path) -> dict[str, Any] | None:
    path = case / "result.json"
    return json.loads(path.read_text()) if path.exists() else None


def _commit() -> str:
    root = Path(__file__).parents[1]
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=root, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


if __name__ == "__main__":
    os.environ.setdefault("COLUMNS", "200")
    sys.exit(main())
