"""Spectra of a signal, window by window."""

from __future__ import annotations

import torch
from torch import Tensor

from numtrace.evaluate.onnx_ops.registry import evaluates_onnx, given
from numtrace.evaluate.op import Op


@evaluates_onnx("STFT", reads=("onesided",), since=17)
def stft(
    op: Op, signal: Tensor, step: Tensor, window: Tensor | None = None, length: Tensor | None = None
) -> Tensor:
    """(batch, samples[, 1 or 2]) to (batch, frames, bins, 2), real and imaginary parts; half of the bins ``onesided``.

    A window gives the length where none is given; frames that leave the signal are left out.
    """
    whole = signal if signal.dim() == 3 else signal.unsqueeze(-1)
    is_complex = whole.shape[-1] == 2
    values = torch.view_as_complex(whole.contiguous()) if is_complex else whole[..., 0]
    size = int(length) if length is not None else len(window) if window is not None else values.shape[1]
    frames = values.unfold(1, size, int(step))
    frames = frames if window is None else frames * window
    onesided = given(op, "onesided", 1) and not is_complex
    return torch.view_as_real(torch.fft.rfft(frames) if onesided else torch.fft.fft(frames))
