"""The decoder of the SDXL variational autoencoder, with the parameter names of the public checkpoint.

The structure is that of ``AutoencoderKL``'s decoding half as published with Stable Diffusion XL
(``vae/diffusion_pytorch_model.safetensors``): a latent ``1x4xHxW`` becomes an image ``1x3x8Hx8W``.
Latent scaling and the clamp to [0, 1] are part of the module, so that its output is an image.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from numtrace.models.config import IMAGE_CHANNELS, LATENT_CHANNELS, VaeConfig

#: The scaling factor that the SDXL autoencoder was trained with (its ``config.json``).
LATENT_SCALE = 0.13025
NORM_EPS = 1e-6


class Resnet(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, groups: int):
        super().__init__()
        self.norm1 = nn.GroupNorm(groups, in_channels, eps=NORM_EPS)
        self.conv1 = nn.Conv2d(in_channels, out_channels, 3, padding=1)
        self.norm2 = nn.GroupNorm(groups, out_channels, eps=NORM_EPS)
        self.conv2 = nn.Conv2d(out_channels, out_channels, 3, padding=1)
        if in_channels != out_channels:
            self.conv_shortcut = nn.Conv2d(in_channels, out_channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        h = self.conv1(F.silu(self.norm1(x)))
        h = self.conv2(F.silu(self.norm2(h)))
        return (self.conv_shortcut(x) if hasattr(self, "conv_shortcut") else x) + h


class Attention(nn.Module):
    """Single-head self-attention over the pixels of a feature map.

    ``form`` is ``decomposed`` (matmul, softmax, matmul: the seed's IR) or ``op`` (the attention op kept).
    """

    def __init__(self, channels: int, groups: int, form: str):
        super().__init__()
        self.group_norm = nn.GroupNorm(groups, channels, eps=NORM_EPS)
        self.to_q = nn.Linear(channels, channels)
        self.to_k = nn.Linear(channels, channels)
        self.to_v = nn.Linear(channels, channels)
        self.to_out = nn.ModuleList([nn.Linear(channels, channels)])
        self.form = form

    def forward(self, x: Tensor) -> Tensor:
        batch, channels, height, width = x.shape
        h = self.group_norm(x).reshape(batch, channels, height * width).transpose(1, 2)
        q, k, v = self.to_q(h), self.to_k(h), self.to_v(h)
        if self.form == "op":
            h = F.scaled_dot_product_attention(q[:, None], k[:, None], v[:, None])[:, 0]
        else:
            scores = torch.matmul(q, k.transpose(1, 2)) * channels**-0.5
            h = torch.matmul(torch.softmax(scores, dim=-1), v)
        h = self.to_out[0](h)
        return h.transpose(1, 2).reshape(batch, channels, height, width) + x


class MidBlock(nn.Module):
    def __init__(self, channels: int, groups: int, attention: str):
        super().__init__()
        self.resnets = nn.ModuleList([Resnet(channels, channels, groups) for _ in range(2)])
        self.attentions = nn.ModuleList([Attention(channels, groups, attention)])

    def forward(self, x: Tensor) -> Tensor:
        return self.resnets[1](self.attentions[0](self.resnets[0](x)))


class Upsample(nn.Module):
    def __init__(self, channels: int):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(F.interpolate(x, scale_factor=2.0, mode="nearest"))


class UpBlock(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, resnets: int, groups: int, upsample: bool):
        super().__init__()
        self.resnets = nn.ModuleList(
            [Resnet(in_channels if i == 0 else out_channels, out_channels, groups) for i in range(resnets)]
        )
        self.upsamplers = nn.ModuleList([Upsample(out_channels)] if upsample else [])

    def forward(self, x: Tensor) -> Tensor:
        for resnet in self.resnets:
            x = resnet(x)
        for upsampler in self.upsamplers:
            x = upsampler(x)
        return x


class Decoder(nn.Module):
    def __init__(self, config: VaeConfig):
        super().__init__()
        widths = config.widths[::-1]
        self.conv_in = nn.Conv2d(LATENT_CHANNELS, widths[0], 3, padding=1)
        self.mid_block = MidBlock(widths[0], config.groups, config.attention)
        in_widths = (widths[0], *widths[:-1])
        self.up_blocks = nn.ModuleList(
            [
                UpBlock(before, after, config.resnets, config.groups, upsample=i < len(widths) - 1)
                for i, (before, after) in enumerate(zip(in_widths, widths, strict=True))
            ]
        )
        self.conv_norm_out = nn.GroupNorm(config.groups, widths[-1], eps=NORM_EPS)
        self.conv_out = nn.Conv2d(widths[-1], IMAGE_CHANNELS, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.mid_block(self.conv_in(x))
        for block in self.up_blocks:
            x = block(x)
        return self.conv_out(F.silu(self.conv_norm_out(x)))


class SdxlVaeDecoder(nn.Module):
    """Latent ``1x4xHxW`` (scaled as the diffusion model leaves it) to an image ``1x3x8Hx8W`` in [0, 1]."""

    def __init__(self, config: VaeConfig):
        super().__init__()
        self.post_quant_conv = nn.Conv2d(LATENT_CHANNELS, LATENT_CHANNELS, 1)
        self.decoder = Decoder(config)

    def forward(self, latent: Tensor) -> Tensor:
        image = self.decoder(self.post_quant_conv(latent / LATENT_SCALE))
        return (image / 2 + 0.5).clamp(0, 1)
