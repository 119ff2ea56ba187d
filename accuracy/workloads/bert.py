"""BERT with a head for questions, its attention written out, as NVIDIA's example has it."""

import math

import torch
from torch import nn
from torch.nn import functional

# Layers, heads, width.
MODELS = {"bert-base": (12, 12, 768), "bert-large": (24, 16, 1024)}
VOCABULARY, PLACES, DROPOUT = 30528, 512, 0.1


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))
        self.norm = nn.LayerNorm(width, eps=1e-12)

    def split(self, x):
        batch, length, width = x.shape
        return x.view(batch, length, self.heads, width // self.heads).transpose(1, 2)

    def forward(self, x, mask):
        q, k, v = self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) + mask
        weights = functional.dropout(functional.softmax(scores, -1), DROPOUT, self.training)
        mixed = (weights @ v).transpose(1, 2).contiguous().view(x.shape)
        return self.norm(functional.dropout(self.out(mixed), DROPOUT, self.training) + x)


class Feedforward(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)

    def forward(self, x):
        inner = self.down(functional.gelu(self.up(x)))
        return self.norm(functional.dropout(inner, DROPOUT, self.training) + x)


class Bert(nn.Module):
    def __init__(self, name):
        super().__init__()
        layers, heads, width = MODELS[name]
        self.words = nn.Embedding(VOCABULARY, width)
        self.places = nn.Embedding(PLACES, width)
        self.segments = nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.layers = nn.ModuleList(
            nn.ModuleList([Attention(width, heads), Feedforward(width)]) for _ in range(layers)
        )
        self.ends = nn.Linear(width, 2)

    def forward(self, ids, mask, segments, first, last):
        """The loss of the first and last token of the answer."""
        x = self.words(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        x = functional.dropout(self.norm(x + self.segments(segments)), DROPOUT, self.training)
        mask = (1.0 - mask[:, None, None].to(x.dtype)) * -10000.0
        for attention, feedforward in self.layers:
            x = feedforward(attention(x, mask))
        begins, ends = self.ends(x).split(1, dim=-1)
        losses = (
            functional.cross_entropy(scores.squeeze(-1), target)
            for scores, target in ((begins, first), (ends, last))
        )
        return sum(losses) / 2
