"""Models small enough for seconds on a CPU."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    """Causal attention and a perceptron, each after a layer norm and around a residual."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.attend = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)
        self.perceptron = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """`[samples, length, width]` in and out."""
        hidden = hidden + self.dropout(self._attention(self.norms[0](hidden)))
        return hidden + self.dropout(self.perceptron(self.norms[1](hidden)))

    def _attention(self, hidden: torch.Tensor) -> torch.Tensor:
        split = self.attend(hidden).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        query, key, value = split.unbind()
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.project(mixed.transpose(1, 2).flatten(2))


class LanguageModel(nn.Module):
    """A decoder of characters."""

    def __init__(
        self,
        alphabet: int,
        *,
        length: int = 64,
        width: int = 64,
        blocks: int = 2,
        heads: int = 4,
        dropout: float = 0.0,
        checkpointed: bool = False,
    ) -> None:
        super().__init__()
        self.characters = nn.Embedding(alphabet, width)
        self.places = nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads, dropout) for _ in range(blocks))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, alphabet)
        self.checkpointed = checkpointed
        for embedding in (self.characters, self.places):
            nn.init.normal_(embedding.weight, std=0.1)

    def forward(self, characters: torch.Tensor) -> torch.Tensor:
        """Logits `[samples, length, alphabet]` of the character after each of `[samples, length]`."""
        places = torch.arange(characters.shape[1], device=characters.device)
        hidden = self.characters(characters) + self.places(places)
        for block in self.blocks:
            if self.checkpointed:
                hidden = checkpoint(block, hidden, use_reentrant=False)
            else:
                hidden = block(hidden)
        return self.head(self.norm(hidden))


def image_model(norm: Callable[[int], nn.Module], classes: int = 10) -> nn.Module:
    """Two convolutions with a normalization of their channels, and a classifier."""
    layers: list[nn.Module] = []
    for inputs, outputs in ((3, 16), (16, 32)):
        # A shift of its own would be taken out again by the norm.
        layers += [nn.Conv2d(inputs, outputs, 3, stride=2, padding=1, bias=False), norm(outputs)]
        layers.append(nn.ReLU())
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, classes))


def encoder(inputs: int = 24, width: int = 32) -> nn.Module:
    """A perceptron that makes embeddings."""
    return nn.Sequential(nn.Linear(inputs, width), nn.GELU(), nn.Linear(width, width))
