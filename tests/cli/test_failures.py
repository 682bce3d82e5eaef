"""A variant that fails, in the compiler or at run time: what failed where, the others go on, exit 3."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import sys

import pytest
from commands import start, variants
from layers import LOOP, elementwise
from processes import children, descendants, wait_until_gone

#: Fails at every matmul: a compiler error of one variant only.
BREAKS = "iree-preprocessing-pad-linalg-ops{pad-size=0}"


def test_a_compiler_error_in_one_variant(installed_numtrace, layer):
    result = installed_numtrace(
        "run", *layer, "--json", "--pass", BREAKS, "--pass", "demote-bf16", "--variants", "alone"
    )
    assert result.code == 3
    baseline, broken, demoted = result.document["variants"]
    assert (baseline["status"], demoted["status"]) == ("ran", "ran")
    assert broken["status"] == broken["verdict"] == "compile-failed"
    # The op's own name and module, and none of numtrace's stamps.
    assert broken["error"]["kind"] == "compiler-error"
    assert broken["error"]["location"] == "matmul_0 (block.fc)"
    assert "does not match the inferred type" in broken["error"]["message"]
    assert "matmul_0 (block.fc)" in broken["reason"]
    assert "numtrace." not in json.dumps(broken["error"])


def test_a_compiler_crash(numtrace, tmp_path):
    # A contraction over nothing divides by zero in IREE 3.13.
    (tmp_path / "m.mlir").write_text("""
func.func @main(%a: !torch.vtensor<[3,0],f32>, %b: !torch.vtensor<[0,4],f32>) -> !torch.vtensor<[3,4],f32> {
  %r = torch.aten.mm %a, %b : !torch.vtensor<[3,0],f32>, !torch.vtensor<[0,4],f32>
      -> !torch.vtensor<[3,4],f32>
  return %r : !torch.vtensor<[3,4],f32>
}
""")
    result = numtrace("run", "m.mlir", "--json", "--out", "run")
    (variant,) = result.document["variants"]
    if variant["status"] == "ran":
        pytest.skip("this IREE compiles it")
    assert result.code == 3
    assert variant["error"]["kind"] == "compiler-crash"
    assert re.match(r"iree-compile crashed with SIG\w+ on the way to [\w-]+", variant["error"]["message"])
    assert "Stack dump" in (tmp_path / "run" / variant["files"]["worker.log"]).read_text()


def test_f64_that_iree_narrows_behind_the_signature(numtrace, tmp_path):
    """The program checks its inputs for f64 and reads them as f32: with the flag it runs."""
    (tmp_path / "m.mlir").write_text("""
func.func @main(%a: !torch.vtensor<[4],f64>) -> !torch.vtensor<[4],f64> {
  %r = torch.aten.neg %a : !torch.vtensor<[4],f64> -> !torch.vtensor<[4],f64>
  return %r : !torch.vtensor<[4],f64>
}
""")
    result = numtrace("run", "m.mlir", "--json")
    (variant,) = result.document["variants"]
    assert (result.code, variant["status"]) == (3, "run-failed")
    assert variant["reason"].endswith("keep f64 with -- --iree-input-demote-f64-to-f32=false")
    kept = numtrace("run", "m.mlir", "--json", "--", "--iree-input-demote-f64-to-f32=false")
    assert kept.code == 0 and kept.document["variants"][0]["verdict"] == "ok"


def test_results_that_iree_narrows_behind_the_signature(numtrace, tmp_path):
    """The program hands over f32 as f64: a status that is an IndexError in Python. With the flag it runs."""
    (tmp_path / "m.mlir").write_text("""
