"""LSTM: steps over a sequence, forwards and backwards."""

from __future__ import annotations

import torch
from torch import Tensor

from numtrace.evaluate.onnx_ops.registry import evaluates_onnx, given
from numtrace.evaluate.op import Op


@evaluates_onnx("LSTM", unless=("activations", "activation_alpha", "activation_beta", "clip", "input_forget"))
def lstm(
    op: Op, x: Tensor, w: Tensor, r: Tensor, b: Tensor | None = None, lengths: Tensor | None = None,
    initial_h: Tensor | None = None, initial_c: Tensor | None = None, p: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """x (steps, batch, inputs), or batch first with ``layout``; gates in the order i, o, f, c; p for i, o, f."""
    batch_first = bool(given(op, "layout", 0))
    x = x.transpose(0, 1) if batch_first else x
    steps, batch, _ = x.shape
    directions, hidden = w.shape[0], r.shape[2]
    zeros = torch.zeros(directions, batch, hidden, dtype=x.dtype)
    b = torch.zeros(directions, 8 * hidden, dtype=x.dtype) if b is None else b
    p = torch.zeros(directions, 3 * hidden, dtype=x.dtype) if p is None else p
    starts = [zeros if start is None else start for start in (initial_h, initial_c)]
    if batch_first:
        starts = [start if start is zeros else start.transpose(0, 1) for start in starts]
    lengths = torch.full((batch,), steps) if lengths is None else lengths
    y = torch.zeros(steps, directions, batch, hidden, dtype=x.dtype)
    last_h, last_c = starts[0].clone(), starts[1].clone()
    for direction in range(directions):
        backwards = given(op, "direction", "forward") == "reverse" or direction == 1
        for row in range(batch):
            h, c = last_h[direction, row], last_c[direction, row]
            order = range(int(lengths[row]))
            for step in reversed(order) if backwards else order:
                own = (value[direction] for value in (w, r, b, p))
                h, c = _step(x[step, row], h, c, *own)
                y[step, direction, row] = h
            last_h[direction, row], last_c[direction, row] = h, c
    if batch_first:
        return y.permute(2, 0, 1, 3), last_h.transpose(0, 1), last_c.transpose(0, 1)
    return y, last_h, last_c


def _step(
    x: Tensor, h: Tensor, c: Tensor, w: Tensor, r: Tensor, b: Tensor, p: Tensor
) -> tuple[Tensor, Tensor]:
    half = b.shape[0] // 2
    i, o, f, new = (w @ x + r @ h + b[:half] + b[half:]).chunk(4)
    of_i, of_o, of_f = p.chunk(3)
    c_next = torch.sigmoid(f + of_f * c) * c + torch.sigmoid(i + of_i * c) * torch.tanh(new)
    return torch.sigmoid(o + of_o * c_next) * torch.tanh(c_next), c_next
