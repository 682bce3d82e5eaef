"""A cross-attention block of the SDXL UNet (its 640 channels at half the latent's size), and its matmul alone."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from numtrace.models.config import CrossAttentionConfig


class CrossAttentionBlock(nn.Module):
    """Layer norm, projection to queries, attention, projection, bias and residual, all in one element type.

    Key and value come projected and split into heads already, and the residual is an input of its own, as in the
    graph that torch-tensorrt cuts out of the model.
    """

    def __init__(self, config: CrossAttentionConfig):
        super().__init__()
        self.heads, self.form = config.heads, config.attention
        self.norm2 = nn.LayerNorm(config.width)
        self.to_q = nn.Linear(config.width, config.width, bias=False)
        self.to_out = nn.Linear(config.width, config.width)

    def forward(self, hidden: Tensor, key: Tensor, value: Tensor, residual: Tensor) -> Tensor:
        batch, tokens, width = hidden.shape
        rows = self.norm2(hidden).reshape(batch * tokens, width)
        query = self.to_q(rows).reshape(batch, tokens, self.heads, width // self.heads).permute(0, 2, 1, 3)
        mixed = self._attention(query, key, value).permute(0, 2, 1, 3)
        # The product and the bias are two ops, as in the graph.
        rows = torch.mm(mixed.reshape(batch * tokens, width), self.to_out.weight.t()) + self.to_out.bias
        return rows.reshape(batch, tokens, width) + residual

    def _attention(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        if self.form == "op":
            return F.scaled_dot_product_attention(query, key, value)
        scores = torch.matmul(query, key.transpose(2, 3)) * query.shape[-1] ** -0.5
        return torch.matmul(torch.softmax(scores, dim=-1), value)


class Matmul(nn.Module):
    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        return q @ k
