"""Encodings taken out of a program's types, and the ops that only change them."""

from __future__ import annotations

from numtrace.instrument.encodings import without_encodings

ENCODING = (
    "#iree_encoding.encoding<operand_index = 0 : index, op_type = matmul, element_types = [f32, f32, f32], "
    "user_indexing_maps = [affine_map<(a, b, c) -> (a, c)>, affine_map<(a, b, c) -> (c, b)>, "
    "affine_map<(a, b, c) -> (a, b)>]>"
)


def test_types_and_ops_go():
    text = f"""
#enc = {ENCODING}
util.func public @f(%x: tensor<4x?xf32>, %n: index, %y: tensor<4xf32, #enc>) -> tensor<4x?xf32> {{
  %e = flow.tensor.encode %x : tensor<4x?xf32>{{%n}} -> tensor<4x?xf32, #enc>{{%n}}
  %s = iree_encoding.set_encoding %x : tensor<4x?xf32> -> tensor<4x?xf32, #enc>
  %b = util.optimization_barrier %s : tensor<4x?xf32, #enc>
  %u = iree_encoding.unset_encoding %b : tensor<4x?xf32, #enc> -> tensor<4x?xf32>{{%n}}
  util.return %u : tensor<4x?xf32>
}}
"""
    plain = without_encodings(text)
    assert "encod" not in plain
    assert "%arg2: tensor<4xf32>" in plain
    assert "util.optimization_barrier %arg0 : tensor<4x?xf32>" in plain


def test_a_program_without_any_stays():
    text = "util.func public @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n  util.return %x : tensor<4xf32>\n}\n"
    assert "util.return %arg0 : tensor<4xf32>" in without_encodings(text)
