"""What is trained: transformers' twin of the built-in model `small-gpt2`, and what it sees."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
import transformers
from torch.optim.optimizer import register_optimizer_step_post_hook

SEQUENCE = 256


def make_model(device: str) -> transformers.GPT2LMHeadModel:
    config = transformers.GPT2Config(
        vocab_size=8192, n_positions=SEQUENCE, n_embd=256, n_layer=4, n_head=8
    )
    torch.manual_seed(0)
    return transformers.GPT2LMHeadModel(config).to(device).train()


class Texts(torch.utils.data.Dataset):
    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        ids = torch.randint(8192, (SEQUENCE,))
        return {"input_ids": ids, "labels": ids.clone()}


def compute_loss(model: torch.nn.Module, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    return model(**batch, use_cache=False).loss


@contextmanager
def observed(model: torch.nn.Module, report: str) -> Iterator[None]:
    """Writes the sizes of the batches that the model sees between steps of any optimizer."""
    steps: list[list[int]] = [[]]

    def seen(_module: object, _args: object, kwargs: dict[str, torch.Tensor]) -> None:
        steps[-1].append(len(kwargs["input_ids"]))

    def stepped(_optimizer: object, _args: object, _kwargs: object) -> None:
        steps.append([])

    forward = model.register_forward_pre_hook(seen, with_kwargs=True)
    step = register_optimizer_step_post_hook(stepped)
    yield
    forward.remove()
    step.remove()
    Path(report).write_text(json.dumps({
        "pid": os.getpid(),
        "steps": [sizes for sizes in steps if sizes],
        "allocated": torch.cuda.max_memory_allocated(),
        "reserved": torch.cuda.max_memory_reserved(),
    }))
