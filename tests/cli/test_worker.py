"""What the worker may import, and passes that other packages bring."""

from __future__ import annotations

from commands import variants

# Loaded by every interpreter that finds it: in the worker, and what is forked from it, it forbids what is for the
# parent only.
FORBID = """
import os
import sys

if any(word.endswith("boot.py") for word in sys.orig_argv):
    class Forbid:
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] in {"msgspec", "typer", "rich", "platformdirs", "safetensors"}:
                raise ImportError(f"{name} is not for the worker")

    sys.meta_path.insert(0, Forbid())
    os.register_at_fork(after_in_child=lambda: os.write(2, b"forbidding\\n"))
"""


def test_the_worker_needs_iree_torch_and_numpy_only(numtrace, layer, tmp_path):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(FORBID)
    # and what lies in the user's folder is not imported, whatever its name
    for name in ("torch", "numpy", "json", "numtrace"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported from the current folder')\n")
    result = numtrace(
        "run",
        *layer,
        "--json",
        "--out",
        "run",
        "--pass",
        "demote-bf16",
        environment={"PYTHONPATH": str(tmp_path / "site")},
    )
    assert result.code == 0, result.err
    for variant in result.document["variants"]:
        assert "forbidding" in (tmp_path / "run" / variant["files"]["worker.log"]).read_text()


PLUGIN = """
from numtrace.passes.model import Pass

PASSES = [
    Pass("halve", "rounds contraction inputs to f16", "matmul",
         ("iree-global-opt-demote-contraction-inputs{type=f16 operation=matmul}",)),
    Pass("no-unroll", "no loop unrolling in LLVM", "all", flags=("--iree-llvmcpu-loop-unrolling=false",)),
]
"""


def install(site, name, value):
    info = site / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[numtrace.passes]\n{name} = {value}\n")


def test_passes_of_installed_plugins(numtrace, layer, tmp_path):
    site = tmp_path / "site"
    install(site, "sample", "numtrace_sample:PASSES")
    install(site, "broken", "absent_module:PASSES")
    (site / "numtrace_sample.py").write_text(PLUGIN)
    environment = {"PYTHONPATH": str(site)}
    assert "halve" in numtrace("passes", environment=environment).out
    result = numtrace(
        "run",
        *layer,
        "--json",
        "--pass",
        "halve",
        "--pass",
        "no-unroll",
        "--variants",
        "alone",
        environment=environment,
    )
    assert result.code == 0, result.err
    done = variants(result.document)
    assert list(done) == ["baseline", "halve", "no-unroll"]
    assert done["halve"]["ops_changed"] > 0
    assert done["no-unroll"]["flags"] == ["--iree-llvmcpu-loop-unrolling=false"]
    notices = [notice for notice in result.document["notices"] if "was not loaded" in notice]
    assert len(notices) == 1
    assert "plugin 'broken'" in notices[0]
