"""Correct code is never accused: random programs, really compiled, on data of every kind.

``NUMTRACE_SOUNDNESS=300 pytest tests/evaluate/typed/test_soundness.py`` draws so many programs instead of a few.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from judged import Compiled, fault_free
from kernels import KINDS, Drawn, attention, chain, convolution, data, matmul, reduction, softmax

from numtrace.errors import CompileError

EXAMPLES = int(os.environ.get("NUMTRACE_SOUNDNESS", "4"))
TYPES = ("f32,f32,f32", "f16,f16,f32", "bf16,bf16,f32", "f16,f16,f16", "bf16,bf16,bf16", "i8,i8,i32")
FLAGS = ((), ("--iree-opt-data-tiling",), ("--iree-llvmcpu-target-cpu=generic",))
WINOGRAD = (
    "--iree-preprocessing-pass-pipeline="
    "builtin.module(util.func(iree-linalg-ext-convert-conv2d-to-winograd{replace-all-convs=true}))"
)
FLOATS = ("f32", "f16", "bf16")


@st.composite
def programs(draw) -> Drawn:
    """A program, its operands and the flags that it is compiled with."""
    kind = draw(
        st.sampled_from(("matmul", "conv", "winograd", "sum", "softmax", "attention", "chain", "chain"))
    )
    element, flags = draw(st.sampled_from(FLOATS)), draw(st.sampled_from(FLAGS))
    size = st.integers(1, 70)
    if kind == "matmul":
        types = draw(st.sampled_from(TYPES))
        m, n, k = draw(size), draw(size), draw(st.sampled_from((1, 7, 64, 257, 1152)))
        return Drawn(
            matmul(m, k, n, types), [((m, k), types.split(",")[0]), ((k, n), types.split(",")[1])], flags
        )
    if kind in ("conv", "winograd"):
        types = draw(st.sampled_from(TYPES if kind == "conv" else TYPES[:5]))
        layout, channels, side = (
            draw(st.sampled_from(("nchw", "nhwc"))),
            draw(st.integers(1, 40)),
            draw(size) % 13 + 6,
        )
        drawn = convolution(layout, channels, draw(st.integers(1, 20)), side, types)
        return Drawn(drawn.text, drawn.operands, (WINOGRAD,) if kind == "winograd" else flags)
    rows, columns = draw(size), draw(st.sampled_from((1, 31, 300, 1000)))
    if kind == "sum":
        of, inner = (
            draw(st.sampled_from(("sum", "mean", "max", "variance"))),
            draw(st.sampled_from((None, "f32"))),
        )
        return Drawn(reduction(rows, columns, element, of, inner), [((rows, columns), element)], flags)
    if kind == "softmax":
        element = (
            "f32" if element == "f16" else element
        )  # IREE 3.13 does not link it in f16: fmaxf is undefined
        return Drawn(softmax(rows, columns, element), [((rows, columns), element)], flags)
    if kind == "attention":
        keys, inner, width = draw(st.sampled_from((8, 40, 96))), draw(st.sampled_from((8, 16, 64))), 16
        shapes = [(1, 24, inner), (1, keys, inner), (1, keys, width)]
        text = attention(1, 24, keys, inner, width, element, draw(st.sampled_from((0.125, 0.25, 1.0))))
        return Drawn(text, [(shape, element) for shape in shapes], flags)
    steps = draw(st.integers(5, 20))
    return Drawn(chain(draw(st.integers(0, 10**6)), 512, element, steps), [((512,), element)] * 2, flags)


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    derandomize=EXAMPLES < 20,
    phases=(Phase.generate,),  # every step of shrinking would be a compilation
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(programs(), st.integers(0, 1000))
def test_no_program_is_accused(drawn, seed):
    with tempfile.TemporaryDirectory() as folder:
        try:
            program = Compiled(drawn.text, Path(folder), drawn.flags)
        except CompileError:
            return  # the compiler's own affair
        for kind in KINDS:
            inputs = [
                data(kind, shape, element, seed + i) for i, (shape, element) in enumerate(drawn.operands)
            ]
            for site in program.run(*inputs):
                found = fault_free(site)
                assert found is None, f"{kind}: {found}\n{drawn.text}"


FIXED = {
    "an f32 convolution": convolution("nchw", 16, 8, 12, "f32,f32,f32"),
    "a bf16 matmul": Drawn(matmul(33, 257, 17, "bf16,bf16,f32"), [((33, 257), "bf16"), ((257, 17), "bf16")]),
    "f16 all through": Drawn(matmul(33, 257, 17, "f16,f16,f16"), [((33, 257), "f16"), ((257, 17), "f16")]),
    "f16 attention": Drawn(
        attention(1, 24, 96, 16, 32, "f16", 0.25), [((1, 24, 16), "f16"), ((1, 96, 16), "f16"), ((1, 96, 32), "f16")]
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FIXED)
def test_nor_are_these(name, tmp_path):
    drawn = FIXED[name]
    program = Compiled(drawn.text, tmp_path, drawn.flags)
    for kind in KINDS:
        sites = program.run(*(data(kind, shape, element, 3) for shape, element in drawn.operands))
        assert [found for site in sites if (found := fault_free(site))] == [], kind
