"""im2col against torch's unfold, and against the loops that IREE itself takes it apart into."""

from __future__ import annotations

import pytest
import torch
from iree.compiler import ir, passmanager
from torch import Tensor

from numtrace.errors import UndefinedResult
from numtrace.evaluate.machine import Machine
from numtrace.evaluate.program import Program

#: An image of one channel order, its windows of 3x2, 2 apart down and 1 apart across, one row of K for each.
TEXT = """
util.func public @main(%x: tensor<{image}xf32>) -> tensor<{out}xf32> {{
  %e = tensor.empty() : tensor<{out}xf32>
  %r = iree_linalg_ext.im2col strides = {strides} dilations = {dilations} kernel_size = {kernel}
      offsets = {offsets} output_sizes = {sizes} batch_pos = {batch} m_pos = {m} k_pos = {k}
      input_k_perm = {order} output_perm = {perm}
      ins(%x : tensor<{image}xf32>) outs(%e : tensor<{out}xf32>) -> tensor<{out}xf32>
  util.return %r : tensor<{out}xf32>
}}
"""
NCHW = TEXT.format(
    image="2x3x7x6", out="2x18x3x5", strides="[1, 2, 1]", dilations="[1, 1, 1]", kernel="[1, 3, 2]",
    offsets="[0, 0, 0, 0]", sizes="[[2], [3], [5], [1, 3, 3, 2]]", batch="[]", m="[0, 2, 3]", k="[1]",
    order="[0, 1, 2, 3]", perm="[0, 3, 1, 2]",
)  # fmt: skip
#: K in two dimensions, (rows of the window) and (columns, channels): an order that is not its own inverse.
PERMUTED = TEXT.format(
    image="2x3x7x8", out="2x3x9x5x6", strides="[1, 1, 1]", dilations="[1, 1, 1]", kernel="[1, 3, 3]",
    offsets="[0, 0, 0, 0, 0]", sizes="[[2], [5], [6], [1, 3], [3, 3]]", batch="[]", m="[0, 2, 3]", k="[1]",
    order="[0, 2, 3, 1]", perm="[0, 3, 4, 1, 2]",
)  # fmt: skip
GROUPED = TEXT.format(
    image="2x7x8x2x3", out="2x5x6x2x27", strides="[1, 1, 1]", dilations="[1, 1, 1]", kernel="[1, 3, 3]",
    offsets="[0, 0, 0, 0, 0]", sizes="[[2], [2], [5], [6], [1, 3, 3, 3]]", batch="[3]", m="[0, 1, 2]", k="[4]",
    order="[0, 1, 2, 3]", perm="[1, 2, 3, 0, 4]",
)  # fmt: skip


def evaluated(text: str, x: Tensor) -> Tensor:
    program = Program.parse(text)
    (result,) = Machine(program).run(program.functions["main"].regions[0], [x])
    return result


def image(*sizes: int) -> Tensor:
    return torch.randn(sizes, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def test_windows_are_those_of_unfold():
    x = image(2, 3, 7, 6)
    expected = torch.nn.functional.unfold(x, (3, 2), stride=(2, 1)).reshape(2, 18, 3, 5)
    assert torch.equal(evaluated(NCHW, x), expected)


def test_dilated_windows():
    text = NCHW.replace("dilations = [1, 1, 1]", "dilations = [1, 2, 3]").replace("2x18x3x5", "2x18x2x3")
    text = text.replace("[[2], [3], [5]", "[[2], [2], [3]")
    x = image(2, 3, 7, 6)
    expected = torch.nn.functional.unfold(x, (3, 2), stride=(2, 1), dilation=(2, 3)).reshape(2, 18, 2, 3)
    assert torch.equal(evaluated(text, x), expected)


@pytest.mark.parametrize(("text", "sizes"), [(PERMUTED, (2, 3, 7, 8)), (GROUPED, (2, 7, 8, 2, 3))])
def test_it_is_what_irees_own_loops_make(text, sizes):
    context = ir.Context()
    module = ir.Module.parse(text, context)
    manager = passmanager.PassManager.parse(
        "builtin.module(util.func(iree-linalg-ext-decompose-im2col{unroll=true}))", context
    )
    manager.run(module.operation)
    loops = module.operation.get_asm()
    assert "im2col" not in loops
    x = image(*sizes)
    assert torch.equal(evaluated(text, x), evaluated(loops, x))


def test_a_window_that_leaves_the_image_has_no_value():
    with pytest.raises(UndefinedResult, match="reads element 8 of 7"):
        evaluated(
            NCHW.replace("offsets = [0, 0, 0, 0]", "offsets = [0, 1, 0, 0]").replace("[3], [5]", "[4], [5]"),
            image(2, 3, 7, 6),
        )
