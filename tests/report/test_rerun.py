"""The record of ``numtrace rerun`` as lines."""

from __future__ import annotations

from numtrace.report.rerun import rerun_lines


def route(name, status="ran", gap=None, **more):
    measure = None if gap is None else {"max_abs": gap, "rel_l2": gap, "max_ulp": None, "nan": 0, "inf": 1}
    return {
        "name": name, "why": f"why {name}", "status": status, "reason": None, "as_own": None, "measure": measure,
    } | more  # fmt: skip


def record(*routes, **more):
    return {
        "site": "main/3.0", "variant": "winograd", "op": "conv_1", "ops": ["conv_1", "add"], "dtype": "f32",
        "shape": [4, 2], "entry": "main_dispatch_3_conv", "inputs": ["4x4xf32"], "flags": ["--a", "--b=c d"],
        "more": [], "exact": None, "as_traced": True, "deterministic": True, "folder": "/runs/1/alone",
        "in_run": {
            "max_abs": 0.5, "rel_l2": 0.25, "max_ulp": 3.0, "nan": 2, "inf": 0, "code": "suspect", "bound_ratio": 1.5,
        },
        "routes": [route("own", gap=0.5), *routes],
    } | more  # fmt: skip


def text(record, width=160):
    return "\n".join(line.plain for line in rerun_lines(record, None, width))


def row(shown, name):
    table = shown[shown.index("error of") :]
    return next(line.split() for line in table.splitlines() if line.strip().startswith(name))


def test_identity_and_figures():
    shown = text(record())
    assert "main/3.0 of winograd, alone" in shown
    assert "conv_1 + add" in shown and "4x2xf32" in shown and "'--b=c d'" in shown
    assert row(shown, "in the run")[3:] == ["5.00e-01", "2.50e-01", "3.00e+00", "2", "0", "1.5"]
    assert row(shown, "alone  ")[1:6] == ["5.00e-01", "5.00e-01", "-", "0", "1"]
    assert "the same value as in the run, bit for bit; two runs are equal" in shown


def test_what_came_of_each_route():
    shown = text(
        record(
            route("vmvx", gap=1e-3, as_own=False),
            route("no-vectors", gap=0.5, as_own=True),
            route("in-order", "same-code", as_own=True),
            route("no-data-tiling", "unfit", reason="its tensors have no encodings"),
            route("generic-cpu", "compile-failed", reason="too large a vector"),
        )
    )
    assert row(shown, "vmvx")[1] == "1.00e-03"
    assert "the same values as alone" in next(s for s in shown.splitlines() if "no-vectors" in s)
    assert row(shown, "in-order")[1] == "5.00e-01"  # own's: it was not run again
    assert row(shown, "no-data-tiling")[1:7] == ["-"] * 6
    assert "not tried: its tensors have no encodings" in shown
    assert "generic-cpu: compile-failed: too large a vector" in shown


def test_a_dispatch_that_is_another_alone_or_does_not_run():
    shown = text(record(as_traced=False, deterministic=False))
    assert "another value than in the run; two runs differ: it is not deterministic" in shown
    failed = record(routes=[route("own", "run-failed", reason="it died of SIGSEGV")], as_traced=None)
    assert "run-failed: it died of SIGSEGV" in text(failed)


def test_no_exact_value():
    shown = text(record(exact="no evaluation of foo.bar", in_run={}))
    assert "no exact value to compare with: no evaluation of foo.bar" in shown
    assert row(shown, "in the run")[3:] == ["-"] * 6
