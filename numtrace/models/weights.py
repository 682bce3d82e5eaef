"""Seeded weights for the built-in models: realistic in scale, the same bits on every machine.

Each parameter has a generator of its own, seeded by its name, so neither the order of drawing nor the
other parameters matter. Values are uniform because torch's uniform numbers are exact multiples of
2^-24 from a serial generator, while its normal ones depend on the CPU's vector instructions.
"""

from __future__ import annotations

import hashlib
import math

import torch
from torch import Tensor, nn

from numtrace.instrument.dtypes import torch_dtype
from numtrace.models.config import Config
from numtrace.models.sdxl_vae import LATENT_SCALE

#: Standard deviation of ``silu(z)`` for standard normal ``z``: what a convolution after a norm is fed.
SILU_STD = 0.5595
#: Standard deviation of the output of a convolution that follows norm and SiLU. ``conv2`` ends a residual
#: branch, which must not outgrow its stream; ``conv_out`` gives the image in [-1, 1], where three standard
#: deviations should stay inside the clamp (measured: fewer than 1 % of the elements touch it).
_AFTER_SILU = {"conv1": 1.0, "conv2": 0.5, "conv_out": 0.33}
#: Output over input standard deviation of the other layers (1 unless named). ``post_quant_conv`` undoes
#: the division by the latent scale; query and key make attention scores of standard deviation 2.
_GAIN = {"post_quant_conv": LATENT_SCALE, "to_q": math.sqrt(2), "to_k": math.sqrt(2)}
#: Standard deviation of biases: a dropped one must show against bf16's rounding.
_BIAS_STD = 0.15
_NORM_SPREAD = 0.15


def parameter_shapes(config: Config) -> dict[str, tuple[int, ...]]:
    """Name and shape of every parameter, in module order; nothing is allocated."""
    with torch.device("meta"):
        module = config.module()
    return {name: tuple(value.shape) for name, value in module.state_dict().items()}


def seeded_weights(config: Config) -> dict[str, Tensor]:
    """Every parameter of the model in its element type, keyed by its name, in module order."""
    with torch.device("meta"):
        module = config.module()
    dtype = torch_dtype(config.dtype)
    return {
        f"{path}.{name}": _draw(path, name, layer, tuple(parameter.shape)).to(dtype)
        for path, layer in module.named_modules()
        for name, parameter in layer.named_parameters(recurse=False)
    }


def _draw(path: str, name: str, layer: nn.Module, shape: tuple[int, ...]) -> Tensor:
    unit = _unit_variance(f"{path}.{name}", shape)
    role = path.removesuffix(".0").rsplit(".", 1)[-1]
    if name == "bias":
        # The image's mean is to be near the middle of [0, 1].
        return (unit * (_BIAS_STD / 4 if role == "conv_out" else _BIAS_STD)).float()
    if isinstance(layer, (nn.GroupNorm, nn.LayerNorm)):
        return (1 + unit * _NORM_SPREAD).float()
    fan_in = math.prod(shape[1:])
    if role in _AFTER_SILU:
        # SiLU's output has a positive mean; without a centred kernel it would become a constant per channel.
        unit -= unit.mean(dim=tuple(range(1, len(shape))), keepdim=True)
        gain = _AFTER_SILU[role] / SILU_STD
    else:
        gain = _GAIN.get(role, 1.0)
    return (unit * (gain / math.sqrt(fan_in))).float()


def _unit_variance(name: str, shape: tuple[int, ...]) -> Tensor:
    """Uniform f64 numbers of mean 0 and variance 1; sums of them are exact up to the scaling."""
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")
    uniform = torch.rand(shape, generator=torch.Generator().manual_seed(seed % 2**63))
    return (uniform.double() - 0.5) * math.sqrt(12)
