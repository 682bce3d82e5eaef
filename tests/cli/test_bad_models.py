"""A model that cannot be read: one sentence, exit 2."""

from __future__ import annotations

import re

import pytest

TWO = """
func.func @encode(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }
func.func @decode(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }
func.func private @inner(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }
"""

MODELS = {
    "parse": ("func.func @main() {\n  return\n}\n%x = foo.bar\n", "line 4, column 6: .*foo"),
    "type": (
        "func.func @main(%x: tensor<4xf32>) -> tensor<8xf32> {\n  return %x : tensor<4xf32>\n}\n",
        "m.mlir is not MLIR that the installed IREE parses: line 2, column 3: .*doesn't match function",
    ),
    "bytes": (bytes(range(256)), "m.mlir is neither MLIR text nor MLIR bytecode"),
    "bytecode": (b"ML\xefR" + bytes(range(64)), "m.mlir is not MLIR that the installed IREE parses"),
    "empty": ("", "no public function with a body"),
    "several": (TWO, "several functions; choose one with --function; its functions: encode, decode$"),
    "no results": (
        "func.func @main(%x: tensor<4xf32>) { return }",
        "main returns nothing: the model has no output, and there is nothing to compare$",
    ),
    "vector": (
        "func.func @main(%x: vector<4xf32>) -> vector<4xf32> { return %x : vector<4xf32> }",
        r"argument 0 of main is vector<4xf32>; numtrace handles functions of tensors",
    ),
    "complex result": (
        """
func.func @main(%x: !torch.vtensor<[5],f32>) -> !torch.vtensor<[5],complex<f32>> {
  %y = torch.aten.complex %x, %x
      : !torch.vtensor<[5],f32>, !torch.vtensor<[5],f32> -> !torch.vtensor<[5],complex<f32>>
  return %y : !torch.vtensor<[5],complex<f32>>
}
""",
        r"result 0 of main is !torch.vtensor<\[5\],complex<f32>>; complex results are not handled: "
        r"return two floats for each number, which torch.view_as_real makes$",
    ),
    "complex argument": (
        "func.func @main(%x: tensor<5xcomplex<f32>>) -> tensor<5xcomplex<f32>> {\n"
        "  return %x : tensor<5xcomplex<f32>>\n}\n",
        r"argument 0 of main is tensor<5xcomplex<f32>>; complex arguments are not handled: "
        r"take two floats for each number, which torch.view_as_real makes, and torch.view_as_complex of them$",
    ),
}


@pytest.mark.parametrize("kind", MODELS)
def test_a_model_that_is_none(kind, numtrace, tmp_path):
    content, says = MODELS[kind]
    (tmp_path / "m.mlir").write_bytes(content if isinstance(content, bytes) else content.encode())
    result = numtrace("run", "m.mlir")
    assert result.code == 2
    assert re.search(says, result.said, re.MULTILINE), result.said
    assert result.out == ""


def test_no_such_file(installed_numtrace, tmp_path):
    result = installed_numtrace("run", "absent.mlir")
    assert result.code == 2
    assert "there is no file absent.mlir" in result.said
    assert list(tmp_path.iterdir()) == [], "nothing was run, nothing is left"


def test_a_folder_is_no_model(numtrace, tmp_path):
    (tmp_path / "folder.mlir").mkdir()
    result = numtrace("run", "folder.mlir")
    assert result.code == 2
    assert "folder.mlir cannot be read: Is a directory" in result.said


def test_no_such_function_lists_what_there_is(numtrace, tmp_path):
    (tmp_path / "m.mlir").write_text(TWO)
    result = numtrace("run", "m.mlir", "--function", "encoder")
    assert result.code == 2
    assert result.said.strip().endswith("the model has no function 'encoder'; its functions: encode, decode")


def test_attention_is_of_built_in_models(numtrace, layer):
    result = numtrace("run", *layer, "--attention", "op")
    assert result.code == 2
    assert "--attention" in result.said


def test_what_the_lowering_refuses_names_the_op(numtrace, tmp_path):
    # torch dialect that parses, and that IREE cannot lower: 3 against 4 columns
    (tmp_path / "m.mlir").write_text("""
func.func @main(%a: !torch.vtensor<[2,3],f32>, %b: !torch.vtensor<[4,2],f32>) -> !torch.vtensor<[2,2],f32> {
  %r = torch.aten.mm %a, %b : !torch.vtensor<[2,3],f32>, !torch.vtensor<[4,2],f32>
      -> !torch.vtensor<[2,2],f32> loc("mm_0"("block.attention"))
  return %r : !torch.vtensor<[2,2],f32>
}
""")
    result = numtrace("run", "m.mlir")
    assert result.code == 3
    assert "mm_0 (block.attention)" in result.said
