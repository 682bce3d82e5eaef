"""Seeded weights: the same everywhere, and an image that a clamp does not hide."""

import pytest
import torch

from numtrace.models.config import CONFIGS
from numtrace.models.sdxl_vae import SdxlVaeDecoder
from numtrace.models.weights import parameter_shapes, seeded_weights

TINY = CONFIGS["sdxl-vae-tiny"]


@pytest.fixture(scope="module")
def decoder():
    decoder = SdxlVaeDecoder(TINY)
    decoder.load_state_dict(seeded_weights(TINY))
    return decoder


def latent(seed):
    return torch.randn(TINY.latent_shape, generator=torch.Generator().manual_seed(seed))


def test_every_parameter_in_module_order_as_f32():
    weights = seeded_weights(TINY)
    assert {name: tuple(value.shape) for name, value in weights.items()} == parameter_shapes(TINY)
    assert list(weights) == list(parameter_shapes(TINY))
    assert {value.dtype for value in weights.values()} == {torch.float32}


def test_a_parameter_depends_on_its_name_only():
    first = seeded_weights(TINY)
    torch.manual_seed(99)
    again = seeded_weights(CONFIGS["sdxl-vae-tiny"])
    assert all(torch.equal(first[name], again[name]) for name in first)
    # The full model's 4x4 convolution has the same name and shape, and so the same numbers.
    full = seeded_weights(CONFIGS["sdxl-vae-128"])
    assert torch.equal(full["post_quant_conv.weight"], first["post_quant_conv.weight"])
    block = "decoder.mid_block.resnets.{}.conv1.weight"
    assert not torch.equal(first[block.format(0)], first[block.format(1)])


def test_biases_are_not_zero_and_norms_spread_about_one():
    weights = seeded_weights(TINY)
    for name, value in weights.items():
        if name.endswith(".bias"):
            assert (value != 0).all(), name
    norm = weights["decoder.mid_block.resnets.0.norm1.weight"]
    assert 0.05 < norm.std() < 0.3
    assert abs(norm.mean() - 1) < 0.1


@pytest.mark.parametrize("seed", range(3))
def test_image_fills_the_range_and_is_not_saturated(decoder, seed):
    with torch.no_grad():
        image = decoder(latent(seed))
    assert image.min() >= 0
    assert image.max() <= 1
    assert ((image == 0) | (image == 1)).float().mean() < 0.01
    assert 0.45 < image.mean() < 0.55
    assert 0.15 < image.std() < 0.25


def test_activations_stay_of_order_one(decoder):
    stds = {}
    hooks = [
        layer.register_forward_hook(lambda _, __, out, name=name: stds.__setitem__(name, out.std().item()))
        for name, layer in decoder.named_modules()
        if name
    ]
    with torch.no_grad():
        decoder(latent(0))
    for hook in hooks:
        hook.remove()
    assert len(stds) > 60
    assert min(stds.values()) > 0.25
    assert max(stds.values()) < 3
