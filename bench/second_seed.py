"""What f16 costs in the second seed by other means than numtrace's, on the inputs of finished runs.

``python bench/second_seed.py MATMUL_RUN BLOCK_RUN``, of ``numtrace run matmul-8192x640 -o MATMUL_RUN`` and
``numtrace run sdxl-unet-attention -o BLOCK_RUN``: torch's own f16, NumPy's, and sums that are rounded to f16 term by
term, each against float64.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file

from numtrace.models.config import CONFIGS, CrossAttentionConfig
from numtrace.models.sdxl_unet import CrossAttentionBlock


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("matmul", type=Path)
    arguments.add_argument("block", type=Path)
    chosen = arguments.parse_args()
    matmul(*inputs(chosen.matmul))
    block(chosen.block)


def inputs(run: Path) -> list[np.ndarray]:
    return [np.load(path) for path in sorted((run / "model/inputs/0").glob("*.npy"))]


def matmul(a: np.ndarray, b: np.ndarray) -> None:
    exact = a.astype(np.float64) @ b.astype(np.float64)
    total = np.zeros(exact.shape, np.float16)
    for k in range(a.shape[1]):
        total += a[:, k, None] * b[k]
    tell("matmul, torch f16", (torch.from_numpy(a) @ torch.from_numpy(b)).numpy(), exact)
    tell("matmul, NumPy f16", a @ b, exact)
    tell("matmul, f16 accumulator", total, exact)


def block(run: Path) -> None:
    config = CONFIGS["sdxl-unet-attention"]
    assert isinstance(config, CrossAttentionConfig)
    (archive,) = json.loads((run / "report.json").read_text())["model"]["parameters"]
    module = CrossAttentionBlock(config).half()
    module.load_state_dict(load_file(archive["path"]))
    given = [torch.from_numpy(value) for value in inputs(run)]
    with torch.no_grad():
        narrow, normed = module(*given).numpy(), module.norm2(given[0]).numpy()
        summed = layer_norm(given[0].numpy(), module.norm2)
        module.double()
        wide = [value.double() for value in given]
        exact, exact_normed = module(*wide).numpy(), module.norm2(wide[0]).numpy()
    tell("layer_norm, torch f16", normed, exact_normed)
    tell("layer_norm, f16 sums", summed, exact_normed)
    tell("block, torch f16", narrow, exact)


def layer_norm(x: np.ndarray, norm: torch.nn.LayerNorm) -> np.ndarray:
    """With every step in f16, and sums in order."""
    count = np.float16(x.shape[-1])
    centred = x - in_order(x) / count
    variance = in_order(centred * centred) / count
    weight, bias = norm.weight.numpy(), norm.bias.numpy()
    return centred / np.sqrt(variance + np.float16(norm.eps)) * weight + bias


def in_order(x: np.ndarray) -> np.ndarray:
    """The sum over the last dim, kept, rounded after each term."""
    total = np.zeros(x.shape[:-1], x.dtype)
    for k in range(x.shape[-1]):
        total += x[..., k]
    return total[..., None]


def tell(name: str, found: np.ndarray, exact: np.ndarray) -> None:
    gap = np.abs(found - exact)
    print(f"{name:24}  max {gap.max():.2e}  mean {gap.mean():.2e}", flush=True)


if __name__ == "__main__":
    main()
