"""A language small enough to be learnt in seconds, whose entropy is known.

Each sentence is words drawn from lists, evenly and independently, and then some of them again: what
comes again is certain for who looks back far enough, so that there is something for attention to find.
"""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import dataclass

import torch

ARTICLES = ("a", "the", "my", "one")
QUALITIES = ("small", "green", "old", "quick", "dark")
BEINGS = ("cat", "horse", "fox", "bird", "child")
DEEDS = ("sees", "likes", "finds", "wants")
THINGS = ("ball", "river", "house", "tree", "light")
# A number is the slot whose word comes again.
SENTENCE: tuple[tuple[str, ...] | int, ...] = (
    ARTICLES, QUALITIES, BEINGS, DEEDS, ARTICLES, THINGS, ("and", "but"), 0, 2, ("is",), 1,
)  # fmt: skip
END = ". "

ALPHABET = sorted({*"".join(itertools.chain(*(it for it in SENTENCE if isinstance(it, tuple)))), *END})
# The part of the sentences that is trained on; on the rest it is validated.
TRAINED = 0.9


def sentence(random_: random.Random) -> str:
    """A sentence."""
    words: list[str] = []
    for slot in SENTENCE:
        words.append(words[slot] if isinstance(slot, int) else random_.choice(slot))
    return " ".join(words) + END


def entropy() -> float:
    """Nats per character: no model's loss is lower in the long run. What is drawn for a sentence,
    over its length on average."""
    drawn = sum(math.log(len(slot)) for slot in SENTENCE if isinstance(slot, tuple))

    def length(slot: tuple[str, ...] | int) -> float:
        words = SENTENCE[slot] if isinstance(slot, int) else slot
        assert isinstance(words, tuple)
        return sum(map(len, words)) / len(words)

    return drawn / (sum(map(length, SENTENCE)) + len(SENTENCE) - 1 + len(END))


@dataclass(frozen=True)
class Corpus:
    """Characters, by their places in the alphabet."""

    train: torch.Tensor
    validation: torch.Tensor

    @classmethod
    def of(cls, sentences: int, seed: int) -> Corpus:
        """So many sentences."""
        random_ = random.Random(seed)
        written = [sentence(random_) for _ in range(sentences)]
        border = round(sentences * TRAINED)
        return cls(_encoded(written[:border]), _encoded(written[border:]))


def _encoded(sentences: list[str]) -> torch.Tensor:
    places = {character: place for place, character in enumerate(ALPHABET)}
    return torch.tensor([places[character] for character in "".join(sentences)])


def windows(text: torch.Tensor, length: int, begins: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs and their next characters, `[samples, length]` each, from these places of a text."""
    places = begins[:, None] + torch.arange(length)
    return text[places], text[places + 1]
