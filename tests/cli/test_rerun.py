"""``numtrace rerun`` and the code view of ``numtrace show``, as a user runs them."""

from __future__ import annotations

import json


def test_one_dispatch_again(numtrace, layer, tmp_path):
    """Its only dispatch makes 8.515625 everywhere, which is exact in f32."""
    assert numtrace("run", *layer, "--out", "run").code == 0
    done = numtrace("rerun", "run", "--site", "main/0.0", "--json")
    assert done.code == 0, done.err
    record = json.loads(done.out)
    assert (record["format"], record["site"], record["variant"]) == ("numtrace.rerun", "main/0.0", "baseline")
    assert record["as_traced"] and record["deterministic"]
    assert record["in_run"]["max_abs"] == record["routes"][0]["measure"]["max_abs"] == 0.0
    assert "4x8xf32" in record["inputs"] and "8x16xf32" in record["inputs"]

    given = numtrace(
        "rerun", "run", "--site", "main/0.0", "--json", "--", "--iree-llvmcpu-target-cpu=generic"
    )
    route = json.loads(given.out)["routes"][1]
    assert route["flags"] == ["--iree-hal-target-backends=llvm-cpu", "--iree-llvmcpu-target-cpu=generic"]
    assert route["status"] == "ran" and route["measure"]["max_abs"] == 0.0

    shown = numtrace("show", "run", "--site", "main/0.0")
    assert "pipeline" in shown.out and "linalg.matmul" in shown.out and "// matmul_0" in shown.out
    assert "shared     with none" in shown.out


def test_the_code_view_before_anything_was_compiled_alone(numtrace, layer):
    assert numtrace("run", *layer, "--out", "run").code == 0
    before = numtrace("show", "run", "--site", "main/0.0")
    assert "not dumped yet: add --codegen" in before.out
    after = numtrace("show", "run", "--site", "main/0.0", "--codegen")
    assert after.code == 0, after.err
    assert "#iree_cpu.pipeline<" in after.out and "tiles" in after.out
    assert numtrace("show", "run", "--codegen").code == 2


def test_a_wrong_executable_is_right_by_every_other_route(numtrace, layer, tmp_path):
    """The IR is right, IREE is told to run another body in its place."""
    assert numtrace("run", *layer, "--out", "first").code == 0
    assert numtrace("rerun", "first", "--site", "main/0.0").code == 0
    (source,) = (tmp_path / "first").glob("variants/baseline/alone/main-0/own/code/module_*.mlir")
    right = source.read_text()
    wrong = tmp_path / "wrong.mlir"
    wrong.write_text(right.replace("constant 0.000000e+00", "constant 1.000000e+00"))
    assert wrong.read_text() != right
    name = source.stem.removeprefix("module_")
    numtrace("run", *layer, "--out", "run", "--", f"--iree-hal-substitute-executable-source={name}={wrong}")
    done = numtrace("rerun", "run", "--site", "main/0.0", "--routes", "--json")
    assert done.code == 0, done.err
    record = json.loads(done.out)
    own, *others = record["routes"]
    assert record["in_run"]["max_abs"] == own["measure"]["max_abs"] == 1.0
    ran = {route["name"]: route["measure"]["max_abs"] for route in others if route["status"] == "ran"}
    assert {"vmvx", "generic-cpu", "no-vectors"} <= ran.keys()
    assert set(ran.values()) == {0.0}


def test_what_cannot_be_run_again(numtrace, layer, tmp_path):
    assert numtrace("run", *layer, "--out", "run").code == 0
    missing = numtrace("rerun", "run", "--site", "main/1.0")
    assert missing.code == 2 and "no site 'main/1.0'" in missing.said and "main/0.0" in missing.said
    assert numtrace("rerun", "run", "--site", "main/0.0", "--variant", "other").code == 2
    assert numtrace("rerun", "nowhere", "--site", "main/0.0").code == 2
    unknown = numtrace("rerun", "run", "--site", "main/0.0", "--", "--iree-no-such-flag=1")
    assert unknown.code == 2 and "--iree-no-such-flag" in unknown.said
    model = numtrace("rerun", "run", "--site", "main/0.0", "--", "other.mlir")
    assert model.code == 2 and "compiler flags only" in model.said
    (tmp_path / "run" / "variants" / "baseline" / "traced.vmfb").unlink()
    gone = numtrace("rerun", "run", "--site", "main/0.0")
    assert gone.code == 2 and "left no traced program" in gone.said
