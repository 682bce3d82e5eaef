"""The decoder's parameters are the public checkpoint's; its two forms of attention mean the same."""

from dataclasses import replace
from math import prod

import torch

from numtrace.models.config import CONFIGS
from numtrace.models.sdxl_vae import SdxlVaeDecoder
from numtrace.models.weights import parameter_shapes, seeded_weights

TINY = CONFIGS["sdxl-vae-tiny"]


def count(name):
    return sum(prod(shape) for shape in parameter_shapes(CONFIGS[name]).values())


def test_parameter_count_of_tiny_by_hand():
    conv3 = lambda i, o: 9 * i * o + o  # noqa: E731
    post_quant, conv_in = 4 * 4 + 4, conv3(4, 64)
    resnet_64 = 4 * 64 + 2 * conv3(64, 64)
    attention = 2 * 64 + 4 * (64 * 64 + 64)
    up_64 = 2 * resnet_64 + conv3(64, 64)
    shortcut_48, shortcut_24 = 64 * 48 + 48, 48 * 24 + 24
    up_48 = (2 * 64 + conv3(64, 48) + 2 * 48 + conv3(48, 48) + shortcut_48) + (
        4 * 48 + 2 * conv3(48, 48) + conv3(48, 48)
    )
    up_24 = (2 * 48 + conv3(48, 24) + 2 * 24 + conv3(24, 24) + shortcut_24) + (4 * 24 + 2 * conv3(24, 24))
    out = 2 * 24 + conv3(24, 3)
    total = post_quant + conv_in + 2 * resnet_64 + attention + 2 * up_64 + up_48 + up_24 + out
    assert total == 680_183
    assert count("sdxl-vae-tiny") == 680_183


def test_parameter_count_of_the_full_decoder_is_the_published_one():
    # 83,653,863 parameters of the autoencoder, less encoder (34,163,592) and quant_conv (72).
    assert count("sdxl-vae") == count("sdxl-vae-128") == 83_653_863 - 34_163_592 - 72


def test_names_and_shapes_of_the_public_checkpoint():
    shapes = parameter_shapes(CONFIGS["sdxl-vae"])
    assert len(shapes) == 140
    for name, shape in {
        "post_quant_conv.weight": (4, 4, 1, 1),
        "decoder.conv_in.weight": (512, 4, 3, 3),
        "decoder.mid_block.attentions.0.group_norm.weight": (512,),
        "decoder.mid_block.attentions.0.to_out.0.bias": (512,),
        "decoder.mid_block.resnets.1.conv2.weight": (512, 512, 3, 3),
        "decoder.up_blocks.0.upsamplers.0.conv.weight": (512, 512, 3, 3),
        "decoder.up_blocks.2.resnets.0.conv_shortcut.weight": (256, 512, 1, 1),
        "decoder.up_blocks.3.resnets.0.conv_shortcut.weight": (128, 256, 1, 1),
        "decoder.up_blocks.3.resnets.2.norm2.bias": (128,),
        "decoder.conv_norm_out.weight": (128,),
        "decoder.conv_out.bias": (3,),
    }.items():
        assert shapes[name] == shape, name
    assert "decoder.up_blocks.3.upsamplers.0.conv.weight" not in shapes
    assert "decoder.up_blocks.1.resnets.0.conv_shortcut.weight" not in shapes


def test_both_attention_forms_give_the_same_image():
    latent = torch.randn(1, 4, 8, 8, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    images = []
    for attention in ("decomposed", "op"):
        decoder = SdxlVaeDecoder(replace(TINY, latent=8, attention=attention)).double()
        decoder.load_state_dict(seeded_weights(TINY))
        with torch.no_grad():
            images.append(decoder(latent))
    assert images[0].shape == (1, 3, 64, 64)
    assert (images[0] - images[1]).abs().max() < 1e-13
