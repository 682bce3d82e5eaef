"""Before a dispatch's code is accused: its real inputs, a second witness, and what might explain the error."""

from __future__ import annotations

import re
from typing import Any

from iree.compiler import ir

from numtrace.attribute.findings import accused, codegen_finding
from numtrace.errors import NumtraceError
from numtrace.evaluate.program import Program
from numtrace.worker.alone import Alone, Setting
from numtrace.worker.capture import Captured
from numtrace.worker.compilation import Variant
from numtrace.worker.judge import Judge
from numtrace.worker.rerun import capture
from numtrace.worker.witness import witness

#: Seconds for one compilation or run of a dispatch alone, as of ``numtrace rerun``. Where plain loops or an interpreter
#: need longer, that route is not heard; all of them together must not outlast the run itself by hours.
PATIENCE = 120.0

#: Findings that are heard, the worst first: each is one more run of the program and some eight compilations.
HEARD = 8


def codegen_findings(variant: Variant, records: list[dict[str, Any]], seed: int) -> list[dict[str, Any]]:
    """One finding for each executable with a site beyond its bound, heard with a second witness.

    Args:
        records: the site records of the traced run.
        seed: that of the inputs that it ran on.
    """
    groups = accused(records)
    if not groups:
        return []
    module = ir.Module.parse(variant.file("flow").read_text(encoding="utf-8"), ir.Context())
    program = Program(module)
    findings = []
    for number, sites in enumerate(groups, start=1):
        if number > HEARD:
            confirmed = _confirmed(variant, sites[0])
            why = f"the worst {HEARD} findings were heard; numtrace rerun hears any dispatch"
            findings.append(_unheard(sites, confirmed, why))
            continue
        stage = f"second witness {number} of {len(groups)}: {sites[0]['op']}"
        findings.append(_heard(variant, module, program, sites, seed, stage))
    return findings


def _heard(
    variant: Variant,
    module: ir.Module,
    program: Program,
    sites: list[dict[str, Any]],
    seed: int,
    stage: str,
) -> dict[str, Any]:
    site, _, result = sites[0]["id"].rpartition(".")
    confirmed = _confirmed(variant, sites[0])
    variant.channel.stage(stage, timed=True)
    try:
        captured: Captured = capture(variant.job | {"site": site, "seed": seed}, program)
        judge = Judge(program, captured, int(result))
        in_order = sites[0]["code"] == "suspect" and judge.as_summed_in_order(captured.results)
        record = None
        if not in_order:
            variant.channel.stage(stage)  # each compilation and run has a limit of its own
            with Alone(module, site, captured.operands, _setting(variant), _folder(variant, site)) as alone:
                record = witness(alone, captured.results, judge, defined=judge.defined)
    except (NumtraceError, MemoryError, OSError, ir.MLIRError) as error:
        # All that was measured stands; only the witness is missing.
        return _unheard(sites, confirmed, str(error) or type(error).__name__)
    except RuntimeError as error:
        if "can't allocate memory" not in str(error):
            raise
        return _unheard(sites, confirmed, "there was not enough memory")
    return codegen_finding(sites, record, in_order=in_order, confirmed=confirmed)


def _confirmed(variant: Variant, site: dict[str, Any]) -> bool:
    """Whether torch, or the meaning of the ONNX operators, agrees with numtrace's reading of the dispatch."""
    return variant.job["reference"] != "self" and site["match"] in ("verified", "ambiguous")


def _unheard(sites: list[dict[str, Any]], confirmed: bool, why: str) -> dict[str, Any]:
    return codegen_finding(sites, None, in_order=False, confirmed=confirmed) | {"unheard": why}


def _setting(variant: Variant) -> Setting:
    job = variant.job
    return Setting(variant.flags, job["device"], job["threads"], min(variant.timeout, PATIENCE))


def _folder(variant: Variant, site: str):
    return variant.folder / "witness" / re.sub(r"[^A-Za-z0-9.]+", "-", site)
