"""``bench/opinfo.py``: what is not right needs a reason, and a reason needs what it is one for."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from scripts import BENCH, scripts

MINE = [
    {"cases": ["gelu#1"], "kind": "iree-wrong", "outcome": "flow differs"},
    {"cases": ["half#*", "cast#0"], "kind": "rounding", "outcome": "source differs"},
]
RIGHT = ("agrees", "")


@pytest.fixture(scope="module")
def bench():
    """The script and the table of reasons, as modules."""
    return scripts("opinfo", "reasons")


@pytest.mark.parametrize(
    ("results", "whole", "code", "says"),
    [
        ({"abs": [RIGHT, RIGHT]}, False, 0, "of 2 that IREE lowers, 2 agree; the others: explained 0 (none), not 0"),
        ({"abs": [RIGHT, ("not lowered", "")]}, False, 0, "of 1 that IREE lowers, 1 agree"),
        ({"gelu": [RIGHT, ("flow differs", "by 1")]}, False, 0, "explained 1 (iree-wrong 1), not 0"),
        # Of the same sample something else, of the same operator another sample, and of another operator.
        ({"gelu": [RIGHT, ("source differs", "by 1")]}, False, 1, "gelu#1: source differs: by 1"),
        ({"gelu": [("flow differs", "by 1")]}, False, 1, "gelu#0: flow differs: by 1"),
        ({"exp": [RIGHT, ("flow differs", "by 1")]}, False, 1, "exp#1: flow differs: by 1"),
        ({"exp": [("crashes", "exit code 1")]}, False, 1, "exp#0: crashes: exit code 1"),
        ({"exp": [("numtrace fails", "KeyError")]}, False, 1, "exp#0: numtrace fails: KeyError"),
        # A reason without a sample tells only where all operators were tried.
        ({"half": [("source differs", "")], "gelu": [RIGHT, ("flow differs", "")]}, True, 1, "a case: cast#0\n"),
        ({"half": [("source differs", "")], "gelu": [RIGHT, ("flow differs", "")]}, False, 0, "rounding 1"),
        (
            {
                "half": [("source differs", ""), ("source differs", "")],
                "cast": [("source differs", "")],
                "gelu": [RIGHT, ("flow differs", "")],
            },
            True,
            0,
            "explained 4 (rounding 3, iree-wrong 1), not 0",
        ),
    ],
)  # fmt: skip
def test_the_report(bench, tmp_path, monkeypatch, capsys, results, whole, code, says) -> None:
    opinfo, _ = bench
    monkeypatch.setattr(opinfo, "read", lambda table: MINE)
    for name, outcomes in results.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(outcomes))
    assert opinfo.report([*tmp_path.glob("*.json")], whole) == code
    assert says in capsys.readouterr().out


def test_every_reason_says_why_and_what_was_checked(bench) -> None:
    opinfo, reasons = bench
    table = reasons.read(opinfo.TABLE)
    assert table
    for reason in table:
        assert set(reason) == {"cases", "kind", "outcome", "because", "checked"}
        assert all("#" in case for case in reason["cases"])
    cases = [case for reason in table for case in reason["cases"]]
    assert len(cases) == len({*cases})


@pytest.mark.parametrize(("name", "unlike"), [("sinc", False), ("rad2deg", True)])
def test_an_operator(tmp_path, name: str, unlike: bool) -> None:
    """In a process of its own: the script forks, which threads of other tests would not survive."""
    pytest.importorskip("expecttest", reason="PyTorch's test helpers need it")
    command = [sys.executable, str(BENCH / "opinfo.py"), str(tmp_path), "--only", name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    outcomes = json.loads((tmp_path / f"{name}.json").read_text())
    assert {outcome for outcome, _ in outcomes} == {"flow differs" if unlike else "agrees"}, done.stdout
    assert done.returncode == 0, done.stdout
