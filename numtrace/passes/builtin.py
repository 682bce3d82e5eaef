"""The passes that numtrace knows by name; the first candidate is today's spelling, older ones follow."""

from __future__ import annotations

from numtrace.passes.model import Pass

CONTRACTIONS = "conv, matmul, batch_matmul"


def _demote(name: str, dtype: str, operation: str, ops: str, *older: str) -> Pass:
    text = f"iree-global-opt-demote-contraction-inputs{{type={dtype} operation={operation}}}"
    return Pass(
        name, f"rounds both inputs of {ops} from f32 to {dtype}, accumulates in f32", ops, (text, *older)
    )


_TO_BF16 = "iree-global-opt-demote-contraction-inputs-to-bf16"

PASSES: tuple[Pass, ...] = (
    _demote("demote-bf16", "bf16", "all", CONTRACTIONS, f"{_TO_BF16}{{demote-only=all}}", _TO_BF16),
    _demote("demote-f16", "f16", "all", CONTRACTIONS),
    _demote("demote-bf16-conv", "bf16", "conv", "conv", f"{_TO_BF16}{{demote-only=conv}}"),
    _demote(
        "demote-bf16-matmul", "bf16", "matmul", "matmul, batch_matmul", f"{_TO_BF16}{{demote-only=matmul}}"
    ),
    Pass(
        "winograd",
        "3x3 stride-1 convolutions by Winograd's transforms, F(6x6, 3x3)",
        "conv",
        ("iree-linalg-ext-convert-conv2d-to-winograd{replace-all-convs=true}",),
    ),
    Pass(
        "img2col",
        "convolutions as a gather of windows and a matmul",
        "conv",
        ("iree-global-opt-convert-conv2d-to-img2col", "iree-preprocessing-convert-conv2d-to-img2col"),
    ),
    Pass(
        "im2col-op",
        "convolutions as iree_linalg_ext.im2col and a contraction",
        "conv",
        ("iree-linalg-ext-convert-conv-to-im2col-op", "iree-linalg-ext-convert-conv2d-to-im2col-op"),
    ),
    Pass(
        "conv-channels-last",
        "convolutions in channels-last layout, with transposes around them",
        "conv",
        ("iree-preprocessing-convert-conv-to-channels-last",),
    ),
    Pass(
        "conv-1x1-to-matmul",
        "1x1 convolutions as matmuls",
        "conv",
        (
            "iree-preprocessing-convert-1x1-filter-conv2d-to-matmul",
            "iree-global-opt-convert-1x1-filter-conv2d-to-matmul",
        ),
    ),
    Pass(
        "transpose-matmul",
        "matmuls with one operand stored transposed",
        "matmul, batch_matmul",
        ("iree-preprocessing-transpose-matmul-pass",),
    ),
    Pass(
        "pad-linalg",
        "matmul dimensions padded with zeros to a multiple of 16",
        "matmul",
        ("iree-preprocessing-pad-linalg-ops{pad-size=16}",),
    ),
    Pass(
        "generalize",
        "named ops as linalg.generic, matmuls included",
        CONTRACTIONS,
        (
            "iree-global-opt-generalize-linalg-named-ops{enable-generalize-matmul=true}",
            "iree-global-opt-generalize-linalg-named-ops",
        ),
    ),
    Pass(
        "data-tiling",
        "operands of contractions packed into tiles",
        "matmul, batch_matmul",
        flags=("--iree-opt-data-tiling",),
    ),
    Pass(
        "ukernels",
        "inner tiles by hand-written microkernels (needs data tiling to have an effect on most models)",
        "mmt4d, pack, unpack",
        flags=("--iree-llvmcpu-enable-ukernels=all",),
    ),
)
