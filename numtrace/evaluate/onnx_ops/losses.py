"""How unlikely the classes are that are right."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from numtrace.errors import UndefinedResult
from numtrace.evaluate.onnx_ops.registry import evaluates_onnx, given
from numtrace.evaluate.op import Op

_READS = ("ignore_index", "reduction")


@evaluates_onnx("NegativeLogLikelihoodLoss", reads=_READS, since=12)
def negative_log_likelihood(op: Op, x: Tensor, target: Tensor, weight: Tensor | None = None) -> Tensor:
    """Of log-probabilities (n, classes, …); torch's, which ONNX refers to."""
    ignored = given(op, "ignore_index")
    counting = target if ignored is None else target[target != ignored]
    if bool(((counting < 0) | (counting >= x.shape[1])).any()):
        raise UndefinedResult(op.attributes["name"].value, f"has a class beyond the {x.shape[1]} there are")
    return functional.nll_loss(
        x,
        target.to(torch.int64),
        weight,
        ignore_index=-1 if ignored is None else ignored,
        reduction=given(op, "reduction", "mean"),
    )


@evaluates_onnx("SoftmaxCrossEntropyLoss", reads=_READS, since=12)
def softmax_cross_entropy(
    op: Op, scores: Tensor, target: Tensor, weight: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The loss, and the logarithms of the probabilities."""
    logarithms = torch.log_softmax(scores, 1)
    return negative_log_likelihood(op, logarithms, target, weight), logarithms
