"""RNN, GRU and LSTM: steps over a sequence, forwards and backwards."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from numtrace.evaluate.onnx_ops.registry import evaluates_onnx, given
from numtrace.evaluate.op import Op

#: Of one step: x (batch, inputs) and the state, a tuple of (batch, hidden), to the state; of one direction.
Step = Callable[[Tensor, tuple[Tensor, ...]], tuple[Tensor, ...]]

#: Attributes that each reads; with activations of its own, clipping and the like it is not covered.
_READS = ("direction", "hidden_size", "layout")


def _over(
    op: Op, x: Tensor, lengths: Tensor | None, starts: list[Tensor | None], shape: tuple[int, int],
    step_of: Callable[[int], Step],
) -> tuple[Tensor, ...]:  # fmt: skip
    """The hidden states of all steps, and the last state. x is (steps, batch, inputs), or batch first with ``layout``.

    ``shape``: directions and hidden. A row that has ended keeps its state, and has zeros for the steps after.
    """
    batch_first = bool(given(op, "layout", 0))
    x = x.transpose(0, 1) if batch_first else x
    (steps, batch, _), (directions, hidden) = x.shape, shape
    state = [torch.zeros(directions, batch, hidden, dtype=x.dtype) for _ in starts]
    for number, start in enumerate(starts):
        if start is not None:
            state[number] = start.transpose(0, 1) if batch_first else start
    ends = torch.full((batch,), steps) if lengths is None else lengths
    y = torch.zeros(steps, directions, batch, hidden, dtype=x.dtype)
    last: list[list[Tensor]] = [[] for _ in starts]
    for direction in range(directions):
        step, now = step_of(direction), tuple(value[direction] for value in state)
        backwards = given(op, "direction", "forward") == "reverse" or direction == 1
        for number in reversed(range(steps)) if backwards else range(steps):
            goes_on = (number < ends).unsqueeze(1)
            new = step(x[number], now)
            now = tuple(torch.where(goes_on, a, b) for a, b in zip(new, now, strict=True))
            y[number, direction] = torch.where(goes_on, new[0], 0.0)
        for found, value in zip(last, now, strict=True):
            found.append(value)
    ended = [torch.stack(values) for values in last]
    if batch_first:
        return y.permute(2, 0, 1, 3), *(value.transpose(0, 1) for value in ended)
    return y, *ended


@evaluates_onnx("LSTM", reads=_READS, since=7)
def lstm(
    op: Op, x: Tensor, w: Tensor, r: Tensor, b: Tensor | None = None, lengths: Tensor | None = None,
    initial_h: Tensor | None = None, initial_c: Tensor | None = None, p: Tensor | None = None,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Gates in the order i, o, f, c; peepholes p for i, o, f."""
    directions, hidden = w.shape[0], r.shape[2]
    b = torch.zeros(directions, 8 * hidden, dtype=x.dtype) if b is None else b
    p = torch.zeros(directions, 3 * hidden, dtype=x.dtype) if p is None else p

    def of(direction: int) -> Step:
        inputs, states, bias = w[direction].T, r[direction].T, b[direction]
        of_i, of_o, of_f = p[direction].chunk(3)

        def step(x: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            h, c = state
            i, o, f, new = (x @ inputs + h @ states + bias[: 4 * hidden] + bias[4 * hidden :]).chunk(4, -1)
            c_next = torch.sigmoid(f + of_f * c) * c + torch.sigmoid(i + of_i * c) * torch.tanh(new)
            return torch.sigmoid(o + of_o * c_next) * torch.tanh(c_next), c_next

        return step

    return _over(op, x, lengths, [initial_h, initial_c], (directions, hidden), of)


@evaluates_onnx("GRU", reads=(*_READS, "linear_before_reset"), since=7)
def gru(
    op: Op, x: Tensor, w: Tensor, r: Tensor, b: Tensor | None = None, lengths: Tensor | None = None,
    initial_h: Tensor | None = None,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Gates in the order z, r, h; the reset is of the state, or of what it was multiplied to with
    ``linear_before_reset``."""
    directions, hidden = w.shape[0], r.shape[2]
    b = torch.zeros(directions, 6 * hidden, dtype=x.dtype) if b is None else b
    linear = bool(given(op, "linear_before_reset", 0))

    def of(direction: int) -> Step:
        inputs, states = w[direction].T, r[direction].T
        from_x, from_h = b[direction].chunk(2)
        new_states, new_bias = states[:, 2 * hidden :], from_h[2 * hidden :]

        def step(x: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            (h,) = state
            z_x, r_x, h_x = (x @ inputs + from_x).chunk(3, -1)
            z_h, r_h = (h @ states[:, : 2 * hidden] + from_h[: 2 * hidden]).chunk(2, -1)
            z, reset = torch.sigmoid(z_x + z_h), torch.sigmoid(r_x + r_h)
            kept = reset * (h @ new_states + new_bias) if linear else (reset * h) @ new_states + new_bias
            return ((1 - z) * torch.tanh(h_x + kept) + z * h,)

        return step

    return _over(op, x, lengths, [initial_h], (directions, hidden), of)


@evaluates_onnx("RNN", reads=_READS, since=7)
def rnn(
    op: Op, x: Tensor, w: Tensor, r: Tensor, b: Tensor | None = None, lengths: Tensor | None = None,
    initial_h: Tensor | None = None,
) -> tuple[Tensor, ...]:  # fmt: skip
    directions, hidden = w.shape[0], r.shape[2]
    b = torch.zeros(directions, 2 * hidden, dtype=x.dtype) if b is None else b

    def of(direction: int) -> Step:
        bias = sum(b[direction].chunk(2))
        return lambda x, state: (torch.tanh(x @ w[direction].T + state[0] @ r[direction].T + bias),)

    return _over(op, x, lengths, [initial_h], (directions, hidden), of)
