"""Norms along an axis, and values by the mean and the variance that they, or the training, have."""

from __future__ import annotations

import torch
from torch import Tensor

from numtrace.evaluate.onnx_ops.registry import evaluates_onnx, given
from numtrace.evaluate.op import Op


@evaluates_onnx("LpNormalization", reads=("axis", "p"), since=1)
def lp_normalization(op: Op, x: Tensor) -> Tensor:
    """x / ‖x‖ₚ; "when the Lp norm is zero, the output is defined to be zero to avoid division by zero"."""
    size = torch.linalg.vector_norm(x, ord=given(op, "p", 2), dim=given(op, "axis", -1), keepdim=True)
    return torch.where(size == 0, 0.0, x / size)


@evaluates_onnx("Softmax", reads=("axis",), since=13)
def softmax(op: Op, x: Tensor) -> Tensor:
    return torch.softmax(x, given(op, "axis", -1))


@evaluates_onnx("LogSoftmax", reads=("axis",), since=13)
def log_softmax(op: Op, x: Tensor) -> Tensor:
    return torch.log_softmax(x, given(op, "axis", -1))


@evaluates_onnx("BatchNormalization", reads=("epsilon", "momentum", "training_mode"), since=9)
def batch_normalization(op: Op, x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, variance: Tensor):
    """In training the batch's own, and the running ones moved by ``momentum`` towards them."""
    shape = [1, -1, *[1] * (x.dim() - 2)]
    epsilon, momentum = given(op, "epsilon", 1e-5), given(op, "momentum", 0.9)
    if not given(op, "training_mode", 0):
        return _scaled(x, mean.reshape(shape), variance.reshape(shape), epsilon, scale, bias, shape)
    dims = [0, *range(2, x.dim())]
    own_mean, own_variance = x.mean(dims), x.var(dims, correction=0)
    made = _scaled(x, own_mean.reshape(shape), own_variance.reshape(shape), epsilon, scale, bias, shape)
    running = (
        old * momentum + new * (1 - momentum) for old, new in ((mean, own_mean), (variance, own_variance))
    )
    return made, *running


@evaluates_onnx("InstanceNormalization", reads=("epsilon",), since=6)
def instance_normalization(op: Op, x: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
    dims = [*range(2, x.dim())]
    moments = x.mean(dims, keepdim=True), x.var(dims, correction=0, keepdim=True)
    return _scaled(x, *moments, given(op, "epsilon", 1e-5), scale, bias, [1, -1, *[1] * (x.dim() - 2)])


@evaluates_onnx("GroupNormalization", reads=("epsilon", "num_groups", "stash_type"), since=21)
def group_normalization(op: Op, x: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
    groups = x.reshape(x.shape[0], given(op, "num_groups"), -1)
    mean, variance = groups.mean(-1, keepdim=True), groups.var(-1, correction=0, keepdim=True)
    made = ((groups - mean) / torch.sqrt(variance + given(op, "epsilon", 1e-5))).reshape(x.shape)
    shape = [1, -1, *[1] * (x.dim() - 2)]
    return made * scale.reshape(shape) + bias.reshape(shape)


@evaluates_onnx("LayerNormalization", reads=("axis", "epsilon", "stash_type"), since=17)
def layer_normalization(
    op: Op, x: Tensor, scale: Tensor, bias: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """The result, the mean, and 1 over the deviation."""
    dims = [*range(given(op, "axis", -1) % x.dim(), x.dim())]
    mean = x.mean(dims, keepdim=True)
    inverse = 1 / torch.sqrt(x.var(dims, correction=0, keepdim=True) + given(op, "epsilon", 1e-5))
    made = (x - mean) * inverse * scale
    return made if bias is None else made + bias, mean, inverse


@evaluates_onnx("RMSNormalization", reads=("axis", "epsilon", "stash_type"), since=23)
def rms_normalization(op: Op, x: Tensor, scale: Tensor) -> Tensor:
    dims = [*range(given(op, "axis", -1) % x.dim(), x.dim())]
    square = (x * x).mean(dims, keepdim=True)
    return x / torch.sqrt(square + given(op, "epsilon", 1e-5)) * scale


@evaluates_onnx("LRN", reads=("alpha", "beta", "bias", "size"), since=1)
def local_response_normalization(op: Op, x: Tensor) -> Tensor:
    """By the squares of the channels around: (size - 1) / 2 of them before, rounded down, and after, rounded up."""
    size = given(op, "size")
    before, after = (size - 1) // 2, size - 1 - (size - 1) // 2
    squares = torch.zeros_like(x)
    for channel in range(x.shape[1]):
        part = x[:, max(channel - before, 0) : channel + after + 1]
        squares[:, channel] = (part * part).sum(1)
    return x / (given(op, "bias", 1.0) + given(op, "alpha", 0.0001) / size * squares) ** given(
        op, "beta", 0.75
    )


def _scaled(
    x: Tensor, mean: Tensor, variance: Tensor, epsilon: float, scale: Tensor, bias: Tensor, shape: list[int]
) -> Tensor:
    return (x - mean) / torch.sqrt(variance + epsilon) * scale.reshape(shape) + bias.reshape(shape)
