"""What the compiler dumps of an executable, and what is read from it."""

from __future__ import annotations

from numtrace.instrument.lowering import read_lowering

_PIPELINE = "#iree_codegen.translation_info<pipeline = #iree_cpu.pipeline<Mmt4dTilingExpert>>"
_TILES = "#iree_cpu.lowering_config<distribution = [8, 0], vector_reduction = [0, 4]>"
CONFIGURED = f"""\
#config = #iree_cpu.lowering_config<vector_common_parallel = [1, 16]>
hal.executable public @ex {{
  builtin.module {{
    func.func @f() attributes {{translation_info = {_PIPELINE}}} {{
      %0 = linalg.fill {{lowering_config = #config}} ins(%c : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
      %1:2 = linalg.generic {{}} ins(%0) outs(%e) attrs =  {{lowering_config = {_TILES}}} {{
      }}
      iree_linalg_ext.softmax {{lowering_config = #iree_cpu.lowering_config<distribution = [2]>}} ins(%1)
    }}
  }}
}}
"""
CODE = """\
declare void @iree_uk_unpack(ptr)
  call void @iree_uk_mmt4d(ptr %1, i64 3)
  tail call fastcc void @iree_uk_mmt4d(ptr %2, i64 3)
"""


def test_pipeline_tiles_and_microkernels(tmp_path):
    (tmp_path / "configured_module_ex.mlir").write_text(CONFIGURED)
    (tmp_path / "module_ex.codegen.ll").write_text(CODE)
    lowering = read_lowering(tmp_path, "ex")
    assert lowering is not None
    assert lowering.pipeline == "#iree_cpu.pipeline<Mmt4dTilingExpert>"
    assert lowering.configurations == (
        ("linalg.fill", "vector_common_parallel = [1, 16]"),
        ("linalg.generic", "distribution = [8, 0], vector_reduction = [0, 4]"),
        ("iree_linalg_ext.softmax", "distribution = [2]"),
    )
    assert lowering.ukernels == ("iree_uk_mmt4d",)  # called, not only declared


def test_a_backend_that_leaves_no_code_does_not_say_which_microkernels(tmp_path):
    (tmp_path / "configured_module_ex.mlir").write_text("func.func @f() {\n}\n")
    lowering = read_lowering(tmp_path, "ex")
    assert lowering is not None
    assert (lowering.pipeline, lowering.configurations, lowering.ukernels) == (None, (), None)


def test_nothing_was_dumped(tmp_path):
    assert read_lowering(tmp_path, "ex") is None
    assert read_lowering(tmp_path / "gone", "ex") is None
