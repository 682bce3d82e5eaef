"""What the worker may import, and passes that other packages bring."""

from __future__ import annotations

from conftest import variants

# Loaded by every interpreter that finds it: in the worker, it forbids what is for the parent only.
FORBID = """
import sys

if any(word.endswith("boot.py") for word in sys.orig_argv):
    class Forbid:
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] in {"msgspec", "typer", "rich", "platformdirs", "safetensors"}:
                raise ImportError(f"{name} is not for the worker")

    sys.meta_path.insert(0, Forbid())
    sys.stderr.write("forbidding\\n")
"""


def test_the_worker_needs_iree_torch_and_numpy_only(numtrace, layer, tmp_path):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(FORBID)
    result = numtrace(
        "run", *layer, "--json", "--out", "run", "--pass", "demote-bf16", environment={"PYTHONPATH": str(tmp_path / "site")}
    )
    assert result.code == 0, result.err
    for variant in result.document["variants"]:
        assert "forbidding" in (tmp_path / "run" / variant["files"]["worker.log"]).read_text()


def test_what_lies_in_the_users_folder_is_not_imported(numtrace, layer, tmp_path):
    for name in ("torch", "numpy", "json", "numtrace"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported from the current folder')\n")
    assert numtrace("run", *layer).code == 0


PLUGIN = """
from numtrace.passes.model import Pass

PASSES = [
    Pass("halve", "rounds contraction inputs to f16", "matmul",
         ("iree-global-opt-demote-contraction-inputs{type=f16 operation=matmul}",)),
    Pass("no-unroll", "no loop unrolling in LLVM", "all", flags=("--iree-llvmcpu-loop-unrolling=false",)),
]
"""


def test_a_pass_of_an_installed_plugin(numtrace, layer, tmp_path):
    site = tmp_path / "site"
    info = site / "numtrace_sample-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "numtrace_sample.py").write_text(PLUGIN)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: numtrace-sample\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[numtrace.passes]\nsample = numtrace_sample:PASSES\n")
    environment = {"PYTHONPATH": str(site)}
    assert "halve" in numtrace("passes", environment=environment).out
    result = numtrace(
        "run", *layer, "--json", "--pass", "halve", "--pass", "no-unroll", "--variants", "alone", environment=environment
    )
    assert result.code == 0, result.err
    done = variants(result.document)
    assert list(done) == ["baseline", "halve", "no-unroll"]
    assert done["halve"]["ops_changed"] > 0
    assert done["no-unroll"]["flags"] == ["--iree-llvmcpu-loop-unrolling=false"]


def test_a_plugin_that_does_not_load_is_a_notice(numtrace, layer, tmp_path):
    info = tmp_path / "site" / "broken-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[numtrace.passes]\nbroken = absent_module:PASSES\n")
    result = numtrace("run", *layer, "--json", environment={"PYTHONPATH": str(tmp_path / "site")})
    assert result.code == 0
    assert any("plugin 'broken'" in notice and "was not loaded" in notice for notice in result.document["notices"])
