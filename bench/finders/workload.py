"""What each finder is asked about: the same model, samples, precision and optimizer for all.

Functions for `vramfit plan --workload workload.py:NAME`, and the parts of them for the peers.
"""

import dataclasses
from collections.abc import Callable

import torch
from torch import nn
from torch.utils.data import Dataset, default_collate

SEQUENCE = 512
# Steps that a trial takes: Lightning's default. The optimizer's state comes in the first one.
STEPS = 3


class Classifier(nn.Module):
    """A model that returns its loss, as transformers' Trainer wants it."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, images, labels):
        return {"loss": nn.functional.cross_entropy(self.network(images), labels)}


class Samples(Dataset):
    """More samples than any finder asks for, all the same, since values change no memory."""

    def __init__(self, sample):
        self.sample = sample

    def __len__(self):
        return 10_000

    def __getitem__(self, index):
        return self.sample


@dataclasses.dataclass(frozen=True)
class Case:
    """A question to the finders."""

    model: Callable[[], nn.Module]
    samples: Samples
    # As vramfit calls it: fp32 or bf16, the latter by autocast.
    precision: str

    def batch(self, size):
        return default_collate([self.samples[index] for index in range(size)])

    def for_vramfit(self):
        return {"model": self.model(), "batch": self.batch, "optimizer": optimizer}


def optimizer(parameters):
    return torch.optim.AdamW(parameters, lr=1e-3)


def resnet50():
    return cases()["resnet50"].for_vramfit()


def gpt2():
    return cases()["gpt2"].for_vramfit()


def cases():
    tokens = torch.randint(50257, (SEQUENCE,))
    image = {"images": torch.randn(3, 224, 224), "labels": torch.tensor(1)}
    return {
        "resnet50": Case(build_resnet50, Samples(image), "fp32"),
        "gpt2": Case(build_gpt2, Samples({"input_ids": tokens, "labels": tokens}), "bf16"),
    }


def build_resnet50():
    import torchvision

    return Classifier(torchvision.models.resnet50())


def build_gpt2():
    import transformers

    return transformers.GPT2LMHeadModel(transformers.GPT2Config(use_cache=False))
