"""Training with accelerate as vramfit planned it: import it, or paste it into a program.

Usage:

    accelerator = make_accelerator()
    model = MyModel()
    checkpoint_blocks(model.blocks)  #? checkpoint
    optimizer = make_optimizer(model.parameters(), lr=1e-3)  #? !own
    optimizer = ...  # the one that the planned function makes  #? own
    model, optimizer, loader = prepare(accelerator, model, optimizer, make_loader(dataset))
    for epoch in range(epochs):
        for micro_batches in optimizer_steps(loader):  #? accumulate
            loss = train_step(accelerator, model, optimizer, micro_batches, compute_loss)  #? accumulate
        for batch in loader:  #? !accumulate
            loss = train_step(accelerator, model, optimizer, batch, compute_loss)  #? !accumulate

`compute_loss(model, batch)` is yours: the mean loss of the batch.
Start it with `accelerate launch --num_processes @world_size@ train.py`.  #? distributed
"""

#+ evidence

import functools
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

#+ allocator
import torch
from accelerate import Accelerator
from accelerate.utils import send_to_device
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset, RandomSampler, Sampler

#+ constants
#? tf32
torch.set_float32_matmul_precision("high")  # tf32 in matrix products
#? end

Loss = Callable[[torch.nn.Module, Any], torch.Tensor]

#+ loader
#+ optimizer
#+ checkpoint_blocks

def make_accelerator(**more: Any) -> Accelerator:
    """An Accelerator for the planned precision; `more` are other arguments of it."""
    #? accumulate
    # Without `gradient_accumulation_steps`: it divides each loss by their number, which weighs the
    # last micro-batches of an epoch wrong. `train_step` divides by samples instead.
    #? end
    return Accelerator(mixed_precision="@accelerate_precision@", **more)  #? !distributed
    accelerator = Accelerator(mixed_precision="@accelerate_precision@", **more)  #? distributed
    if accelerator.num_processes != WORLD_SIZE:  #? distributed
        raise ValueError(f"planned for {WORLD_SIZE} processes, not {accelerator.num_processes}")  #? distributed
    return accelerator  #? distributed


def prepare(accelerator: Accelerator, model: Any, optimizer: Any, loader: Any) -> tuple:
    #? accumulate
    """As `accelerator.prepare`, but batches stay on the host until it is their turn.

    Else those of a whole optimizer step would be on the GPU at once.
    """
    #? end
    #? !accumulate
    """As `accelerator.prepare`; `train_step` moves batches to the GPU."""
    #? end
    return accelerator.prepare(model, optimizer, loader, device_placement=[True, True, False])

#? accumulate

#+ count_samples

def optimizer_steps(loader: Iterable[Any]) -> Iterator[list[Any]]:
    """The micro-batches of one optimizer step after the other; the last step may have fewer."""
    batches = iter(loader)
    while micro_batches := list(itertools.islice(batches, MICRO_STEPS)):
        yield micro_batches

#? end

def train_step(
    accelerator: Accelerator,
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    micro_batches: list[Any],  #? accumulate
    batch: Any,  #? !accumulate
    compute_loss: Loss,
) -> torch.Tensor:
    #? accumulate
    """One optimizer step; returns the mean loss.

    Each micro-batch weighs as much as it has samples, so that the gradient is that of one batch of
    all of them, also where the last ones of an epoch are fewer or smaller.
    """
    device = accelerator.device
    samples = sum(count_samples(batch) for batch in micro_batches)
    total = torch.zeros((), device=device)
    for batch in micro_batches[:-1]:
        with accelerator.no_sync(model):  # gradients travel once, with the last micro-batch
            total += backward(accelerator, model, batch, samples, compute_loss)
    total += backward(accelerator, model, micro_batches[-1], samples, compute_loss)
    #? end
    #? !accumulate
    """One optimizer step; returns the loss."""
    batch_on_device = send_to_device(batch, accelerator.device, non_blocking=True)
    with accelerator.autocast():
        loss = compute_loss(model, batch_on_device)
    accelerator.backward(loss)
    #? end
    accelerator.clip_grad_norm_(model.parameters(), @clip@)  #? clip
    optimizer.step()
    optimizer.zero_grad()
    return total  #? accumulate
    return loss.detach()  #? !accumulate
#? accumulate


def backward(
    accelerator: Accelerator, model: torch.nn.Module, batch: Any, samples: int, compute_loss: Loss
) -> torch.Tensor:
    """Adds the gradients of one micro-batch of a step; returns its share of the loss."""
    batch_on_device = send_to_device(batch, accelerator.device, non_blocking=True)
    with accelerator.autocast():
        loss = compute_loss(model, batch_on_device)
    loss = loss * (count_samples(batch) / samples)
    accelerator.backward(loss)
    return loss.detach()
#? end
