"""What each setting of the training takes of a GPU's memory."""

from __future__ import annotations

import gc
from typing import Any

import torch

from vramfit_worker.placing import empty

from . import grammar
from .training import SENTENCES, Run, Setting, batches, settings

# The optimizer's state is made in the first; from the second on all are alike.
STEPS = 2


def peaks(device: torch.device, seed: int) -> list[dict[str, Any]]:
    """Each setting alone, from an empty allocator, in the allocator's own statistics."""
    corpus = grammar.Corpus.of(SENTENCES, seed).train
    return [
        {"setting": setting.to_json(), **_peak(setting, corpus, device, seed)}
        for setting in settings(device)
    ]


def _peak(
    setting: Setting, corpus: torch.Tensor, device: torch.device, seed: int
) -> dict[str, int]:
    empty()
    # What cuBLAS takes for itself with the first products stays, and is more than all tensors here.
    _train(setting, corpus, device, seed)
    workspace = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    _train(setting, corpus, device, seed)
    statistics = torch.cuda.memory_stats(device)
    return {
        "tensors": statistics["allocated_bytes.all.peak"] - workspace,
        "workspace": workspace,
        "reserved": statistics["reserved_bytes.all.peak"],
    }


def _train(setting: Setting, corpus: torch.Tensor, device: torch.device, seed: int) -> None:
    next_batch = batches(corpus, seed)
    run = Run(setting, device, seed)
    for _ in range(STEPS):
        run.step(tuple(it.to(device) for it in next_batch()))
    del run
    gc.collect()
