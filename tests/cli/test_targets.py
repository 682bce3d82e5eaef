"""Targets and devices from the command line, run for real where this host can."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("options", "target"),
    [
        ([], ("llvm-cpu", "local-task")),
        (["--device", "local-sync"], ("llvm-cpu", "local-sync")),
        (["--target", "vmvx"], ("vmvx", "local-task")),
        (["--target", "vmvx", "--device", "local-sync"], ("vmvx", "local-sync")),
    ],
)
def test_what_is_run_where(numtrace, layer, options, target):
    result = numtrace("run", *layer, "--json", *options)
    assert result.code == 0
    document = result.document
    assert (document["target"]["backend"], document["target"]["device"]) == target
    (baseline,) = document["variants"]
    assert baseline["verdict"] == "ok"
    assert baseline["traced_equal"] is True and baseline["repeats"] is None
    assert baseline["coverage"]["unbounded"] == 0


def test_two_targets(numtrace, layer):
    result = numtrace("run", *layer, "--target", "vmvx", "--", "--iree-hal-target-backends=llvm-cpu")
    assert result.code == 2
    assert "--target vmvx was given and --iree-hal-target-backends=llvm-cpu too" in result.err


def test_a_target_that_iree_does_not_have(numtrace, layer):
    result = numtrace("run", *layer, "--target", "abacus")
    assert result.code == 2
    assert "'abacus' not registered; registered backends: [" in result.err.splitlines()[-1]


def test_a_device_for_other_code(numtrace, layer):
    result = numtrace("run", *layer, "--device", "cuda")
    assert result.code == 2
    assert "--device cuda does not run code for llvm-cpu: give --target cuda, or" in result.err


def test_the_search_for_a_pass_needs_no_device_of_the_target(numtrace, layer):
    result = numtrace("bisect", *layer, "--target", "vmvx", "--json")
    assert result.code == 0
    assert result.document["target"]["backend"] == "vmvx"
    assert result.document["verdict"] == "unchanged"


def test_doctor_tells_the_devices_that_can_be_opened_from_the_others(numtrace):
    result = numtrace("doctor")
    (line,) = [line for line in result.out.splitlines() if line.startswith("devices")]
    usable, *others = line.removeprefix("devices").strip().split("; ")
    assert {"local-sync", "local-task"} <= set(usable.split(", "))
    assert all(other.startswith("not ") for other in others)
    assert "Error creating driver" not in result.out
    assert result.code == 0
