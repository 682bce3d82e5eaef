"""The second seed's block and matmul: the mathematics written out, the files, and what they do not take."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from numtrace.errors import UsageError
from numtrace.models import build
from numtrace.models.config import CrossAttentionConfig
from numtrace.models.sdxl_unet import CrossAttentionBlock, Matmul
from numtrace.models.weights import seeded_weights


@pytest.mark.parametrize("form", ["op", "decomposed"])
def test_the_block_by_numpy(form):
    config = CrossAttentionConfig("f32", batch=1, tokens=3, heads=2, width=4, context=5, attention=form)
    block = CrossAttentionBlock(config)
    weights = seeded_weights(config)
    block.load_state_dict(weights)
    generator = torch.Generator().manual_seed(0)
    shapes = [(1, 3, 4), (1, 2, 5, 2), (1, 2, 5, 2), (1, 3, 4)]
    inputs = [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]
    with torch.no_grad():
        found = block.double()(*inputs).numpy()[0]

    w = {name: value.double().numpy() for name, value in weights.items()}
    hidden, key, value, residual = (tensor.numpy()[0] for tensor in inputs)
    centred = hidden - hidden.mean(1, keepdims=True)
    normed = (
        centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5) * w["norm2.weight"] + w["norm2.bias"]
    )
    query = normed @ w["to_q.weight"].T
    heads = []
    for head in range(2):
        scores = np.exp(query[:, 2 * head : 2 * head + 2] @ key[head].T / np.sqrt(2))
        heads.append(scores / scores.sum(1, keepdims=True) @ value[head])
    expected = np.hstack(heads) @ w["to_out.weight"].T + w["to_out.bias"] + residual
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_matmul():
    a, b = torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0], [4.0]])
    assert Matmul()(a, b).tolist() == [[11.0]]


def test_files_in_f16(tmp_path: Path):
    built = build("sdxl-unet-attention", cache=tmp_path)
    weights = load_file(built.parameters["model"])
    assert {name: tuple(value.shape) for name, value in weights.items()} == {
        "norm2.weight": (640,),
        "norm2.bias": (640,),
        "to_q.weight": (640, 640),
        "to_out.weight": (640, 640),
        "to_out.bias": (640,),
    }
    assert {value.dtype for value in weights.values()} == {torch.float16}
    text = built.mlir.read_text()
    assert (
        'loc("native_layer_norm"("norm2"))' in text.replace("#loc", "").replace("\n", "") or "norm2" in text
    )
    assert "_scaled_dot_product_flash_attention_for_cpu" in text
    assert "-> !torch.vtensor<[2,4096,640],f16>" in text
    other = build("sdxl-unet-attention", attention="decomposed", cache=tmp_path)
    assert "torch.aten._softmax" in other.mlir.read_text()
    assert other.parameters == built.parameters


def test_a_product_has_neither_parameters_nor_attention(tmp_path: Path):
    built = build("matmul-8192x640-f32", cache=tmp_path)
    assert built.parameters == {}
    assert built.mlir.read_text().count("torch.aten.mm") == 1
    with pytest.raises(UsageError, match="matmul-8192x640 has no attention"):
        build("matmul-8192x640", attention="op", cache=tmp_path)
    with pytest.raises(UsageError, match="matmul-8192x640 has seeded parameters only"):
        build("matmul-8192x640", cache=tmp_path, params=tmp_path / "x.safetensors")
