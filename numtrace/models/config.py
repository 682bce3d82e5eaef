"""The built-in models by name: sizes only, so that listing them imports no torch."""

from __future__ import annotations

from dataclasses import dataclass

LATENT_CHANNELS = 4
IMAGE_CHANNELS = 3
#: ``decomposed``: matmul, softmax, matmul. ``op``: the attention op kept down to IREE's own.
ATTENTION_FORMS = ("decomposed", "op")


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

    @property
    def latent_shape(self) -> tuple[int, int, int, int]:
        """Shape of the input, ``(1, 4, latent, latent)``."""
        return (1, LATENT_CHANNELS, self.latent, self.latent)

    @property
    def image_shape(self) -> tuple[int, int, int, int]:
        """Shape of the output: three doublings of the latent's size."""
        return (1, IMAGE_CHANNELS, 8 * self.latent, 8 * self.latent)


CONFIGS = {
    "sdxl-vae": VaeConfig(widths=(128, 256, 512, 512), resnets=3, groups=32, latent=64),
    "sdxl-vae-128": VaeConfig(widths=(128, 256, 512, 512), resnets=3, groups=32, latent=16),
    "sdxl-vae-tiny": VaeConfig(widths=(24, 48, 64, 64), resnets=2, groups=8, latent=16),
}
NAMES = tuple(CONFIGS)
DEFAULT = "sdxl-vae-tiny"
