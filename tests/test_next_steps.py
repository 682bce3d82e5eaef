"""The commands that a run proposes: what was given goes along, and each command line is one that parses."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from numtrace.dumps import schema
from numtrace.dumps.finding import Finding
from numtrace.next_steps import next_steps
from numtrace.passes.model import Pass
from numtrace.request import Request

WINOGRAD = Pass("winograd", "", "", pipelines=("a",))
RAW = Pass("my-pass", "", "", pipelines=("func.func(my-pass{of=2})",))
CODE = Finding(kind="codegen", certainty="proven", op="matmul", text="off", sites=["main/3.0", "main/5.0"])


def variant(name: str, verdict: str, *findings: Finding) -> schema.Variant:
    return schema.Variant(
        name=name, passes=name.split("+"), pipeline=None, flags=[], status="ran", reason="", verdict=verdict,
        findings=[*findings],
    )  # fmt: skip


def steps(request: Request, *variants: schema.Variant) -> list[str]:
    report = SimpleNamespace(variants=variants)
    return next_steps(request, report, Path("a run"))


def test_changed_mathematics_is_bisected_with_what_was_given():
    request = Request(
        model="m.mlir", passes=(WINOGRAD, RAW), params=(("model", Path("w.irpa")), ("", Path("x y.irpa"))),
        inputs=("4xf32=1",), function="f", seed=3, flags=("--iree-llvmcpu-target-cpu=znver4",),
    )  # fmt: skip
    found = steps(request, variant("winograd", "pass-bug"), variant("winograd+my-pass", "pass-bug"))
    assert found == [
        "numtrace bisect m.mlir --pass winograd --params model=w.irpa --params 'x y.irpa' --input 4xf32=1 "
        "--function f --seed 3 -- --iree-llvmcpu-target-cpu=znver4"
    ]
    (raw,) = steps(request, variant("my-pass", "pass-bug"))
    assert "--pass 'func.func(my-pass{of=2})'" in raw


def test_accused_code_is_run_alone_by_other_routes():
    found = steps(Request(), variant("demote-bf16", "codegen-bug", CODE))
    assert found == ["numtrace rerun 'a run' --variant demote-bf16 --site main/3.0 --routes"]


def test_what_is_right_or_known_asks_for_nothing():
    assert steps(Request(), variant("demote-bf16", "ok"), variant("winograd", "inconclusive", CODE)) == []
