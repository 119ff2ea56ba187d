"""Ways to accumulate: those that keep the gradient, and those that are commonly taken to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from . import grammar
from .gradients import Gradients, Problem
from .models import LanguageModel, encoder, image_model
from .precision import FP64, Precision, offered

Batch = tuple[torch.Tensor, ...]
Loss = Callable[[nn.Module, Batch], torch.Tensor]

SAMPLES = 16
MICRO_BATCH = 4
# A last micro-batch of two.
RAGGED = 14
LENGTH = 32
# A label that is not counted, as PyTorch has it.
IGNORED = -100
TEMPERATURE = 0.1


@dataclass(frozen=True)
class Case:
    """A way to accumulate."""

    name: str
    # For people: the model and its loss.
    title: str
    # What it must come to: equal, unequal or random.
    expected: str
    # Why, and what to do where it is not equal.
    lesson: str
    model: Callable[[], nn.Module]
    batch: Callable[[torch.Generator], Batch]
    whole: Loss
    # From model, micro-batch, whole batch.
    part: Callable[[nn.Module, Batch, Batch], torch.Tensor]

    def measure(self, precision: Precision, device: torch.device, seed: int) -> dict[str, Any]:
        """Its gradients in one precision."""
        torch.manual_seed(seed)
        generator = torch.Generator().manual_seed(seed)
        model = precision.convert(self.model()).to(device)
        batch = tuple(precision.convert(it).to(device) for it in self.batch(generator))
        order = torch.randperm(len(batch[0]), generator=generator).to(device)
        problem = Problem(
            model=model,
            batch=batch,
            parts=split,
            reordered=lambda batch: tuple(tensor[order] for tensor in batch),
            whole=self.whole,
            part=self.part,
        )
        return Gradients(problem, precision, device).measure().to_json()

    def about(self) -> dict[str, Any]:
        """What it is."""
        return {
            "name": self.name,
            "title": self.title,
            "expected": self.expected,
            "lesson": self.lesson,
        }


def split(batch: Batch) -> Sequence[Batch]:
    """In micro-batches, the last of what is left."""
    return list(zip(*(tensor.split(MICRO_BATCH) for tensor in batch), strict=True))


# Batches.


def text(generator: torch.Generator, samples: int = SAMPLES) -> Batch:
    """Sentences, all of one length."""
    corpus = grammar.Corpus.of(60, seed=generator.initial_seed()).train
    begins = torch.randint(len(corpus) - LENGTH, (samples,), generator=generator)
    return grammar.windows(corpus, LENGTH, begins)


def padded_text(generator: torch.Generator) -> Batch:
    """Texts of 1 to all characters, padded with what is not counted. As in a corpus of conversations,
    twice the length is as common as half of it."""
    characters, labels = text(generator)
    lengths = LENGTH ** torch.rand(SAMPLES, 1, generator=generator)
    return characters, labels.masked_fill(torch.arange(LENGTH) >= lengths, IGNORED)


def images(generator: torch.Generator) -> Batch:
    """Noise around a colour of each class."""
    labels = torch.randint(10, (SAMPLES,), generator=generator)
    colours = torch.randn(10, 3, 1, 1, generator=generator)
    noise = torch.randn(SAMPLES, 3, 16, 16, generator=generator)
    return colours[labels] + noise, labels


def pairs(generator: torch.Generator) -> Batch:
    """Two views of each sample."""
    one = torch.randn(SAMPLES, 24, generator=generator)
    return one, one + 0.3 * torch.randn(SAMPLES, 24, generator=generator)


# Losses.


def mean_of_tokens(model: nn.Module, batch: Batch) -> torch.Tensor:
    """Over the tokens that are counted."""
    return functional.cross_entropy(model(batch[0]).flatten(0, 1), batch[1].flatten())


def mean_of_images(model: nn.Module, batch: Batch) -> torch.Tensor:
    """Over the images."""
    return functional.cross_entropy(model(batch[0]), batch[1])


def contrastive(model: nn.Module, batch: Batch) -> torch.Tensor:
    """Each sample must find its other view among those of all samples in the batch (InfoNCE)."""
    one, other = (functional.normalize(model(view), dim=1) for view in batch)
    likeness = one @ other.T / TEMPERATURE
    return functional.cross_entropy(likeness, torch.arange(len(one), device=one.device))


# What a micro-batch adds.


def by_steps(loss: Loss) -> Callable[[nn.Module, Batch, Batch], torch.Tensor]:
    """Divided by the number of micro-batches."""
    return lambda model, part, whole: loss(model, part) / len(split(whole))


def by_samples(loss: Loss) -> Callable[[nn.Module, Batch, Batch], torch.Tensor]:
    """Weighted by its share of the samples."""
    return lambda model, part, whole: loss(model, part) * (len(part[0]) / len(whole[0]))


def undivided(loss: Loss) -> Callable[[nn.Module, Batch, Batch], torch.Tensor]:
    """As it is."""
    return lambda model, part, whole: loss(model, part)


def sum_over_whole_count(model: nn.Module, part: Batch, whole: Batch) -> torch.Tensor:
    """The sum of its tokens' losses, over the count of the whole batch's tokens."""
    logits = model(part[0]).flatten(0, 1)
    total = functional.cross_entropy(logits, part[1].flatten(), reduction="sum")
    return total / (whole[1] != IGNORED).sum()


def language_model(dropout: float = 0.0) -> Callable[[], nn.Module]:
    """A small one."""
    return lambda: LanguageModel(
        len(grammar.ALPHABET), length=LENGTH, width=32, blocks=2, heads=2, dropout=dropout
    )


def batch_norm() -> nn.Module:
    """Normalizes by the statistics of what it sees at once."""
    return image_model(nn.BatchNorm2d)


def group_norm() -> nn.Module:
    """Normalizes each sample by itself."""
    return image_model(lambda channels: nn.GroupNorm(4, channels))


CASES = [
    Case(
        "layer-norm",
        "transformer, layer norm",
        "equal",
        "Each sample is normalized by itself and the loss is a mean, divided by the number of "
        "micro-batches: the same sum in another order.",
        language_model(),
        text,
        mean_of_tokens,
        by_steps(mean_of_tokens),
    ),
    Case(
        "undivided-loss",
        "transformer, loss not divided by the steps",
        "unequal",
        "The gradient is as many times too large as there are micro-batches. SGD then has a learning "
        "rate that much higher; Adam hides it, but clipping and its epsilon do not. Divide the loss by "
        "the number of micro-batches.",
        language_model(),
        text,
        mean_of_tokens,
        undivided(mean_of_tokens),
    ),
    Case(
        "batch-norm",
        "conv net, batch norm",
        "unequal",
        "Mean and variance are those of the micro-batch, so that it is another function. Normalize "
        "each sample by itself (GroupNorm, LayerNorm), or freeze the statistics of pretrained batch "
        "norm (`eval()` on those modules). SyncBatchNorm joins GPUs, not micro-batches.",
        batch_norm,
        images,
        mean_of_images,
        by_steps(mean_of_images),
    ),
    Case(
        "group-norm",
        "conv net, group norm",
        "equal",
        "The remedy for batch norm: statistics of each sample.",
        group_norm,
        images,
        mean_of_images,
        by_steps(mean_of_images),
    ),
    Case(
        "unequal-tokens-mean",
        "padded text, mean of each micro-batch",
        "unequal",
        "A token in a micro-batch of few counts more than one among many. Sum the losses and divide "
        "by the count of the whole batch, as Hugging Face's Trainer does since transformers 4.46 "
        "(`num_items_in_batch`).",
        language_model(),
        padded_text,
        mean_of_tokens,
        by_steps(mean_of_tokens),
    ),
    Case(
        "unequal-tokens-sum",
        "padded text, sum / tokens of the batch",
        "equal",
        "The remedy for unequal token counts.",
        language_model(),
        padded_text,
        mean_of_tokens,
        sum_over_whole_count,
    ),
    Case(
        "ragged-mean",
        "last micro-batch smaller, means alike",
        "unequal",
        "The samples of the last, smaller micro-batch count more. Weight each loss by its share of the "
        "samples, or drop the rest (`drop_last=True`).",
        language_model(),
        lambda generator: text(generator, RAGGED),
        mean_of_tokens,
        by_steps(mean_of_tokens),
    ),
    Case(
        "ragged-weighted",
        "last micro-batch smaller, weighted",
        "equal",
        "The remedy for a ragged end, and how vramfit's own workers train one.",
        language_model(),
        lambda generator: text(generator, RAGGED),
        mean_of_tokens,
        by_samples(mean_of_tokens),
    ),
    Case(
        "contrastive",
        "encoder, contrastive loss in the batch",
        "unequal",
        "Each sample is compared with the others of its micro-batch only: fewer negatives, another "
        "loss. Embed all samples first and backpropagate through them piece by piece (GradCache, "
        "arXiv:2101.06983), or keep a queue of negatives.",
        encoder,
        pairs,
        contrastive,
        by_steps(contrastive),
    ),
    Case(
        "dropout",
        "transformer, dropout 0.1",
        "random",
        "Other units are left out each time, so that no two passes are alike, accumulated or not. It "
        "is the same on average.",
        language_model(dropout=0.1),
        text,
        mean_of_tokens,
        by_steps(mean_of_tokens),
    ),
]


def measure_all(
    device: torch.device, seed: int, progress: Callable[[int, int], None]
) -> list[dict[str, Any]]:
    """Each case in each precision, the most exact first."""
    answers = []
    for index, case in enumerate(CASES):
        precisions = [FP64, *offered(device)]
        measured = [case.measure(precision, device, seed) for precision in precisions]
        answers.append({**case.about(), "measured": measured})
        progress(index + 1, len(CASES))
    return answers
