"""What the bounds take for granted of IREE's code, seen in what it makes and in its IR."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from judged import FLAGS, Compiled
from kernels import TORCH, attention, elementwise, named, softmax

from numtrace.instrument.compiler import compile_file

WINOGRAD = (
    "--iree-preprocessing-pass-pipeline="
    "builtin.module(util.func(iree-linalg-ext-convert-conv2d-to-winograd{replace-all-convs=true}))"
)


def made(body: str, element: str, folder: Path, *values: float, flags: tuple[str, ...] = ()) -> float:
    """The result of one step on numbers, as compiled; the site is within its bounds."""
    names = "abc"[: len(values)]
    program = Compiled(elementwise(f"    {body}", 32, element, names), folder, flags)
    (site,) = program.run(*(torch.full((32,), value, dtype=TORCH[element]) for value in values))
    assert site.near.ratio <= 1
    return site.made[0].item()


def after(name: str, text: str, folder: Path, *flags: str) -> str:
    """The IR after a pass."""
    source = folder / "source.mlir"
    source.write_text(text)
    dump = [f"--mlir-print-ir-after={name}", "--mlir-disable-threading"]
    return compile_file(source, folder / "x.vmfb", [*FLAGS, *flags, *dump])


def test_a_product_and_a_sum_are_fused(tmp_path):
    """(1 + 2^-12)² - 1 is 2^-11 + 2^-24 in one rounding, 2^-11 in two."""
    body = "%m = arith.mulf %a, %b : E\n    %r = arith.addf %m, %c : E"
    a = 1 + 2.0**-12
    assert made(body, "f32", tmp_path, a, a, -1.0) == 2.0**-11 + 2.0**-24


def test_what_is_bf16_stays_in_f32_until_it_is_stored(tmp_path):
    """(1 + 2^-5)² is 1 + 2^-4 + 2^-10, 1 + 2^-4 in bf16; of the product minus 1 the last bit is there."""
    body = "%m = arith.mulf %a, %b : E\n    %r = arith.addf %m, %c : E"
    a = 1 + 2.0**-5
    assert made(body, "bf16", tmp_path, a, a, -1.0) == 2.0**-4 + 2.0**-10


def test_what_is_f16_is_rounded_at_every_step(tmp_path):
    """(1 + 2^-6)² is 1 + 2^-5 + 2^-12: the last bit is lost."""
    body = "%m = arith.mulf %a, %b : E\n    %r = arith.addf %m, %c : E"
    a = 1 + 2.0**-6
    assert made(body, "f16", tmp_path, a, a, -1.0) == 2.0**-5


ROUNDED = "%s = arith.addf %a, %b : f32\n    %n = arith.truncf %s : f32 to TYPE\n    %w = arith.extf %n : TYPE to f32\n"
ROUNDED += "    %r = arith.subf %w, %a : f32"


@pytest.mark.parametrize(("element", "left"), [("f16", 0.0), ("bf16", 2.0**-12)])
def test_a_cast_to_bf16_and_back_is_left_out(tmp_path, element, left):
    """1 + 2^-12 is 1 in either type."""
    assert made(ROUNDED.replace("TYPE", element), "f32", tmp_path, 1.0, 2.0**-12) == left


@pytest.mark.parametrize(("cpu", "result"), [("x86-64-v3", 2.0**-15), ("generic", 0.0)])
def test_denormals_of_f16_are_flushed_where_the_cpu_does_not_convert(tmp_path, cpu, result):
    flags = (f"--iree-llvmcpu-target-cpu={cpu}",)
    assert made("%r = arith.mulf %a, %b : E", "f16", tmp_path, 2.0**-7, 2.0**-8, flags=flags) == result


def test_attention_rounds_its_query_with_the_scale(tmp_path):
    text = after("iree-linalg-ext-decompose-attention", attention(1, 8, 32, 16, 16, "f16", 0.25), tmp_path)
    assert re.search(
        r"%(\w+) = arith\.constant 1\.44\d+e\+00 : f16\s+%\w+ = arith\.mulf %\w+, %\1 : f16", text
    )
    assert re.search(r"arith\.mulf %in, %out : f16", text)  # the query with that product
    assert "math.exp2" in text and "math.exp " not in text
    assert re.search(r"arith\.truncf %in : f32 to f16", text)  # the weights
    assert re.search(r"arith\.divf %\w+, %in : f32", text)  # one over the sum


def test_an_added_mask_is_scaled_in_f32(tmp_path):
    text = after(
        "iree-linalg-ext-decompose-attention", attention(1, 8, 32, 16, 16, "f16", 0.25, "f16"), tmp_path
    )
    assert re.search(r"arith\.constant 1\.44269502 : f32\s+%\w+ = arith\.mulf %\w+, %\w+ : f32", text)


def test_softmax_is_taken_apart_in_its_element_type(tmp_path):
    text = after("iree-codegen-decompose-softmax", softmax(4, 64, "bf16"), tmp_path)
    for op in ("arith.maxnumf", "arith.subf", "math.exp", "arith.addf", "arith.divf"):
        assert re.search(rf"{re.escape(op)} .*: bf16", text), op
    assert "f32" not in re.sub(r"loc\(.*", "", text.split("linalg.generic", 1)[1])


def test_winograd_multiplies_in_the_element_type(tmp_path):
    text = after(
        "iree-linalg-ext-decompose-winograd",
        named("conv_2d_nhwc_hwcf", (1, 14, 14, 8), (3, 3, 8, 8), (1, 12, 12, 8), "f16,f16,f16"),
        tmp_path,
        WINOGRAD,
    )
    products = re.findall(r"linalg\.matmul .*outs\(%\w+ : tensor<\d+x\d+x(\w+)>\)", text)
    assert len(products) == 6 and set(products) == {"f16"}
