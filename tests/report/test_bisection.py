"""``numtrace bisect`` on a terminal, from documents alone."""

from __future__ import annotations

from pathlib import Path

from numtrace.bisect import exit_code, judge
from numtrace.dumps.bisection import Bisection, Ran, Side, SourceOp, Stage, Step, Untold
from numtrace.dumps.schema import Environment, Target, Tool
from numtrace.report.bisection import LINES, MOST, bisection_lines


def stage(name: str, *, known: bool = True, changed: bool = False, reason: str = "") -> Stage:
    gap = 0.5 if changed else 0.0
    return Stage(
        name=name, file=f"{name}.mlir", known=known, changed=changed, max_abs=gap, rel=gap, reason=reason
    )


def step(*passes: str, ops: int = 1, ir: str = "%0 = a.b", max_abs: float | None = 0.5) -> Step:
    return Step(
        stage="preprocessing",
        passes=[Ran(name=name, pipeline=f"{name}{{x=1}}" if name else "", on="util.func @main") for name in passes],
        ops=[SourceOp(name=f"op_{i}", kind="k", module=f"net.{i}", location="m.py:3:1") for i in range(ops)],
        changed=ops,
        max_abs=max_abs,
        rel=max_abs,
        before=Side(file="before.mlir", ir=ir),
        after=Side(file="after.mlir", ir=ir),
        snapshots=9,
        evaluated=5,
        exhaustive=False,
        unknown=[Untold(name=name, reason="no evaluation of x.y") for name in passes[:-1]],
    )  # fmt: skip


def document(stages: list[Stage], steps: list[Step], reference: str = "torch") -> Bisection:
    verdict, reason = judge(stages, steps, reference)
    return Bisection(
        tool=Tool(name="numtrace", version="0"),
        environment=Environment(
            iree_compiler="3", iree_runtime="3", torch="2", cpu="c", flush_denormals=True, threads=2
        ),
        model="net.mlir", sha256="", function="main",
        target=Target(backend="llvm-cpu", device="local-task", cpu="", flags=[]),
        passes=[], pipeline=None, verdict=verdict, reason=reason, stages=stages, steps=steps, notices=[], seconds=1.0,
    )  # fmt: skip


def text(found: Bisection) -> str:
    return "\n".join(line.plain for line in bisection_lines(found, Path("run"), 120))


GOOD = [stage("source"), stage("input"), stage("flow")]


def test_nothing_changed():
    found = document(GOOD, [])
    assert (found.verdict, exit_code(found)) == ("unchanged", 0)
    assert "from source to flow: no pass changes the mathematics" in found.reason


def test_a_stage_that_could_not_be_evaluated_is_never_called_the_same():
    found = document([GOOD[0], stage("input", known=False, reason="no evaluation of x.y"), GOOD[2]], [])
    assert (found.verdict, exit_code(found)) == ("inconclusive", 4)
    assert "input: no evaluation of x.y" in found.reason
    assert "not evaluated: no evaluation of x.y" in text(found)


def test_a_source_without_a_meaning_of_its_own_is_left_out_and_said_to_be():
    source = stage("source", known=False, reason="no evaluation of onnx.Y")
    assert document([source, *GOOD[1:]], [], "self").verdict == "unchanged"
    assert "before the input stage is not known" in document([source, *GOOD[1:]], [], "self").reason
    assert document([source, *GOOD[1:]], [], "torch").verdict == "inconclusive"
    assert document([source, GOOD[1], stage("flow", known=False)], [], "self").verdict == "inconclusive"


def test_one_pass_is_named_with_its_options_its_op_and_the_files():
    found = document([GOOD[0], stage("input", changed=True)], [step("fold", ops=3)])
    shown = text(found)
    assert (found.verdict, exit_code(found)) == ("found", 1)
    assert (
        "fold changes the mathematics: 0.5 at the output in exact arithmetic, first at op_0 and 2 more"
        in found.reason
    )
    for part in ("fold{x=1}, on util.func @main", "op_0 (net.0, m.py:3:1)", "run/before.mlir", "run/after.mlir",
                 "5 of 9 snapshots", "2 more that it changed: op_1, op_2"):  # fmt: skip
        assert part in shown


def test_an_interval_names_every_pass_in_it_and_why():
    found = document([GOOD[0], stage("input", changed=True)], [step("one", "two", "three")])
    assert "one of 3 passes, one to three changes the mathematics" in found.reason
    shown = text(found)
    for part in (
        "one of 3 passes",
        "one{x=1}",
        "two{x=1}",
        "three{x=1}",
        "after one and 1 more: no evaluation of x.y",
    ):
        assert part in shown


def test_of_a_long_interval_the_first_passes_and_the_last_are_named():
    found = document([GOOD[0], stage("input", changed=True)], [step(*(f"p{i}" for i in range(MOST + 5)))])
    shown = text(found)
    assert f"p{MOST - 1}{{x=1}}" in shown
    assert f"p{MOST}{{x=1}}" not in shown
    assert f"… and 5 more, to p{MOST + 4}" in shown


def test_long_ir_is_cut_and_says_so():
    found = document(
        [GOOD[0], stage("input", changed=True)], [step("fold", ir="\n".join(["%0 = a.b"] * (LINES + 7)))]
    )
    assert text(found).count("… 7 more lines") == 2


def test_a_nan_on_one_side_has_no_number():
    found = document([GOOD[0], stage("input", changed=True)], [step("fold", max_abs=None)])
    assert "a NaN or Inf at the output" in found.reason
    assert "a NaN or Inf on one side" in text(found)
