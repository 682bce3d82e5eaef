"""The built-in models by name: sizes only, so that listing them imports no torch.

An architecture is a class that has what `Config` names; what it is computed with is imported when it is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from torch import nn

LATENT_CHANNELS = 4
IMAGE_CHANNELS = 3
#: ``decomposed``: matmul, softmax, matmul. ``op``: the attention op kept down to IREE's own.
ATTENTION_FORMS = ("decomposed", "op")


class Config(Protocol):
    """What every architecture has; the values of its fields make up the program."""

    @property
    def source(self) -> str:
        """The file of this package that its program is made of."""

    @property
    def dtype(self) -> str:
        """The element type of its parameters, in MLIR's spelling."""

    @property
    def attention(self) -> str | None:
        """One of `ATTENTION_FORMS`; None where it has no attention."""

    @property
    def input_types(self) -> tuple[str, ...]:
        """The types of its inputs, as ``1x4x16x16xf32``."""

    @property
    def architecture(self) -> tuple[object, ...] | None:
        """What its parameters depend on; None where it has none."""

    @property
    def takes_checkpoint(self) -> bool:
        """Whether a public checkpoint can take the place of the seeded parameters."""

    def module(self) -> nn.Module:
        """The program; its parameters are allocated, and of no particular value."""


@dataclass(frozen=True)
class VaeConfig:
    """Sizes of a decoder.

    ``widths`` are the channels of the four resolutions from the image's up to the latent's (the order
    of the checkpoint's ``block_out_channels``), ``resnets`` the residual blocks of each up block,
    ``groups`` the groups of every normalisation, ``latent`` the latent's height and width,
    ``attention`` one of `ATTENTION_FORMS`.
    """

    widths: tuple[int, int, int, int]
    resnets: int
    groups: int
    latent: int
    attention: str = "decomposed"

    source = "sdxl_vae.py"
    dtype = "f32"
    takes_checkpoint = True

    @property
    def latent_shape(self) -> tuple[int, int, int, int]:
        """Shape of the input, ``(1, 4, latent, latent)``."""
        return (1, LATENT_CHANNELS, self.latent, self.latent)

    @property
    def image_shape(self) -> tuple[int, int, int, int]:
        """Shape of the output: three doublings of the latent's size."""
        return (1, IMAGE_CHANNELS, 8 * self.latent, 8 * self.latent)

    @property
    def input_types(self) -> tuple[str, ...]:
        return (spelled(self.latent_shape, self.dtype),)

    @property
    def architecture(self) -> tuple[object, ...]:
        return (self.widths, self.resnets, self.groups)

    def module(self) -> nn.Module:
        from numtrace.models.sdxl_vae import SdxlVaeDecoder

        return SdxlVaeDecoder(self)


@dataclass(frozen=True)
class CrossAttentionConfig:
    """Sizes of a cross-attention block: ``tokens`` queries of ``width`` channels in ``heads`` heads attend to
    ``context`` keys and values, in a batch of ``batch``, all in ``dtype``.
    """

    dtype: str
    batch: int = 2
    tokens: int = 4096
    heads: int = 10
    width: int = 640
    context: int = 77
    attention: str = "op"

    source = "sdxl_unet.py"
    takes_checkpoint = False

    @property
    def input_types(self) -> tuple[str, ...]:
        stream = spelled((self.batch, self.tokens, self.width), self.dtype)
        keys = spelled((self.batch, self.heads, self.context, self.width // self.heads), self.dtype)
        return (stream, keys, keys, stream)

    @property
    def architecture(self) -> tuple[object, ...]:
        return (self.width, self.dtype)

    def module(self) -> nn.Module:
        from numtrace.models.sdxl_unet import CrossAttentionBlock

        return CrossAttentionBlock(self)


@dataclass(frozen=True)
class MatmulConfig:
    """A product of a ``rows`` by ``width`` and a square matrix, both inputs, in ``dtype``."""

    dtype: str
    rows: int = 8192
    width: int = 640

    source = "sdxl_unet.py"
    attention = None
    architecture = None
    takes_checkpoint = False

    @property
    def input_types(self) -> tuple[str, ...]:
        return (spelled((self.rows, self.width), self.dtype), spelled((self.width, self.width), self.dtype))

    def module(self) -> nn.Module:
        from numtrace.models.sdxl_unet import Matmul

        return Matmul()


def spelled(shape: tuple[int, ...], dtype: str) -> str:
    """A tensor type in MLIR's spelling, as numtrace.instrument.tensor_type has it, which needs numpy."""
    return "x".join([*map(str, shape), dtype])


CONFIGS: dict[str, Config] = {
    "sdxl-vae": VaeConfig(widths=(128, 256, 512, 512), resnets=3, groups=32, latent=64),
    "sdxl-vae-128": VaeConfig(widths=(128, 256, 512, 512), resnets=3, groups=32, latent=16),
    "sdxl-vae-tiny": VaeConfig(widths=(24, 48, 64, 64), resnets=2, groups=8, latent=16),
    "sdxl-unet-attention": CrossAttentionConfig("f16"),
    "sdxl-unet-attention-f32": CrossAttentionConfig("f32"),
    "matmul-8192x640": MatmulConfig("f16"),
    "matmul-8192x640-f32": MatmulConfig("f32"),
}
NAMES = tuple(CONFIGS)
DEFAULT = "sdxl-vae-tiny"