func.func @main(%a: !torch.vtensor<[4],f32>) -> !torch.vtensor<[4],f64> {
  %f64 = torch.constant.int 7
  %r = torch.prims.convert_element_type %a, %f64 : !torch.vtensor<[4],f32>, !torch.int -> !torch.vtensor<[4],f64>
  return %r : !torch.vtensor<[4],f64>
}
""")
    result = numtrace("run", "m.mlir", "--json")
    (variant,) = result.document["variants"]
    assert (result.code, variant["status"], variant["error"]["kind"]) == (3, "run-failed", "run-error")
    assert "the program failed on local-task" in variant["reason"]
    assert variant["reason"].endswith("keep f64 with -- --iree-input-demote-f64-to-f32=false")
    kept = numtrace("run", "m.mlir", "--json", "--", "--iree-input-demote-f64-to-f32=false")
    assert kept.code == 0 and kept.document["variants"][0]["verdict"] == "ok"


def test_a_compiler_that_takes_too_long(numtrace, tmp_path):
    steps = "\n".join(f"%{i + 1} = math.erf %{i} : f32" for i in range(1500))
    body = f"%0 = arith.addf %a, %a : f32\n{steps}\n%r = arith.addf %1500, %a : f32"
    (tmp_path / "m.mlir").write_text(elementwise("f32", body, count=64))
    result = numtrace("run", "m.mlir", "--json", "--compile-timeout", "2")
    assert result.code == 3
    (variant,) = result.document["variants"]
    assert variant["status"] == "compile-failed"
    assert variant["error"]["kind"] == "compiler-time-out"
    assert re.match(
        r"iree-compile was still running after 2 s, .*--compile-timeout", variant["error"]["message"]
    )


def test_an_arithmetic_trap_names_the_dispatch(installed_numtrace, tmp_path):
    (tmp_path / "m.mlir").write_text(
        elementwise("i64", "%r = arith.divsi %a, %b : i64", arguments=2, count=1)
    )
    result = installed_numtrace("run", "m.mlir", "--json", "--input", "1xi64=5", "--input", "1xi64=0")
    assert result.code == 3
    (variant,) = result.document["variants"]
    assert variant["status"] == variant["verdict"] == "run-failed"
    assert variant["error"]["kind"] == "crash"
    assert "died of SIGFPE" in variant["error"]["message"]
    assert "it dies in dispatch main/0, " in variant["error"]["message"]
    assert "step_0" in variant["error"]["message"]


GATHER = """
func.func @main(%x: tensor<9x16xf32>, %i: tensor<4xi64>) -> tensor<4x16xf32> {
  %empty = tensor.empty() : tensor<4x16xf32>
  %r = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%i : tensor<4xi64>) outs(%empty : tensor<4x16xf32>) {
  ^bb0(%p: i64, %q: f32):
    %k = arith.index_cast %p : i64 to index
    %j = linalg.index 1 : index
    %v = tensor.extract %x[%k, %j] : tensor<9x16xf32>
    linalg.yield %v : f32
  } -> tensor<4x16xf32> loc("gather_0"("embed"))
  return %r : tensor<4x16xf32>
}
"""


def test_an_index_far_out_of_range(numtrace, tmp_path):
    (tmp_path / "m.mlir").write_text(GATHER)
    result = numtrace("run", "m.mlir", "--json", "--input", "9x16xf32=1", "--input", "4xi64=1000000000")
    assert result.code == 3
    (variant,) = result.document["variants"]
    assert variant["status"] == "run-failed"
    assert "died of SIGSEGV" in variant["error"]["message"]


#: StableHLO leaves the updates out whose index is out of bounds: the source has a result.
SCATTER = """
func.func @main(%x: tensor<4xf32>, %i: tensor<1x1xi64>, %u: tensor<1xf32>) -> tensor<4xf32> {
  %r = "stablehlo.scatter"(%x, %i, %u) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>
  } : (tensor<4xf32>, tensor<1x1xi64>, tensor<1xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
"""

#: torch has none.
TORCH_GATHER = """
func.func @main(%x: !torch.vtensor<[4],f32>, %i: !torch.vtensor<[1],si64>) -> !torch.vtensor<[1],f32> {
  %dim = torch.constant.int 0
  %sparse = torch.constant.bool false
  %r = torch.aten.gather %x, %dim, %i, %sparse
      : !torch.vtensor<[4],f32>, !torch.int, !torch.vtensor<[1],si64>, !torch.bool -> !torch.vtensor<[1],f32>
  return %r : !torch.vtensor<[1],f32>
}
"""


@pytest.mark.parametrize(
    ("program", "others", "says"),
    [
        (
            SCATTER,
            ("1x1xi64=1000000000", "1xf32=5"),
            "at the input stage iree_linalg_ext.scatter uses index 1",
        ),
        (TORCH_GATHER, ("1xi64=1000000000",), "in the source torch.aten.gather is refused by torch (index 1"),
    ],
    ids=["stablehlo", "torch"],
)
def test_where_the_program_of_a_crash_is_undefined(program, others, says, numtrace, tmp_path):
    (tmp_path / "m.mlir").write_text(program)
    given = [argument for text in ("4xf32=1", *others) for argument in ("--input", text)]
    result = numtrace("run", "m.mlir", "--json", *given)
    assert result.code == 3
    (variant,) = result.document["variants"]
    assert "died of SIGSEGV" in variant["error"]["message"]
    assert says in variant["error"]["message"]


def test_a_program_that_never_ends(numtrace, tmp_path):
    (tmp_path / "m.mlir").write_text(LOOP)
    result = numtrace(
        "run", "m.mlir", "--json", "--run-timeout", "2", "--input", "4xf32=1", "--input", "i64=1000000000000"
    )
    assert result.code == 3
    (variant,) = result.document["variants"]
    assert variant["status"] == "run-failed"
    assert variant["error"]["kind"] == "time-out"
    assert re.match(
        r"nothing happened for 2 s while it was at: run; .*--run-timeout", variant["error"]["message"]
    )


#: Ends the third process that is forked for a job: the variant's, after those that read and prepare the model.
QUITS = """
import os
import sys

if any(word.endswith("boot.py") for word in sys.orig_argv):
    jobs = []
    os.register_at_fork(
        before=lambda: jobs.append(1), after_in_child=lambda: len(jobs) == 3 and os._exit({code})
    )
"""


@pytest.mark.parametrize("code", [0, 7])
def test_a_worker_that_ends_without_a_word(code, numtrace, layer, tmp_path):
    """As a program built for another CPU does on some hosts."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(QUITS.format(code=code))
    result = numtrace("run", *layer, "--json", environment={"PYTHONPATH": str(tmp_path / "site")})
    assert result.code == 3
    (variant,) = result.document["variants"]
    assert variant["status"] == "run-failed"
    assert f"ended with exit code {code} and no result" in variant["error"]["message"]


def test_an_interpreter_that_ends_without_a_word(numtrace, layer, tmp_path):
    wrapper = tmp_path / "python"
    wrapper.write_text(
        f"""#!/bin/sh
case "$*" in *boot.py*) exit 7;; esac
exec '{sys.executable}' "$@"
"""
    )
    wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
    result = numtrace("run", *layer, "--json", "--python", wrapper)
    assert result.code == 3
    assert "ended with exit code 7 and no result at: start; it printed nothing" in result.said


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="finds the worker in /proc")
@pytest.mark.parametrize("which", ["the job", "the interpreter that it was forked from"])
def test_a_killed_worker_costs_its_variant_only(which, layer, tmp_path):
    process = start(
        "run",
        *layer,
        "--json",
        "--pass",
        "demote-bf16",
        "--pass",
        "demote-f16",
        "--variants",
        "alone",
        cwd=tmp_path,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if "demote-bf16 · compile with traces" in line:
            (interpreter,) = children(process.pid)
            (job,) = children(interpreter)
            running = descendants(process.pid)
            os.kill(job if which == "the job" else interpreter, signal.SIGKILL)
            break
    out, err = process.communicate(timeout=120)
    assert process.returncode == 3
    assert wait_until_gone(running) == []
    assert "Traceback" not in err
    done = variants(json.loads(out))
    assert {name: variant["status"] for name, variant in done.items()} == {
        "baseline": "ran", "demote-bf16": "run-failed", "demote-f16": "ran",
    }  # fmt: skip
    assert "died of SIGKILL" in done["demote-bf16"]["error"]["message"]


def test_infinite_in_one_variant_only(numtrace, layer):
    # 1e6 does not fit f16 (65504 at most), and the sum of eight does not lack in f32.
    result = numtrace("run", *layer[:3], "--input", "4x8xf32=1e6", "--json", "--pass", "demote-f16")
    assert result.code == 1
    baseline, demoted = result.document["variants"]
    assert baseline["verdict"] == "ok"
    assert baseline["output"]["nonfinite"] == 0
    assert demoted["verdict"] == "over-tolerance"
    assert demoted["output"]["nonfinite"] == 64
    assert demoted["output"]["max_abs"] is None
    # The first to make one is the rounding of the input, main/0, before the matmul itself.
    assert demoted["nonfinite_origin"] == {"site": "main/0.0", "op": "matmul_0"}
    assert "matmul_0" in demoted["reason"]


def test_nan_in_reference_and_program_alike(numtrace, tmp_path):
    (tmp_path / "m.mlir").write_text(elementwise("f32", "%r = math.log %a : f32"))
    result = numtrace("run", "m.mlir", "--input", "4xf32=-1", "--json")
    assert result.code == 0
    (variant,) = result.document["variants"]
    assert variant["output"]["nonfinite"] == 4
    assert variant["output"]["max_abs"] is None
    assert variant["verdict"] == "ok", "the source says so: it accuses nobody"
